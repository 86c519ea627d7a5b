"""From offsets to columns: the kernels that gather text, hex ids and distinct values out of a batch's buffer."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors.jit import jit
from collectors.wire_fields import Buffer
from collectors.wire_layout import KEY, OWNER, OWNER_KIND

Ints = Any  # a one-dimensional int64 array

PRIME, SEED = np.uint64(1099511628211), np.uint64(14695981039346656037)


@jit
def digest(buf: Buffer, start: int, length: int) -> Any:
    """The 64-bit FNV-1a hash of some bytes."""
    value = SEED
    for i in range(np.uint64(start), np.uint64(start + length)):
        value = (value ^ np.uint64(buf[i])) * PRIME
    return value


@jit
def same(buf: Buffer, a: int, b: int, length: int) -> bool:
    """Whether two ranges hold the same bytes."""
    first, second = np.uint64(a), np.uint64(b)  # an index without a sign is not looked at for being negative
    for i in range(np.uint64(length)):
        if buf[first + i] != buf[second + i]:
            return False
    return True


@jit
def intern(buf: Buffer, starts: Ints, lengths: Ints, slots: Ints, ids: Ints, firsts: Ints) -> int:
    """Numbers distinct byte ranges: `ids` gets each row's number, `firsts` the first row of each. Gives how many there are.

    `slots` is a table of -1, its size a power of two at least twice the number of rows.
    """
    mask = len(slots) - 1
    known = 0
    for row in range(len(starts)):
        slot = np.int64(digest(buf, starts[row], lengths[row]) & np.uint64(mask))
        while True:
            held = slots[slot]
            if held < 0:
                slots[slot] = known
                firsts[known] = row
                ids[row] = known
                known += 1
                break
            first = firsts[held]
            if lengths[first] == lengths[row] and same(buf, starts[first], starts[row], lengths[row]):
                ids[row] = held
                break
            slot = (slot + 1) & mask
    return known


@jit
def mark_repeats(attributes: Any, latest: Any, keep: Any) -> None:
    """Clears `keep` where the same owner sets the same key again later: the last one wins.

    `latest` is a table of -1, one row per owner kind, one column per key.
    """
    for row in range(len(attributes)):
        kind, key = attributes[row, OWNER_KIND], attributes[row, KEY]
        before = latest[kind, key]
        if before >= 0 and attributes[before, OWNER] == attributes[row, OWNER]:
            keep[before] = False
        latest[kind, key] = row


@jit
def gather(buf: Buffer, starts: Ints, lengths: Ints, offsets: Ints, out: Buffer) -> None:
    """Copies each range behind the one before it; `offsets` are the running sums of the lengths."""
    for row in range(len(starts)):
        start, to = np.uint64(starts[row]), np.uint64(offsets[row])
        for i in range(np.uint64(lengths[row])):
            out[to + i] = buf[start + i]


@jit
def hex_text(buf: Buffer, starts: Ints, width: int, out: Buffer) -> None:
    """Writes `width` bytes of each row as lower-case hex, one behind the other."""
    for row in range(len(starts)):
        start, to = np.uint64(starts[row]), np.uint64(row * width * 2)
        for i in range(np.uint64(width)):
            byte = buf[start + i]
            high, low = byte >> 4, byte & 15
            out[to + np.uint64(2) * i] = high + (48 if high < 10 else 87)
            out[to + np.uint64(2) * i + np.uint64(1)] = low + (48 if low < 10 else 87)
