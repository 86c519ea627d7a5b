"""A stranger's condition in, whether it stays inside the brackets that are put around it out."""

from __future__ import annotations

import re

# What brackets mean nothing in: texts, names, texts between dollars, comments.
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/", re.DOTALL)


def fault(text: str) -> str:
    """Why a text is no single condition: it is empty, or leaves its brackets (`a) or (b` would shake off the period); else empty."""
    bare = _QUOTED.sub(" ", text)
    if not bare.strip() and not text.strip().startswith(("'", '"', "$")):
        return "it is empty"
    depth = 0
    for sign in re.findall(r"[()]", bare):
        depth += 1 if sign == "(" else -1
        if depth < 0:
            return "a bracket is closed that was not opened"
    return "a bracket is opened and not closed" if depth else ""
