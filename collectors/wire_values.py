"""AnyValue and KeyValue on the wire: the kernels that read and check attribute values."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors.jit import jit
from collectors.wire_fields import DEPTH_LIMIT, FIXED64, LENGTH, VARINT, Buffer, field, is_text
from collectors.wire_layout import ARRAY, BOOL, BYTES, DOUBLE, INT, KVLIST, STRING

IN_VALUE, IN_ARRAY, IN_LIST, IN_PAIR = 0, 1, 2, 3


@jit
def child_of(frame: int, number: int) -> int:
    """What a length-delimited field of a nested value is: a deeper frame, -1 text to check, -2 nothing of ours."""
    if frame == IN_VALUE:
        if number == STRING:
            return -1
        if number == ARRAY:
            return IN_ARRAY
        if number == KVLIST:
            return IN_LIST
    elif frame == IN_ARRAY and number == 1:
        return IN_VALUE
    elif frame == IN_LIST and number == 1:
        return IN_PAIR
    elif frame == IN_PAIR:
        if number == 1:
            return -1
        if number == 2:
            return IN_VALUE
    return -2


@jit
def is_sound(buf: Buffer, start: int, end: int, frame: int) -> bool:
    """Whether the bytes of a nested value are well formed all the way down, to a bounded depth."""
    stack = np.zeros((DEPTH_LIMIT, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = start, end, frame
    top = 0
    while top >= 0:
        pos, stop, kind = stack[top, 0], stack[top, 1], stack[top, 2]
        if pos == stop:
            top -= 1
            continue
        number, wire, low, high, after = field(buf, pos, stop)
        if after < 0:
            return False
        stack[top, 0] = after
        if wire == LENGTH:
            child = child_of(kind, number)
            if child == -1 and not is_text(buf, low, high):
                return False
            if child >= 0:
                top += 1
                if top == DEPTH_LIMIT:
                    return False
                stack[top, 0], stack[top, 1], stack[top, 2] = low, high, child
    return True


@jit
def value(buf: Buffer, start: int, end: int) -> tuple[int, Any, int, int]:
    """An AnyValue as (type, bits, offset, length): the last member set wins. Type -1 is broken, 0 no value.

    Arrays and lists give the range of the whole AnyValue, for a reader that knows how repeated members merge.
    """
    kind, offset, length = 0, 0, 0
    bits: Any = np.int64(0)
    pos = start
    while pos < end:
        number, wire, low, high, pos = field(buf, pos, end)
        if pos < 0:
            return -1, np.int64(0), 0, 0
        if wire == LENGTH and (number == STRING or number == BYTES):
            if number == STRING and not is_text(buf, low, high):
                return -1, np.int64(0), 0, 0
            kind, offset, length = number, low, high - low
        elif wire == LENGTH and (number == ARRAY or number == KVLIST):
            if not is_sound(buf, low, high, IN_ARRAY if number == ARRAY else IN_LIST):
                return -1, np.int64(0), 0, 0
            kind, offset, length = number, start, end - start
        elif (wire == VARINT and (number == BOOL or number == INT)) or (wire == FIXED64 and number == DOUBLE):
            kind, bits = number, low
    return kind, bits, offset, length
