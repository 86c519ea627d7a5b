"""The relations that can be read in, what people who ask by SQL should know of them out: words, units, functions."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import msgspec

# A column's unit by how its name ends, the longest first.
_UNITS = {"bytes_per_s": "bytes/s", "_per_s": "1/s", "_bytes": "bytes", "_tokens": "tokens", "_s": "s", "_usd": "usd", "_share": "ratio"}
_RATIOS = frozenset({"kv_usage", "communication_fraction", "coverage", "gain", "gain_low", "gain_high"})


class Function(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function worth knowing, with an example that runs."""

    name: str
    what: str
    example: str


class Column(msgspec.Struct, frozen=True):
    """One column: its DuckDB type, its unit where it has one, and what it says where its name does not."""

    name: str
    type: str
    unit: str
    what: str


class Relation(msgspec.Struct, frozen=True):
    """A table or view that can be read."""

    name: str
    what: str
    columns: list[Column]


class _Functions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    functions: list[Function]


def relations(columns: Mapping[str, Sequence[tuple[str, str]]]) -> list[Relation]:
    """Every relation of the store with what is known of it; `columns` are the store's own, as (name, type)."""
    return [Relation(name, notes["about"], _columns(notes, columns[name])) for name, notes in words().items() if name in columns]


def _columns(notes: Mapping[str, str], columns: Sequence[tuple[str, str]]) -> list[Column]:
    return [Column(name, kind, unit(name, kind), notes.get(name, "")) for name, kind in columns]


@functools.cache
def words() -> dict[str, dict[str, str]]:
    """What `relations.toml` says of each relation (`about`) and of columns."""
    return msgspec.toml.decode(_text("relations.toml"), type=dict[str, dict[str, str]])


@functools.cache
def functions() -> tuple[Function, ...]:
    """Functions worth knowing."""
    return tuple(msgspec.toml.decode(_text("functions.toml"), type=_Functions).functions)


def unit(column: str, kind: str) -> str:
    """The unit of a column by its name; empty where it has none."""
    if kind.startswith("TIMESTAMP"):
        return "UTC"
    if kind not in ("DOUBLE", "BIGINT", "INTEGER", "DOUBLE[]"):
        return ""
    if column in _RATIOS:
        return "ratio"
    return next((said for end, said in _UNITS.items() if column.endswith(end)), "")


def as_rows(relations: Sequence[Relation]) -> list[dict[str, Any]]:
    """Relations as JSON can hold them."""
    rows: list[dict[str, Any]] = msgspec.to_builtins(relations)
    return rows


def _text(name: str) -> str:
    return (resources.files("queries") / name).read_text(encoding="utf-8")
