"""A refusal of the decoder in, the same with the key as it is written, its variable, and what is taken out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from leverwatch.described import is_struct, item_kind, takes

_AT = re.compile(r"(?P<what>.*) - at `\$\.(?P<path>[^`]*)`", re.DOTALL)
_STEP = re.compile(r"\.?(?P<key>[^.\[\]]+)|\[(?P<number>\d*|\.\.\.)\]")


def said(error: Exception, kinds: Mapping[str, Any], names: Mapping[tuple[str, ...], str]) -> str:
    """The refusal in the words of the file; `names` has the variables that were set, by path. Other errors say themselves what is wrong."""
    found = _AT.fullmatch(str(error))
    if not found:
        return str(error)
    what, steps = found["what"], [step["key"] or f"[{step['number']}]" for step in _STEP.finditer(found["path"])]
    kind = _kind(steps, kinds)
    if not (what.startswith(("Expected ", "Invalid ", "Object ")) and kind):
        return f"{_place(steps, kinds)}: {what}" if what.startswith("Expected ") else what
    taken = "" if what.startswith("Object ") else f"; taken: {_taken(steps, kinds, kind)}"
    variable = next((name for path, name in names.items() if tuple(steps[: len(path)]) == path), "")
    return f"{f'{variable}, ' if variable else ''}{_place(steps, kinds)}: {what}{taken}"


def _kind(steps: list[str], kinds: Mapping[str, Any]) -> Any:
    """The kind of what stands at a path; None where it has none of its own."""
    kind: Any = kinds.get(steps[0])
    for step in steps[1:]:
        kind = item_kind(kind) if step.startswith("[") else _fields(kind).get(step)
    return kind


def _fields(kind: Any) -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)} if is_struct(kind) else {}


def _place(steps: list[str], kinds: Mapping[str, Any]) -> str:
    """A path as a file has it: `[serve] port`, or `[[links]] peak_bytes_per_s (table 2)`."""
    section, rest = steps[0], steps[1:]
    if not is_struct(item_kind(kinds.get(section))):
        return " ".join([f"[{section}]", "".join(f".{step}" if step[0] != "[" else step for step in rest).removeprefix(".")]).rstrip()
    number = f" (table {int(rest[0][1:-1]) + 1})" if rest and rest[0][1:-1].isdigit() else ""
    return " ".join([f"[[{section}]]", *rest[1:2]]) + number


def _taken(steps: list[str], kinds: Mapping[str, Any], kind: Any) -> str:
    if len(steps) == 1:
        section = steps[0]
        return f"tables, each under [[{section}]]" if is_struct(item_kind(kinds[section])) else f"one table, under [{section}]"
    return takes(kind)
