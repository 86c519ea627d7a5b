"""Columns of requests and their group numbers in, sums and exact percentiles of each group out: compiled by Numba, run without the GIL.

All that call each other stand in this file: Numba's cache looks at no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_SIGN = np.uint64(1 << 63)
_LEAST, _MOST = np.uint64(0), np.uint64((1 << 64) - 1)
_FEW = 24  # sorted one by one
_A_BUCKET, _MOST_BITS = 8, 16  # values that a bucket is to hold; at most 2^16 buckets


def jit(function: Kernel) -> Kernel:
    """The function as a kernel that is compiled at its first call."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


@jit
def number(codes, numbers, found):  # type: ignore[no-untyped-def]
    """Puts in the place of each code its number, from 0 in the order of appearance; `numbers` is -1 for each code yet unseen.

    Gives how many different ones there are, which are in `found`.
    """
    count = 0
    for row in range(len(codes)):
        code = codes[row]
        if numbers[code] < 0:
            numbers[code] = count
            found[count] = code
            count += 1
        codes[row] = numbers[code]
    return count


@jit
def count_known(groups, known, offset, counts):  # type: ignore[no-untyped-def]
    """Counts the set bits of each group, the first row's at `offset`; no bits are counted as they were."""
    if len(known) == 0:
        return
    for row in range(len(groups)):
        bit = row + offset
        counts[groups[row]] += (known[bit >> 3] >> (bit & 7)) & 1


@jit
def add(groups, values, known, offset, sums):  # type: ignore[no-untyped-def]
    """Adds up the values of each group; where `known` is not empty, those whose bit is set."""
    is_some = len(known) > 0
    for row in range(len(groups)):
        bit = row + offset
        if is_some and not (known[bit >> 3] >> (bit & 7)) & 1:
            continue
        sums[groups[row]] += values[row]


@jit
def join_words(groups, places, words, joined):  # type: ignore[no-untyped-def]
    """Joins the bits of each group's words, of which each row has one, by its place."""
    for row in range(len(groups)):
        joined[groups[row]] |= words[places[row]]


@jit
def spread(groups, values, known, offset, places, ordered):  # type: ignore[no-untyped-def]
    """Writes the values of each group from its place on, as whole numbers of the same order; `places` moves on."""
    is_some = len(known) > 0
    one = np.empty(1, np.float64)
    number = one.view(np.uint64)
    for row in range(len(groups)):
        bit = row + offset
        if is_some and not (known[bit >> 3] >> (bit & 7)) & 1:
            continue
        place = places[groups[row]]
        places[groups[row]] = place + 1
        one[0] = values[row]
        if one[0] != one[0]:
            ordered[place] = _MOST
        elif number[0] & _SIGN:
            ordered[place] = ~number[0]
        else:
            ordered[place] = number[0] | _SIGN


@jit
def percentiles(ordered, starts, shares, first, last, found):  # type: ignore[no-untyped-def]
    """The percentiles of groups `first` to `last`, linear between two values; `ordered` has a group's values from its start to the next's."""
    longest = 0
    for group in range(first, last):
        longest = max(longest, starts[group + 1] - starts[group])
    scratch = np.empty(longest, np.uint64)
    buckets, inner = np.empty(1 << _MOST_BITS, np.int64), np.empty(1 << _MOST_BITS, np.int64)
    pair = np.empty(2, np.uint64)
    reals = pair.view(np.float64)
    for group in range(first, last):
        values = ordered[starts[group] : starts[group + 1]]
        if len(values) == 0:
            continue
        least, shift = _lay(values, buckets)
        for place in range(len(shares)):
            wanted = (len(values) - 1) * shares[place]
            below, above = int(np.floor(wanted)), int(np.ceil(wanted))
            pair[0], pair[1] = _two(values, below, above, least, shift, buckets, inner, scratch)
            for side in range(2):
                pair[side] = pair[side] ^ _SIGN if pair[side] & _SIGN else ~pair[side]
            found[group, place] = reals[0] if above == below else reals[0] + (reals[1] - reals[0]) * (wanted - below)


@jit
def _lay(values, buckets):  # type: ignore[no-untyped-def]
    """Counts values by their leading bits beyond the least: gives the least, and how many bits a bucket leaves out."""
    least, most = values[0], values[0]
    for value in values:
        least = min(least, value)
        most = max(most, value)
    bits = 1
    while bits < _MOST_BITS and (_A_BUCKET << bits) < len(values):
        bits += 1
    shift = np.uint64(0)
    while (most - least) >> shift >= np.uint64(1 << bits):
        shift += np.uint64(1)
    buckets[: (1 << bits)] = 0
    for value in values:
        buckets[(value - least) >> shift] += 1
    return least, shift


@jit
def _two(values, below, above, least, shift, buckets, inner, scratch):  # type: ignore[no-untyped-def]
    """The values at two neighboring places of the order: only the bucket that holds both is laid out again, until it is small."""
    while True:
        low, before = _bucket_of(below, 0, 0, buckets)
        high, _ = _bucket_of(above, low, before, buckets)
        if low != high:
            return _ends(values, least, shift, low, high)
        count = 0
        for value in values:
            if (value - least) >> shift == low:
                scratch[count] = value
                count += 1
        values, buckets = scratch[:count], inner
        below, above = below - before, above - before
        if shift == 0:
            return values[0], values[0]
        if count <= _FEW:
            _sort(values)
            return values[below], values[above]
        least, shift = _lay(values, buckets)


@jit
def _bucket_of(place, bucket, before, buckets):  # type: ignore[no-untyped-def]
    """The bucket that holds a place of the order, and how many values come before it; looked for from a bucket on."""
    while before + buckets[bucket] <= place:
        before += buckets[bucket]
        bucket += 1
    return bucket, before


@jit
def _ends(values, least, shift, low, high):  # type: ignore[no-untyped-def]
    """The greatest value of one bucket and the least of another."""
    greatest, smallest = _LEAST, _MOST
    for value in values:
        bucket = (value - least) >> shift
        if bucket == low:
            greatest = max(greatest, value)
        elif bucket == high:
            smallest = min(smallest, value)
    return greatest, smallest


@jit
def _sort(values):  # type: ignore[no-untyped-def]
    """Sorts few values in their place."""
    for place in range(1, len(values)):
        value, before = values[place], place - 1
        while before >= 0 and values[before] > value:
            values[before + 1] = values[before]
            before -= 1
        values[before + 1] = value
