"""Byte ranges of a buffer in, Arrow columns out: text, hex ids, distinct values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collectors import wire_tables

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


def gathered(buffer: Bytes, starts: Ints, lengths: Ints, nulls: npt.NDArray[np.bool_] | None = None) -> pa.StringArray:
    """Byte ranges of a buffer as an Arrow string column."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    wire_tables.gather(buffer, np.ascontiguousarray(starts), np.ascontiguousarray(lengths), offsets, out)
    return as_strings(offsets, out, nulls)


def hex_ids(buffer: Bytes, starts: Ints, width: int) -> pa.StringArray:
    """Ids of `width` bytes as lower-case hex."""
    out = np.empty(len(starts) * width * 2, np.uint8)
    wire_tables.hex_text(buffer, np.ascontiguousarray(starts), width, out)
    offsets = np.arange(len(starts) + 1, dtype=np.int64) * (width * 2)
    return as_strings(offsets, out, None)


def interned(buffer: Bytes, starts: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Distinct byte ranges: each row's number, and the row where each number stands first."""
    rows = len(starts)
    size = 1 << max(4, int(2 * rows).bit_length())
    slots, ids, firsts = np.full(size, -1, np.int64), np.zeros(rows, np.int64), np.zeros(max(rows, 1), np.int64)
    starts, lengths = np.ascontiguousarray(starts), np.ascontiguousarray(lengths)
    known = wire_tables.intern(buffer, starts, lengths, slots, ids, firsts)
    return ids, firsts[:known]


def offsets_and_data(text: pa.StringArray) -> tuple[Ints, Bytes]:
    """The running byte offsets of a string column, from 0, and its bytes."""
    _, offsets, data = text.buffers()
    where = np.frombuffer(offsets, np.int32, len(text) + 1, text.offset * 4).astype(np.int64)
    return where - where[0], np.frombuffer(data, np.uint8)[where[0] : where[-1]]


def as_strings(offsets: Ints, data: Bytes, nulls: npt.NDArray[np.bool_] | None) -> pa.StringArray:
    """Bytes and their running offsets as an Arrow string column."""
    mask = None
    if nulls is not None and nulls.any():
        mask = pa.array(~nulls).buffers()[1]
    if offsets[-1] > np.iinfo(np.int32).max:
        return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data), mask)
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data), mask)
