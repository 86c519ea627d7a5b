"""A batch's integer tables in, what is asked of them again and again out: attribute rows by key, distinct names, versions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from collectors import wire_layout as at
from collectors.columns import Ints, gathered, interned
from collectors.decode import Tables
from collectors.dialect_parts import Source, Version, Where, any_of, version_key
from collectors.readings import texts

Mask = npt.NDArray[np.bool_]
KEYS_OF_16_BITS = 1 << 16


class Lookup:
    """Finds the rows of a batch's attributes by key, and tells its spans by name, scope and resource."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.count = len(tables.spans)
        self._key_ids = {key: number for number, key in enumerate(tables.keys)}
        self._rows: dict[tuple[int, str], Ints] = {}
        self._texts: dict[tuple[str, str, str], pl.Series] = {}
        self._row_of: dict[tuple[str, str], Ints | None] = {}
        self._scope_hits: dict[tuple[str, ...], Mask] = {}
        self._versions: dict[int, Ints] = {}
        # numpy sorts 16-bit numbers by radix, ten times faster than 64-bit ones
        ids = tables.key_ids.astype(np.uint16) if len(tables.keys) < KEYS_OF_16_BITS else tables.key_ids
        by_key = np.argsort(ids, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(tables.key_ids, minlength=len(tables.keys)))])
        self._of_key = [by_key[low:high] for low, high in pairwise(bounds.tolist())]
        scopes = tables.scopes
        self._scope_names = pl.Series(gathered(tables.buffer, scopes[:, at.SCOPE_NAME], scopes[:, at.SCOPE_NAME_LEN]), dtype=pl.String)
        self.name_ids, firsts = interned(tables.buffer, tables.spans[:, at.NAME], tables.spans[:, at.NAME_LEN])
        chosen = tables.spans[firsts]
        self._names = pl.Series(gathered(tables.buffer, chosen[:, at.NAME], chosen[:, at.NAME_LEN]), dtype=pl.String)

    def rows(self, owner_kind: int, key: str) -> Ints:
        """The attribute rows of one key of one kind of owner, in the owners' order."""
        found = self._rows.get((owner_kind, key))
        if found is None:
            number = self._key_ids.get(key)
            every = self._of_key[number] if number is not None else np.zeros(0, np.int64)
            found = self._rows[owner_kind, key] = every[self.tables.attributes[every, at.OWNER_KIND] == owner_kind]
        return found

    def row_of(self, key: str, of: str = "span") -> Ints | None:
        """For each span the row of an attribute of it or of its resource, -1 where it has none; None where nobody has it."""
        if (key, of) not in self._row_of:
            self._row_of[key, of] = self._found(key, of)
        return self._row_of[key, of]

    def _found(self, key: str, of: str) -> Ints | None:
        rows = self.rows(at.OF_SPAN if of == "span" else at.OF_RESOURCE, key)
        if not len(rows):
            return None
        if of == "resource":
            return self._by_resource(key)[self.tables.spans[:, at.RESOURCE]]
        owners = self.tables.attributes[rows, at.OWNER]
        return rows if len(rows) == self.count else self._scattered(rows, owners, self.count)

    def _by_resource(self, key: str) -> Ints:
        rows = self.rows(at.OF_RESOURCE, key)
        return self._scattered(rows, self.tables.attributes[rows, at.OWNER], len(self.tables.resources))

    def text(self, source: Source, row_of: Ints, known: Mask, *, every: bool) -> pl.Series:
        """What an attribute says as text, for the spans where it is known; two signals that read it share what was read."""
        if source.of == "resource":  # said once for many spans
            rows = self._by_resource(source.key)
            said = np.flatnonzero(rows >= 0)
            place_of = np.full(len(rows), -1, np.int64)
            place_of[said] = np.arange(len(said))
            told = pl.Series(texts(self.tables, rows[said], source), dtype=pl.String)
            return told.gather(places(np.where(known, place_of[self.tables.spans[:, at.RESOURCE]], -1)))
        kept = (source.key, source.unit, source.pattern)
        if every and kept in self._texts:
            return self._texts[kept]
        told = pl.Series(texts(self.tables, row_of if every else row_of[known], source), dtype=pl.String)
        if every:
            self._texts[kept] = told
            return told
        place_of = np.full(self.count, -1, np.int64)
        place_of[known] = np.arange(len(told))
        return told.gather(places(place_of))

    def has(self, key: str) -> Mask:
        """Which spans carry an attribute."""
        found = self.row_of(key)
        return np.zeros(self.count, np.bool_) if found is None else found >= 0

    def holds(self, condition: Where) -> Mask:
        """Of which spans a condition holds."""
        found = self.row_of(condition.key, condition.of)
        if found is None:
            return np.zeros(self.count, np.bool_)
        rows, places = np.unique(found, return_inverse=True) if condition.of == "resource" else (found, np.arange(self.count))
        known = rows >= 0
        hits = np.zeros(len(rows), np.bool_)
        hits[known] = contains(pl.Series(self.tables.values(rows[known]), dtype=pl.String), condition.pattern)
        return hits[places]

    def in_scope(self, scopes: tuple[str, ...]) -> Mask | None:
        """Which spans have a scope of these names; None where none has."""
        if scopes == ("*",):
            return np.ones(self.count, np.bool_)
        hits = self._scope_hits.get(scopes)
        if hits is None:
            hits = self._scope_hits[scopes] = contains(self._scope_names, any_of(scopes))
        if hits.all():
            return np.ones(self.count, np.bool_)
        return hits[self.tables.spans[:, at.SCOPE]] if hits.any() else None

    def named(self, pattern: str) -> Mask:
        """Which spans have a name that fits."""
        return contains(self._names, pattern)[self.name_ids]

    def versions(self, number: int, version: Version) -> Ints:
        """For each span the version it speaks (see `version_key`), -1 where it is not known; `number` is the dialect's."""
        found = self._versions.get(number)
        if found is None:
            by_name = {scope: version_key(text) for scope, text in version.scopes.items()}
            of_scope = np.array([by_name.get(name, -1) for name in self._scope_names.to_list()], np.int64)
            found = of_scope[self.tables.spans[:, at.SCOPE]] if len(of_scope) else np.full(self.count, -1, np.int64)
            stated = self.row_of(version.resource, "resource") if version.resource else None
            if stated is not None:
                found = np.where(found < 0, self._stated_versions(stated), found)
            self._versions[number] = found
        return found

    def _stated_versions(self, rows: Ints) -> Ints:
        distinct, places = np.unique(rows, return_inverse=True)
        texts = self.tables.values(np.maximum(distinct, 0)).to_pylist()
        keys = [version_key(text or "") if row >= 0 else -1 for row, text in zip(distinct.tolist(), texts, strict=True)]
        return np.array(keys, np.int64)[places]

    @staticmethod
    def _scattered(rows: Ints, owners: Ints, count: int) -> Ints:
        places = np.full(count, -1, np.int64)
        places[owners] = rows
        return places


def places(numbers: Ints) -> pl.Series:
    """Row numbers to gather by, null for those below 0."""
    return pl.Series(pa.array(numbers, mask=numbers < 0))


def contains(said: pl.Series, pattern: str) -> Mask:
    """Which texts a pattern is found in."""
    mask: Mask = said.str.contains(pattern).fill_null(False).to_numpy()
    return mask
