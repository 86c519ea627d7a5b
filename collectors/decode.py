"""Export bodies in, integer tables and Arrow columns out: the columnar decoder around the wire kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collectors import any_values, wire, wire_tables
from collectors import wire_layout as at
from collectors.columns import Bytes, Ints, gathered, interned, offsets_and_data

OWNER_KINDS = 5
LIMIT_SPANS = 100_000
LIMIT_ATTRIBUTES = 4_000_000
LIMIT_EXPANDED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Checked:
    """What the door knows of one body: whether it is sound, and how many spans it holds."""

    sound: bool
    spans: int
    attributes: int = field(default=0, compare=False)
    expanded_bytes: int = field(default=0, compare=False)

    @property
    def too_large(self) -> str:
        """Why the body cannot be taken though it is sound; empty where it can. A small body can grow far beyond its size."""
        if self.spans > LIMIT_SPANS:
            return f"{self.spans} spans in one export; at most {LIMIT_SPANS} are taken"
        if self.attributes > LIMIT_ATTRIBUTES:
            return f"{self.attributes} attributes in one export; at most {LIMIT_ATTRIBUTES} are taken"
        if self.expanded_bytes > LIMIT_EXPANDED_BYTES:
            return f"resource and scope times spans are {self.expanded_bytes} bytes; at most {LIMIT_EXPANDED_BYTES} are taken"
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
        chosen = self.attributes[rows]
        return gathered(self.buffer, chosen[:, at.VALUE], chosen[:, at.VALUE_LEN], chosen[:, at.TYPE] == 0)


def check(body: bytes) -> Checked:
    """Walks one body without decoding it: the same bytes the reference parser refuses are not sound."""
    counts = np.zeros(at.COUNTS, np.int64)
    buffer = np.frombuffer(body, np.uint8)
    sound = wire.request(buffer, 0, len(buffer), False, counts, _empty_tables(), 0) == at.OK
    if not sound:
        return Checked(sound=False, spans=0)
    return Checked(True, int(counts[at.SPANS]), int(counts[at.ATTRIBUTES]), int(counts[at.EXPANDED]))


def scan(bodies: Sequence[bytes], is_dropped: Any = None) -> Tables:
    """Sound bodies as tables. `is_dropped(key)` says which keys of attributes, and in nested values, never leave this function.

    Raises:
        ValueError: a body is not sound; its place in the batch is named.
    """
    buffer = np.frombuffer(b"".join(bodies), np.uint8)
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64) if bodies else np.zeros(0, np.int64)
    starts = ends - np.array([len(body) for body in bodies], np.int64)
    counts = np.zeros(at.COUNTS, np.int64)
    empty = _empty_tables()
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if wire.request(buffer, start, end, False, counts, empty, index) != at.OK:
            msg = f"body {index} of {len(bodies)} is not a sound trace export"
            raise ValueError(msg)
    tables = _tables(counts)
    written = np.zeros(at.COUNTS, np.int64)
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        wire.request(buffer, start, end, True, written, tables, index)
    return _with_keys(buffer, tables, is_dropped)


def _with_keys(buffer: Bytes, tables: wire.Tables, is_dropped: Any) -> Tables:
    resources, scopes, spans, attributes, events, links = tables
    key_ids, firsts = interned(buffer, attributes[:, at.KEY], attributes[:, at.KEY_LEN])
    keys = gathered(buffer, attributes[firsts, at.KEY], attributes[firsts, at.KEY_LEN]).to_pylist()
    keep = np.ones(len(attributes), np.bool_)
    latest = np.full((OWNER_KINDS, max(len(keys), 1)), -1, np.int64)
    owner_kind, owner = np.ascontiguousarray(attributes[:, at.OWNER_KIND]), np.ascontiguousarray(attributes[:, at.OWNER])
    wire_tables.mark_repeats(owner_kind, owner, key_ids, latest, keep)
    if is_dropped is not None and keys:
        keep &= ~np.array([is_dropped(key) for key in keys], np.bool_)[key_ids]
    attributes, key_ids = attributes[keep], key_ids[keep]
    buffer = _with_written_values(buffer, attributes, is_dropped)
    return Tables(buffer, resources, scopes, spans, attributes, key_ids, keys, events, links)


def _with_written_values(buffer: Bytes, attributes: Ints, is_dropped: Any) -> Bytes:
    """The buffer with the text of every value that is not text yet behind it; the rows point there afterwards."""
    pieces = [buffer]
    end = len(buffer)
    for kind, write in ((at.INT, _written_ints), (at.DOUBLE, _written_doubles), (at.BOOL, _written_bools)):
        rows = np.flatnonzero(attributes[:, at.TYPE] == kind)
        if len(rows):
            offsets, data = offsets_and_data(write(attributes[rows, at.BITS]))
            attributes[rows, at.VALUE], attributes[rows, at.VALUE_LEN] = end + offsets[:-1], np.diff(offsets)
            pieces.append(data)
            end += len(data)
    rows = np.flatnonzero(attributes[:, at.TYPE] >= at.ARRAY)
    if len(rows):
        offsets, data = any_values.written(buffer, attributes[rows], is_dropped)
        attributes[rows, at.VALUE], attributes[rows, at.VALUE_LEN] = end + offsets[:-1], np.diff(offsets)
        pieces.append(data)
    return np.concatenate(pieces) if len(pieces) > 1 else buffer


def _written_ints(bits: Ints) -> pa.StringArray:
    return pc.cast(pa.array(bits), pa.string())


def _written_doubles(bits: Ints) -> pa.StringArray:
    return pc.cast(pa.array(np.ascontiguousarray(bits).view(np.float64)), pa.string())


def _written_bools(bits: Ints) -> pa.StringArray:
    return pc.if_else(pa.array(bits != 0), "true", "false")


def _tables(counts: Ints) -> wire.Tables:
    return (
        np.zeros((counts[at.RESOURCES], at.RESOURCE_COLUMNS), np.int64),
        np.zeros((counts[at.SCOPES], at.SCOPE_COLUMNS), np.int64),
        np.zeros((counts[at.SPANS], at.SPAN_COLUMNS), np.int64),
        np.zeros((counts[at.ATTRIBUTES], at.ATTRIBUTE_COLUMNS), np.int64),
        np.zeros((counts[at.EVENTS], at.EVENT_COLUMNS), np.int64),
        np.zeros((counts[at.LINKS], at.LINK_COLUMNS), np.int64),
    )


def _empty_tables() -> wire.Tables:
    return _tables(np.zeros(at.COUNTS, np.int64))
