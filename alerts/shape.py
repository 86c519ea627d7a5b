"""What a policy file's keys take, in words: msgspec's message and a struct in, a sentence with the full key out."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from alerts.chain import KINDS
from alerts.levers import unknown

MOST_SHOWN = 60  # characters of a value that is told
_AT = re.compile(r" - at `\$\.?(.*)`$")
_FIELD = re.compile(r"(missing required|unknown) field `([^`]+)`")
_PATTERN = re.compile(r" matching regex '.*'$")
_TYPE = re.compile(r", got `[^`]*`$")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)")


def told(key: str, value: Any, kind: Any, error: str) -> str:
    """msgspec's message with the full key in front, and what came and what the key takes behind."""
    at = _AT.search(error)
    path = at.group(1) if at else ""
    message = _PATTERN.sub("", _AT.sub("", error))
    full = f"{key}.{path}" if path and not path.startswith("[") else key + path
    field = _FIELD.search(message)
    came, shape = _walk(value, kind, path)
    if field is None:
        taken = "" if message.startswith("takes ") else f"; takes {describe(shape)}{_written(full, came, shape)}"
        return f"{full}: {_with(message, came)}{taken}"
    name = field.group(2)
    if field.group(1) == "unknown":
        return f"{full}: {unknown('key', name, _keys(shape))}"
    return f"{full}.{name} is missing; it takes {describe(_field(shape, name))}"


def _with(message: str, came: Any) -> str:
    """A message with what came, where it does not say so."""
    if not isinstance(came, str | int | float) or message.startswith(("takes ", "Invalid ")):
        return message
    return f"{_TYPE.sub('', message)}, got {shown(came)}"


def _written(key: str, came: Any, shape: Any) -> str:
    is_list = get_origin(_bare(shape)) is tuple
    return f", each written [[{key}]]" if is_list and isinstance(came, dict) else ""


def shown(value: Any) -> str:
    """A value as a file may have it, cut to what a line holds; control characters are escaped."""
    text = ascii(value) if not str(value).isprintable() else repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... ({len(str(value))} characters)"


def not_finite(key: str, value: Any) -> Iterator[tuple[str, float]]:
    """The numbers of a table, or of what is within it, that are not finite, each with its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from not_finite(f"{key}.{name}" if key else str(name), inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from not_finite(f"{key}[{number}]", inner)
    elif isinstance(value, float) and not math.isfinite(value):
        yield key, value


def _walk(value: Any, kind: Any, path: str) -> tuple[Any, Any]:
    """The value at a path, and the type that it is read as; None where msgspec does not name the key."""
    for number, name in _STEP.findall(path):
        kind = _shape(value, kind)
        if name:
            if not _is_struct(kind):  # such as the key that tells kinds apart
                return (value.get(name) if isinstance(value, dict) else None), _field(kind, name)
            value, kind = (value.get(name) if isinstance(value, dict) else None), _field(kind, name)
        else:
            value = value[int(number)] if number.isdigit() and isinstance(value, list) else None
            kind = _inside(kind)
    return value, _shape(value, kind)


def _shape(value: Any, kind: Any) -> Any:
    """The struct that a table is read as: by its `kind` where there is a choice."""
    bare = _bare(kind)
    if get_origin(bare) not in (Union, types.UnionType) or not any(_is_struct(one) for one in get_args(bare)):
        return kind
    named = value.get("kind") if isinstance(value, dict) else None
    return next((shape for shape in KINDS if shape.__struct_config__.tag == named), kind)


def _inside(kind: Any) -> Any:
    """What a list, a table of any keys, or a choice of which one is such, holds."""
    bare = _bare(kind)
    if get_origin(bare) in (Union, types.UnionType):
        return next((_inside(one) for one in get_args(bare) if get_origin(_bare(one)) in (tuple, dict)), kind)
    inside = get_args(bare)
    return inside[-1] if get_origin(bare) is dict else inside[0] if inside else kind


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _keys(shape: Any) -> list[str]:
    fields = [field.encode_name for field in msgspec.structs.fields(shape)] if _is_struct(shape) else []
    return [*fields, "kind"] if shape in KINDS else fields


def _field(shape: Any, name: str) -> Any:
    if name == "kind" and shape not in KINDS:
        return Literal[tuple(str(known.__struct_config__.tag) for known in KINDS)]
    if _is_struct(shape):
        hints = get_type_hints(shape, include_extras=True)
        return next((hints[field.name] for field in msgspec.structs.fields(shape) if field.encode_name == name), shape)
    return shape


def describe(kind: Any) -> str:
    """What a key takes, in words: a table's keys, a choice's words, a list, text or a number, each with its bounds."""
    if _is_struct(kind):
        return "a table of " + ", ".join(_keys(kind))
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _bounded(inside[0], inside[1])
    if origin is Literal:
        return " or ".join(repr(word) for word in inside)
    if origin in (Union, types.UnionType):
        if any(_is_struct(one) for one in inside):
            return "a table with kind " + " or ".join(repr(shape.__struct_config__.tag) for shape in KINDS)
        return " or ".join(dict.fromkeys(describe(one) for one in inside if one is not type(None)))
    if origin is tuple:
        return f"a list, each {describe(inside[0])}"
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "a table"}
    return words.get(origin or kind, "a value")


def _bounded(kind: Any, meta: msgspec.Meta) -> str:
    words = meta.description or describe(kind)
    low, high = (meta.ge if meta.gt is None else meta.gt), meta.le
    if low is not None and high is not None:
        ends = f"above {_plain(low)} and up to {_plain(high)}" if meta.gt is not None else f"from {_plain(low)} to {_plain(high)}"
        return f"{words} {ends}"
    if meta.max_length is None:
        return words
    return f"{words}, {meta.min_length or 0} to {meta.max_length} {'of them' if get_origin(kind) is tuple else 'characters'}"


def _plain(number: float) -> str:
    return f"{number:.10g}"


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
