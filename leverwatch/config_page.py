"""The kinds of the configuration in, the tables of `docs/configuration.md` out: every key with its meaning, kind, default and variable."""

from __future__ import annotations

from typing import Any

import msgspec

from leverwatch.config import KINDS, PREFIX, SECTIONS
from leverwatch.described import is_struct, item_kind, metas, takes

MARK = "<!-- What follows is made from the code by `make golden`. -->"


def tables() -> str:
    """Markdown: a table for each section, and one for each kind of table in a list."""
    lines: list[str] = []
    for name, kind in KINDS.items():
        if name in SECTIONS:
            lines += _section(f"[{name}]", kind, f"{PREFIX}{name.upper()}_")
            for item, keys in _listed(kind).items():
                lines += _section(", ".join(f"[[{name}.{key}]]" for key in keys), item, "")
        elif is_struct(item_kind(kind)):
            lines += [*_section(f"[[{name}]]", item_kind(kind), ""), "", f"All of them as JSON: `{PREFIX}{name.upper()}`."]
        else:
            lines += ["", f"## `[{name}]`", "", f"Any of the names above; as JSON: `{PREFIX}{name.upper()}`."]
    return "\n".join(lines) + "\n"


def _listed(kind: type[msgspec.Struct]) -> dict[type[msgspec.Struct], list[str]]:
    """The kinds of tables that lists of a section hold, each with the keys of these lists."""
    found: dict[type[msgspec.Struct], list[str]] = {}
    for field in msgspec.structs.fields(kind):
        if is_struct(item := item_kind(field.type)):
            found.setdefault(item, []).append(field.name)
    return found


def _section(head: str, kind: type[msgspec.Struct], prefix: str) -> list[str]:
    lines = ["", f"## `{head}`", "", *_purpose(kind), ""]
    columns = ["key", "meaning", "takes", "default", *(["variable"] if prefix else [])]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for field in msgspec.structs.fields(kind):
        cells = [f"`{field.name}`", _meaning(field.type), takes(field.type), _default(field)]
        cells += [f"`{prefix}{field.name.upper()}`"] if prefix else []
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return lines


def _purpose(kind: type[msgspec.Struct]) -> list[str]:
    """What a struct's docstring says, without what it raises."""
    return [line.strip() for line in (kind.__doc__ or "").partition("Raises:")[0].strip().splitlines()]


def _meaning(kind: Any) -> str:
    return "; ".join(meta.description for meta in metas(kind) if meta.description)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "needed" if field.default_factory is msgspec.NODEFAULT else ""
    if field.default in ("", (), None):
        return ""
    return f"`{msgspec.json.encode(field.default).decode()}`"
