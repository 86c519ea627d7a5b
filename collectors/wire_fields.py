"""Protobuf wire format, one field at a time: the kernels that every walk is made of.

Each length is checked against the end of the message that holds it; a position of -1 says that the bytes are broken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors.jit import jit

Buffer = Any  # a uint8 array; the kernels' types are Numba's business

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = 0, 1, 2, 3, 4, 5
DEPTH_LIMIT = 64
NUMBER_BYTES, TAG_BYTES = 10, 5  # the longest a number may be; the longest a tag or a length may be


@jit
def varint(buf: Buffer, pos: int, end: int, limit_bytes: int) -> tuple[Any, int]:
    """A base-128 number as (its 64 bits, the position after it); the position is -1 where it is cut or too long."""
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(limit_bytes):
        if pos >= end:
            return np.int64(0), -1
        byte = np.uint64(buf[np.uint64(pos)])
        pos += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value), pos
        shift += np.uint64(7)
    return np.int64(0), -1


@jit
def little_endian(buf: Buffer, pos: int, width: int) -> Any:
    """The number in `width` bytes at `pos`."""
    value, first = np.uint64(0), np.uint64(pos)
    for i in range(np.uint64(width)):
        value |= np.uint64(buf[first + i]) << (np.uint64(8) * i)
    return np.int64(value)


@jit
def skip_group(buf: Buffer, pos: int, end: int, number: int) -> int:
    """The position after the end tag of group `number`; -1 where it is broken."""
    open_groups = np.zeros(DEPTH_LIMIT, np.int64)
    open_groups[0] = number
    depth = 1
    while depth > 0:
        tag, pos = varint(buf, pos, end, TAG_BYTES)
        if pos < 0 or tag > 0xFFFFFFFF:
            return -1
        wire = tag & 7
        if wire == GROUP:
            if depth == DEPTH_LIMIT:
                return -1
            open_groups[depth] = tag >> 3
            depth += 1
        elif wire == GROUP_END:
            depth -= 1
            if open_groups[depth] != tag >> 3:
                return -1
        elif wire == VARINT:
            _, pos = varint(buf, pos, end, NUMBER_BYTES)
        elif wire == LENGTH:
            length, pos = varint(buf, pos, end, TAG_BYTES)
            pos = -1 if pos < 0 or length < 0 or length > end - pos else pos + length
        elif wire == FIXED64 or wire == FIXED32:
            width = 8 if wire == FIXED64 else 4
            pos = -1 if width > end - pos else pos + width
        else:
            return -1
        if pos < 0:
            return -1
    return pos


@jit
def field(buf: Buffer, pos: int, end: int) -> tuple[int, int, int, int, int]:
    """The field at `pos` as (number, wire type, value or start of its bytes, their end, next position); next is -1 when broken."""
    tag, pos = varint(buf, pos, end, TAG_BYTES)
    if pos < 0 or tag < 8 or tag > 0xFFFFFFFF:
        return 0, 0, 0, 0, -1
    number, wire = tag >> 3, tag & 7
    if wire == LENGTH:
        length, pos = varint(buf, pos, end, TAG_BYTES)
        if pos < 0 or length < 0 or length > end - pos:
            return 0, 0, 0, 0, -1
        return number, wire, pos, pos + length, pos + length
    if wire == VARINT:
        value, pos = varint(buf, pos, end, NUMBER_BYTES)
        return number, wire, value, 0, pos
    if wire == FIXED64:
        if end - pos < 8:
            return 0, 0, 0, 0, -1
        return number, wire, little_endian(buf, pos, 8), 0, pos + 8
    if wire == FIXED32:
        if end - pos < 4:
            return 0, 0, 0, 0, -1
        return number, wire, little_endian(buf, pos, 4), 0, pos + 4
    if wire == GROUP:
        return number, wire, 0, 0, skip_group(buf, pos, end, number)
    return 0, 0, 0, 0, -1


@jit
def continuation(buf: Buffer, pos: int, end: int, count: int) -> bool:
    """Whether `count` UTF-8 continuation bytes stand at `pos`."""
    if pos + count > end:
        return False
    for i in range(count):
        if buf[pos + i] & 0xC0 != 0x80:
            return False
    return True


@jit
def is_text(buf: Buffer, start: int, end: int) -> bool:
    """Whether the bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
    seen = np.uint8(0)
    for i in range(np.uint64(start), np.uint64(end)):  # an index without a sign is not looked at for being negative
        seen |= buf[i]
    if seen < 0x80:
        return True
    pos = start
    while pos < end:
        lead = buf[pos]
        follow = 0
        if lead >= 0x80:
            if lead < 0xC2 or lead > 0xF4:
                return False
            follow = 1 if lead < 0xE0 else (2 if lead < 0xF0 else 3)
            if not continuation(buf, pos + 1, end, follow):
                return False
            second = buf[pos + 1]
            if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
                return False
            if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
                return False
        pos += 1 + follow
    return True
