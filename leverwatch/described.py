"""Kinds and meanings of configuration keys in, what `docs/configuration.md` and errors print of them out."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}


def says(meaning: str) -> msgspec.Meta:
    """The meaning of a key, to stand in its annotation."""
    return msgspec.Meta(description=meaning)


def takes(kind: Any) -> str:
    """What a key of a kind takes, in words: with its bounds, and with the allowed words where there are only some."""
    return " ".join([_word(kind), *(bound for meta in metas(kind) for bound in _bounds(meta))])


def metas(kind: Any) -> Iterator[msgspec.Meta]:
    """What stands in the annotation of a kind."""
    if get_origin(kind) is Annotated:
        yield from (meta for meta in kind.__metadata__ if isinstance(meta, msgspec.Meta))


def item_kind(kind: Any) -> Any:
    """What a list holds; None where the kind is no list."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_args(kind)[0] if get_origin(kind) is tuple else None


def is_struct(kind: Any) -> bool:
    """Whether a kind is a table with keys of its own."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _bounds(meta: msgspec.Meta) -> Iterator[str]:
    if meta.ge is not None:
        yield f"from {meta.ge:g}"
    if meta.gt is not None:
        yield f"above {meta.gt:g}"
    if meta.le is not None:
        yield f"{'to' if meta.ge is not None else 'and up to'} {meta.le:g}"


def _word(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        return _word(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(_word(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return "tables" if is_struct(item) else f"list of {_word(item)}"
    return WORDS.get(kind, "table")
