"""Ids in, answers about them out: the kernels that tell new spans from repeated ones without asking the store."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors.jit import jit
from collectors.wire_fields import Buffer
from collectors.wire_tables import same

Ints = Any  # a one-dimensional int64 array
Hashes = Any  # a one-dimensional uint64 array
Flags = Any  # a one-dimensional bool array
Marks = Any  # a one-dimensional uint32 array

TRACE_BYTES, SPAN_BYTES = 16, 8


@jit
def mixed(value: Any) -> Any:
    """The bits of a number spread over all of its places (the finalizer of splitmix64): ids need not be random."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@jit
def word(buf: Buffer, pos: int) -> Any:
    """Eight bytes as a number."""
    value, first = np.uint64(0), np.uint64(pos)
    for i in range(np.uint64(8)):
        value |= np.uint64(buf[first + i]) << (np.uint64(8) * i)
    return value


@jit
def hash_ids(buf: Buffer, traces: Ints, spans: Ints, of_trace: Hashes, of_span: Hashes) -> None:
    """The hash of each row's trace id, and of its trace and span id together; `traces` and `spans` say where the ids begin."""
    for row in range(len(traces)):
        start = traces[row]
        trace = mixed(word(buf, start) + np.uint64(0x9E3779B97F4A7C15))
        trace = mixed(trace ^ word(buf, start + 8))
        of_trace[row] = trace
        of_span[row] = mixed(trace + word(buf, spans[row]))


@jit
def bytes_of_hex(text: Buffer, starts: Ints, width: int, out: Buffer) -> None:
    """The bytes that ids written as lower-case hex stand for, one behind the other."""
    for row in range(len(starts)):
        for i in range(width):
            high, low = text[starts[row] + 2 * i], text[starts[row] + 2 * i + 1]
            high -= 48 if high < 58 else 87
            low -= 48 if low < 58 else 87
            out[row * width + i] = (high << 4) | low


@jit
def mark_copies(buf: Buffer, traces: Ints, spans: Ints, hashes: Hashes, slots: Ints, copies: Flags) -> None:
    """Sets `copies` for every row whose trace and span id another row has too. `slots` is a table of -1, a power of two in size."""
    mask = np.uint64(len(slots) - 1)
    for row in range(len(hashes)):
        slot = hashes[row] & mask
        while True:
            held = slots[np.int64(slot)]
            if held < 0:
                slots[np.int64(slot)] = row
                break
            if (
                hashes[held] == hashes[row]
                and same(buf, traces[held], traces[row], TRACE_BYTES)
                and same(buf, spans[held], spans[row], SPAN_BYTES)
            ):
                copies[held] = copies[row] = True
                break
            slot = (slot + np.uint64(1)) & mask


@jit
def mark_of(value: Any) -> Any:
    """The part of a hash that a table keeps; 0 stands for an empty place."""
    mark = np.uint32(value & np.uint64(0xFFFFFFFF))
    return mark if mark else np.uint32(1)


@jit
def remember(marks: Marks, hashes: Hashes) -> None:
    """Puts hashes into a table of marks, a power of two in size and never full."""
    mask = np.uint64(len(marks) - 1)
    for row in range(len(hashes)):
        mark, place = mark_of(hashes[row]), (hashes[row] >> np.uint64(32)) & mask
        while marks[np.int64(place)] and marks[np.int64(place)] != mark:
            place = (place + np.uint64(1)) & mask
        marks[np.int64(place)] = mark


@jit
def look_up(marks: Marks, hashes: Hashes, found: Flags) -> None:
    """Sets `found` where a table may hold a hash; what was put in is always found."""
    mask = np.uint64(len(marks) - 1)
    for row in range(len(hashes)):
        mark, place = mark_of(hashes[row]), (hashes[row] >> np.uint64(32)) & mask
        while marks[np.int64(place)]:
            if marks[np.int64(place)] == mark:
                found[row] = True
                break
            place = (place + np.uint64(1)) & mask
