"""Attribute rows in, the text of their values out: numbers are written behind the batch's bytes, and chosen rows gathered."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors import wire_layout as at
from collectors.jit import jit
from collectors.wire_fields import Buffer

Table = Any  # a two-dimensional int64 array
Ints = Any  # a one-dimensional int64 array

TRUE, FALSE = np.frombuffer(b"true", np.uint8), np.frombuffer(b"false", np.uint8)


@jit
def put_int(buf: Buffer, end: int, number: Any) -> int:
    """Writes a whole number at `end`; gives the position behind it."""
    left = np.uint64(number)
    if number < 0:
        buf[end] = 45
        end += 1
        left = np.uint64(0) - left
    digits = 1
    rest = left // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits):
        buf[end + digits - 1 - i] = 48 + left % np.uint64(10)
        left //= np.uint64(10)
    return end + digits


@jit
def write_numbers(buf: Buffer, end: int, attributes: Table, doubles: Ints) -> tuple[int, int]:
    """Writes whole numbers and truth values from `end` on, and points their rows there; puts the rows of reals into `doubles`.

    Gives the position behind the last, and how many reals there are.
    """
    count = 0
    for row in range(len(attributes)):
        kind = attributes[row, at.TYPE]
        if kind == at.DOUBLE:
            doubles[count] = row
            count += 1
        elif kind == at.INT:
            after = put_int(buf, end, attributes[row, at.BITS])
            attributes[row, at.VALUE], attributes[row, at.VALUE_LEN] = end, after - end
            end = after
        elif kind == at.BOOL:
            word = TRUE if attributes[row, at.BITS] != 0 else FALSE
            for i in range(len(word)):
                buf[end + i] = word[i]
            attributes[row, at.VALUE], attributes[row, at.VALUE_LEN] = end, len(word)
            end += len(word)
    return end, count


@jit
def point_to(attributes: Table, rows: Ints, start: int, offsets: Ints) -> None:
    """Points rows to texts that stand one behind the other from `start` on."""
    for place in range(len(rows)):
        row = rows[place]
        attributes[row, at.VALUE], attributes[row, at.VALUE_LEN] = start + offsets[place], offsets[place + 1] - offsets[place]


@jit
def value_offsets(attributes: Table, rows: Ints, offsets: Ints) -> None:
    """The running sums of the lengths of the rows' values."""
    total = 0
    offsets[0] = 0
    for place in range(len(rows)):
        total += attributes[rows[place], at.VALUE_LEN]
        offsets[place + 1] = total


@jit
def gather_values(buf: Buffer, attributes: Table, rows: Ints, offsets: Ints, out: Buffer) -> None:
    """Copies the rows' values, one behind the other."""
    for place in range(len(rows)):
        start, to = np.uint64(attributes[rows[place], at.VALUE]), np.uint64(offsets[place])
        for i in range(np.uint64(offsets[place + 1] - offsets[place])):
            out[to + i] = buf[start + i]
