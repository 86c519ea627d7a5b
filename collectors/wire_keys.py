"""Attribute keys in, their numbers out: spans of one kind state the same keys in the same order, so the last span's are tried first."""

from __future__ import annotations

from typing import Any

import numpy as np

from collectors import wire_layout as at
from collectors.jit import jit
from collectors.wire_fields import Buffer
from collectors.wire_tables import digest

Table = Any  # a two-dimensional int64 array
Slots = Any  # a one-dimensional int64 array


@jit
def equal(buf: Buffer, a: int, b: int, length: int) -> Any:
    """Whether two ranges hold the same bytes; without an early end, so that it is done many bytes at a time."""
    first, second = np.uint64(a), np.uint64(b)  # an index without a sign is not looked at for being negative
    differing = np.uint8(0)
    for i in range(np.uint64(length)):
        differing |= buf[first + i] ^ buf[second + i]
    return differing == 0


@jit
def key_number(buf: Buffer, start: int, length: int, counts: Table, attributes: Table, keys: Table, slots: Slots) -> Any:
    """The number of a key, a new one where it is new; -1 where the table of keys is full."""
    before = counts[at.ATTRIBUTES] - counts[at.PERIOD]
    if counts[at.PERIOD] > 0 and before >= 0:
        guess = attributes[before, at.KEY]
        if keys[guess, at.KEY_LEN] == length and equal(buf, keys[guess, at.KEY_START], start, length):
            return guess
    mask = np.uint64(len(slots) - 1)
    slot = digest(buf, start, length) & mask
    while slots[np.int64(slot)] >= 0:
        known = slots[np.int64(slot)]
        if keys[known, at.KEY_LEN] == length and equal(buf, keys[known, at.KEY_START], start, length):
            return known
        slot = (slot + np.uint64(1)) & mask
    number = counts[at.KEYS]
    if number >= len(keys):
        return -1
    keys[number, at.KEY_START], keys[number, at.KEY_LEN] = start, length
    slots[np.int64(slot)] = number
    counts[at.KEYS] += 1
    return number


@jit
def place_keys(buf: Buffer, keys: Table, known: int, slots: Slots) -> None:
    """Puts the first `known` keys into an empty table of slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(known):
        slot = digest(buf, keys[number, at.KEY_START], keys[number, at.KEY_LEN]) & mask
        while slots[np.int64(slot)] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[np.int64(slot)] = number
