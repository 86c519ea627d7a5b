"""The kinds of the configuration in, the tables of `docs/configuration.md` out: every key with its meaning, kind, default and variable."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from leverwatch.config import KINDS, PREFIX, SECTIONS, item_kind

MARK = "<!-- What follows is made from the code by `make golden`. -->"
WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}


def tables() -> str:
    """Markdown: a table for each section, and one for each kind of table in a list."""
    lines: list[str] = []
    for name, kind in KINDS.items():
        if name in SECTIONS:
            lines += _section(f"[{name}]", kind, f"{PREFIX}{name.upper()}_")
            for item, keys in _listed(kind).items():
                lines += _section(", ".join(f"[[{name}.{key}]]" for key in keys), item, "")
        elif _is_struct(item_kind(kind)):
            lines += [*_section(f"[[{name}]]", item_kind(kind), ""), "", f"All of them as JSON: `{PREFIX}{name.upper()}`."]
        else:
            lines += ["", f"## `[{name}]`", "", f"Any of the names above; as JSON: `{PREFIX}{name.upper()}`."]
    return "\n".join(lines) + "\n"


def _listed(kind: type[msgspec.Struct]) -> dict[type[msgspec.Struct], list[str]]:
    """The kinds of tables that lists of a section hold, each with the keys of these lists."""
    found: dict[type[msgspec.Struct], list[str]] = {}
    for field in msgspec.structs.fields(kind):
        if _is_struct(item := item_kind(field.type)):
            found.setdefault(item, []).append(field.name)
    return found


def _section(head: str, kind: type[msgspec.Struct], prefix: str) -> list[str]:
    lines = ["", f"## `{head}`", "", *(line.strip() for line in (kind.__doc__ or "").strip().splitlines()), ""]
    columns = ["key", "meaning", "takes", "default", *(["variable"] if prefix else [])]
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    for field in msgspec.structs.fields(kind):
        cells = [f"`{field.name}`", _meaning(field.type), _takes(field.type), _default(field)]
        cells += [f"`{prefix}{field.name.upper()}`"] if prefix else []
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return lines


def _meaning(kind: Any) -> str:
    return "; ".join(meta.description for meta in _metas(kind) if meta.description)


def _takes(kind: Any) -> str:
    bounds = [f"{sign} {bound:g}" for meta in _metas(kind) for sign, bound in (("from", meta.ge), ("above", meta.gt)) if bound is not None]
    return " ".join([_word(kind), *bounds])


def _word(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _word(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_word(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return "tables" if _is_struct(item) else f"list of {_word(item)}"
    return WORDS.get(kind, "table")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "needed" if field.default_factory is msgspec.NODEFAULT else ""
    if field.default in ("", (), None):
        return ""
    return f"`{msgspec.json.encode(field.default).decode()}`"


def _metas(kind: Any) -> Iterator[msgspec.Meta]:
    if get_origin(kind) is Annotated:
        yield from (meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta))


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
