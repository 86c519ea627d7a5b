"""A batch's ids in, keyed hashes of them out: the same id is the same hash, and no column holds what it was."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl
import pyarrow as pa

from collectors import wire_layout as at
from collectors.columns import offsets_and_data
from collectors.decode import Tables
from collectors.dialect_parts import Deployment, Dialect, any_of

# The columns of `spans.signals` that hold each kind of id; ids of one kind meet in joins and have one hash.
COLUMNS = {"tenant": ("tenant",), "request_id": ("request_id", "join_key")}
SHORTEST_KEY_BYTES = 16
HASH_BYTES = 16


class IdentityError(ValueError):
    """Ids cannot be hashed as configured; says which key is missing or too short."""


@dataclass(frozen=True)
class Hasher:
    """Replaces ids. `keys` says which attributes hold an id of which kind; names in it may hold `*`."""

    key: bytes = field(repr=False)
    keys: dict[str, tuple[str, ...]]
    known: dict[tuple[str, str], str] = field(default_factory=dict, repr=False, compare=False)  # the ids of the batch at hand

    def text(self, kind: str, value: str) -> str:
        """The hash of one id: 32 hex digits."""
        found = self.known.get((kind, value))
        if found is None:
            found = self.known[kind, value] = self._hashed(kind, value)
        return found

    def _hashed(self, kind: str, value: str) -> str:
        return hashlib.blake2b(value.encode(), digest_size=HASH_BYTES, key=self.key, person=kind.encode()).hexdigest()

    def series(self, kind: str, values: pl.Series) -> pl.Series:
        """The hashes of a column, each distinct id hashed once; null stays null."""
        distinct = values.drop_nulls().unique()
        if not len(distinct):
            return values
        hashes = pl.Series([self.text(kind, value) for value in distinct.to_list()], dtype=pl.String)
        return values.replace_strict(distinct, hashes, default=None, return_dtype=pl.String)

    def signals(self, signals: pl.DataFrame) -> pl.DataFrame:
        """The signals of a batch with hashes in place of ids. Most stand in its tables too, and are hashed once for both."""
        self.known.clear()
        return signals.with_columns(self.series(kind, signals[column]).alias(column) for kind in self.keys for column in COLUMNS[kind])

    def tables(self, tables: Tables) -> Tables:
        """A batch's tables with hashes in place of the ids in attributes, whatever has them. The rows are changed where they stand."""
        for kind, pattern in self._patterns.items():
            hits = pl.Series(tables.keys, dtype=pl.String).str.contains(pattern).to_numpy()
            if hits.any():
                tables = self._replaced(tables, kind, np.flatnonzero(hits[tables.key_ids] & (tables.attributes[:, at.TYPE] != 0)))
        return tables

    def _replaced(self, tables: Tables, kind: str, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Tables:
        if not len(rows):
            return tables
        attributes, buffer = tables.attributes, tables.buffer
        said = tables.values(rows).dictionary_encode()
        ids = np.asarray(said.indices).astype(np.int64)
        offsets, data = offsets_and_data(pa.array([self.text(kind, value) for value in said.dictionary.to_pylist()], pa.string()))
        attributes[rows, at.VALUE], attributes[rows, at.VALUE_LEN] = len(buffer) + offsets[:-1][ids], np.diff(offsets)[ids]
        attributes[rows, at.TYPE] = at.STRING
        return replace(tables, buffer=np.concatenate([buffer, data]))

    @cached_property
    def _patterns(self) -> dict[str, str]:
        return {kind: any_of(names) for kind, names in self.keys.items()}


def hasher(
    kinds: Collection[str], key: bytes, facts: Deployment, dialects: Iterable[Dialect], more_tenants: Iterable[str] = ()
) -> Hasher | None:
    """What replaces ids of some kinds; None where none is to be replaced. `more_tenants` are further attributes that name people.

    Raises:
        IdentityError: the key is shorter than 16 bytes.
    """
    if not kinds:
        return None
    if len(key) < SHORTEST_KEY_BYTES:
        msg = f"[identity] hash_key_file: the key has {len(key)} bytes; {SHORTEST_KEY_BYTES} or more are taken"
        raise IdentityError(msg)
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        key = hashlib.blake2b(key).digest()
    return Hasher(key, {kind: _names(kind, facts, tuple(dialects), more_tenants) for kind in kinds})


def _names(kind: str, facts: Deployment, dialects: tuple[Dialect, ...], more_tenants: Iterable[str]) -> tuple[str, ...]:
    columns = COLUMNS[kind]
    said = (facts.signals, *(one.signals for one in dialects))
    sources = [source for signals in said for column in columns for source in signals.get(column, ())]
    events = [event.key for dialect in dialects for event in dialect.events if event.signal in columns and event.key]
    return tuple(dict.fromkeys([*(source.key for source in sources), *events, *(more_tenants if kind == "tenant" else ())]))
