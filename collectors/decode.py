"""Export bodies in, integer tables and Arrow columns out: the columnar decoder around the wire kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors import any_values, wire, wire_keys, wire_tables, wire_texts
from collectors import wire_layout as at
from collectors.columns import Bytes, Ints, as_strings, gathered

OWNER_KINDS = 5
FIRST_KEYS = 1024
TEXT_BYTES = 26  # at most, of a number as text
LIMIT_SPANS = 100_000
LIMIT_ATTRIBUTES = 4_000_000
LIMIT_EXPANDED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Checked:
    """What the door knows of one body: whether it is sound, and how many spans it holds."""

    sound: bool
    spans: int
    counts: Ints | None = field(default=None, compare=False)

    @property
    def attributes(self) -> int:
        """How many attributes it holds; 0 where they were not counted."""
        return 0 if self.counts is None else int(self.counts[at.ATTRIBUTES])

    @property
    def expanded_bytes(self) -> int:
        """What its resources and scopes take once for each span; 0 where that was not counted."""
        return 0 if self.counts is None else int(self.counts[at.EXPANDED])

    @property
    def packed(self) -> bytes:
        """What was counted, as bytes for `counted`."""
        return b"" if self.counts is None else self.counts.astype("<i8").tobytes()

    @property
    def too_large(self) -> str:
        """Why the body cannot be taken though it is sound; empty where it can. A small body can grow far beyond its size."""
        if self.spans > LIMIT_SPANS:
            return f"{self.spans:,} spans in one export; at most {LIMIT_SPANS:,} are taken"
        if self.attributes > LIMIT_ATTRIBUTES:
            return f"{self.attributes:,} attributes in one export; at most {LIMIT_ATTRIBUTES:,} are taken"
        if self.expanded_bytes > LIMIT_EXPANDED_BYTES:
            return f"resource and scope times spans are {self.expanded_bytes:,} bytes; at most {LIMIT_EXPANDED_BYTES:,} are taken"
        return ""


@dataclass(frozen=True, slots=True)
class Tables:
    """A batch of bodies as integer tables (see `wire_layout`) over one buffer, attributes with their key numbers.

    `attributes` holds only rows to be kept: the last of repeated keys, none of the dropped keys.
    """

    buffer: Bytes
    resources: Ints
    scopes: Ints
    spans: Ints
    attributes: Ints
    key_ids: Ints
    keys: list[str]
    events: Ints
    links: Ints

    def rows_of(self, owner_kind: int) -> Ints:
        """The numbers of the attribute rows of one kind of owner, in owner order."""
        return np.flatnonzero(self.attributes[:, at.OWNER_KIND] == owner_kind)

    def text(self, starts: Ints, lengths: Ints) -> pa.StringArray:
        """Byte ranges as an Arrow string column."""
        return gathered(self.buffer, starts, lengths)

    def values(self, rows: Ints) -> pa.StringArray:
        """The values of some attribute rows as text; null where the sender set none."""
        rows = np.ascontiguousarray(rows)
        offsets = np.empty(len(rows) + 1, np.int64)
        wire_texts.value_offsets(self.attributes, rows, offsets)
        out = np.empty(int(offsets[-1]), np.uint8)
        wire_texts.gather_values(self.buffer, self.attributes, rows, offsets, out)
        kinds = self.attributes[rows, at.TYPE]
        told = as_strings(offsets, out, kinds == 0)
        reals = kinds == at.DOUBLE
        return pc.replace_with_mask(told, pa.array(reals), self._reals_as_text(rows[reals], told.type)) if reals.any() else told

    def reals(self, rows: Ints) -> pa.DoubleArray:
        """The values of some attribute rows of type double."""
        return pa.array(np.ascontiguousarray(self.attributes[rows, at.BITS]).view(np.float64))

    def _reals_as_text(self, rows: Ints, kind: pa.DataType) -> pa.Array:
        return pc.cast(self.reals(rows), kind)


def counted(body: bytes, packed: bytes) -> Checked:
    """What `check` found of a body before, from its packed counts; checked now where they are not there."""
    if len(packed) != 8 * at.COUNTS:
        return check(body)
    counts = np.frombuffer(packed, "<i8").astype(np.int64)
    return Checked(True, int(counts[at.SPANS]), counts)


def check(body: bytes) -> Checked:
    """Walks one body without decoding it: the same bytes the reference parser refuses are not sound."""
    counts = np.zeros(at.COUNTS, np.int64)
    buffer = np.frombuffer(body, np.uint8)
    sound = wire.request(buffer, 0, len(buffer), False, counts, _NO_TABLES, 0) == at.OK
    return Checked(True, int(counts[at.SPANS]), counts) if sound else Checked(sound=False, spans=0)


def scan(bodies: Sequence[bytes], is_dropped: Any = None, counts_of: Sequence[Ints | None] | None = None) -> Tables:
    """Sound bodies as tables. `is_dropped(key)` says which keys of attributes, and in nested values, never leave this function.

    `counts_of` holds what `check` counted of each body, where that was done before.

    Raises:
        ValueError: a body is not sound; its place in the batch is named.
    """
    known = [check(body).counts for body in bodies] if counts_of is None else counts_of
    counts: Ints = np.array([one for one in known if one is not None], np.int64).reshape(-1, at.COUNTS).sum(axis=0)
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64) if bodies else np.zeros(0, np.int64)
    total = int(ends[-1]) if len(ends) else 0
    buffer = np.empty(total + TEXT_BYTES * int(counts[at.ATTRIBUTES]), np.uint8)  # room behind the bodies for numbers as text
    tables, written = _tables(counts), np.zeros(at.COUNTS, np.int64)
    for index, (body, end) in enumerate(zip(bodies, ends.tolist(), strict=True)):
        start = end - len(body)
        buffer[start:end] = np.frombuffer(body, np.uint8)
        tables = _written(buffer, start, end, written, tables, index)
    return _finished(buffer, total, tables, written, is_dropped)


def _written(buffer: Bytes, start: int, end: int, counts: Ints, tables: wire.Tables, index: int) -> wire.Tables:
    """Writes one body into the tables, the table of keys grown where they are more."""
    before = counts.copy()
    while wire.request(buffer, start, end, True, counts, tables, index) != at.OK:
        if not counts[at.FULL] or counts[at.KEYS] < len(tables[6]):
            msg = f"body {index} is not a sound trace export"
            raise ValueError(msg)
        known = int(counts[at.KEYS])
        counts[:] = before
        counts[at.KEYS] = known
        tables = (*tables[:6], *_more_keys(buffer, tables[6], known))
    return tables


def _more_keys(buffer: Bytes, keys: Ints, known: int) -> tuple[Ints, Ints]:
    more = np.zeros((8 * len(keys), at.KEY_COLUMNS), np.int64)
    more[:known] = keys[:known]
    slots = np.full(4 * len(more), -1, np.int64)
    wire_keys.place_keys(buffer, more, known, slots)
    return more, slots


def _finished(buffer: Bytes, total: int, tables: wire.Tables, counts: Ints, is_dropped: Any) -> Tables:
    places = (at.RESOURCES, at.SCOPES, at.SPANS, at.ATTRIBUTES, at.EVENTS, at.LINKS, at.KEYS)
    written = [table[: counts[place]] for table, place in zip(tables, places, strict=False)]
    resources, scopes, spans, attributes, events, links, keys_at = written
    keys = gathered(buffer, keys_at[:, at.KEY_START], keys_at[:, at.KEY_LEN]).to_pylist()
    keep = np.ones(len(attributes), np.bool_)
    latest = np.full((OWNER_KINDS, max(len(keys), 1)), -1, np.int64)
    wire_tables.mark_repeats(attributes, latest, keep)
    dropped = np.array([is_dropped is not None and is_dropped(key) for key in keys], np.bool_)
    if dropped.any():
        keep &= ~dropped[attributes[:, at.KEY]]
    if not keep.all():
        attributes = attributes[keep]
    buffer = _with_written_values(buffer, total, attributes, is_dropped)
    return Tables(buffer, resources, scopes, spans, attributes, np.ascontiguousarray(attributes[:, at.KEY]), keys, events, links)


def _with_written_values(buffer: Bytes, end: int, attributes: Ints, is_dropped: Any) -> Bytes:
    """The buffer with the text of every value that is not text yet from `end` on; the rows point there afterwards.

    Reals are written when they are asked for (`Tables.values`): most are stored as they are.
    """
    doubles = np.empty(len(attributes), np.int64)
    end, count = wire_texts.write_numbers(buffer, end, attributes, doubles)
    attributes[doubles[:count], at.VALUE_LEN] = 0
    rows = np.flatnonzero(attributes[:, at.TYPE] >= at.ARRAY)
    if len(rows):
        offsets, data = any_values.written(buffer, attributes[rows], is_dropped)
        wire_texts.point_to(attributes, rows, end, offsets)
        buffer = np.concatenate([buffer[:end], data])
    return buffer


def _tables(counts: Ints) -> wire.Tables:
    return (
        np.empty((counts[at.RESOURCES], at.RESOURCE_COLUMNS), np.int64),
        np.empty((counts[at.SCOPES], at.SCOPE_COLUMNS), np.int64),
        np.empty((counts[at.SPANS], at.SPAN_COLUMNS), np.int64),
        np.empty((counts[at.ATTRIBUTES], at.ATTRIBUTE_COLUMNS), np.int64),
        np.empty((counts[at.EVENTS], at.EVENT_COLUMNS), np.int64),
        np.empty((counts[at.LINKS], at.LINK_COLUMNS), np.int64),
        np.empty((FIRST_KEYS, at.KEY_COLUMNS), np.int64),
        np.full(4 * FIRST_KEYS, -1, np.int64),
    )


_NO_TABLES = _tables(np.zeros(at.COUNTS, np.int64))  # for walks that write nothing
