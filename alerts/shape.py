"""What a policy file's keys take, in words: msgspec's message and a struct in, a sentence with the full key out."""

from __future__ import annotations

import re
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from alerts.chain import KINDS
from alerts.levers import unknown

_AT = re.compile(r" - at `\$\.?(.*)`$")
_FIELD = re.compile(r"(missing required|unknown) field `([^`]+)`")


def told(key: str, value: Any, kind: Any, error: str) -> str:
    """msgspec's message with the full key in front and what the key takes behind."""
    at = _AT.search(error)
    path = at.group(1) if at else ""
    message = _AT.sub("", error)
    full = f"{key}.{path}" if path and not path.startswith("[") else key + path
    field = _FIELD.search(message)
    shape = _shape(value, kind)
    if field is None:
        return f"{full}: {message}; takes {describe(_hint(shape, path))}"
    name = field.group(2)
    if field.group(1) == "unknown":
        return f"{full}: {unknown('key', name, _keys(shape))}"
    return f"{full}.{name} is missing; it takes {describe(_hint(shape, name))}"


def _shape(value: Any, kind: Any) -> Any:
    """The struct that a table is read as: by its `kind` where there is a choice."""
    if isinstance(kind, type):
        return kind
    named = value.get("kind") if isinstance(value, dict) else None
    return next((shape for shape in KINDS if shape.__struct_config__.tag == named), kind)


def _keys(shape: Any) -> list[str]:
    fields = [field.encode_name for field in msgspec.structs.fields(shape)] if _is_struct(shape) else []
    return [*fields, "kind"] if shape in KINDS else fields


def _hint(shape: Any, path: str) -> Any:
    if path == "kind" and shape not in KINDS:
        return Literal[tuple(str(known.__struct_config__.tag) for known in KINDS)]
    if _is_struct(shape):
        hints = get_type_hints(shape, include_extras=True)
        for field in msgspec.structs.fields(shape):
            if field.encode_name == path.split("[", maxsplit=1)[0]:
                return hints[field.name]
    return shape


def describe(kind: Any) -> str:
    """What a key takes, in words: a table's keys, a choice's words, a list, text or a number."""
    if _is_struct(kind):
        return "a table of " + ", ".join(_keys(kind))
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return describe(inside[0])
    if origin is Literal:
        return " or ".join(repr(word) for word in inside)
    if origin in (Union, types.UnionType):
        if any(_is_struct(one) for one in inside):
            return "a table with kind " + " or ".join(repr(shape.__struct_config__.tag) for shape in KINDS)
        return " or ".join(describe(one) for one in inside if one is not type(None))
    if origin is tuple:
        return f"a list, each {describe(inside[0])}"
    words = {str: "text", int: "a whole number", float: "a number", dict: "a table"}
    return words.get(origin or kind, "a value")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
