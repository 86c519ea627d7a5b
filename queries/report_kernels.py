"""Columns of requests and their group numbers in, sums and exact percentiles of each group out: compiled by Numba, run without the GIL.

All that call each other stand in this file: Numba's cache looks at no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
Codes = npt.NDArray[np.int32]
Wholes = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]  # of reals or of whole numbers
Bits = npt.NDArray[np.uint8]
Ordered = npt.NDArray[np.uint64]
_SIGN = np.uint64(1 << 63)
_LEAST, _MOST = np.uint64(0), np.uint64((1 << 64) - 1)
_FEW = 24  # sorted one by one
_A_BUCKET, _MOST_BITS = 8, 16  # values that a bucket is to hold; at most 2^16 buckets


def jit(function: Kernel) -> Kernel:
    """The function as a kernel that is compiled at its first call."""
    return cast("Kernel", numba.njit(cache=True, nogil=True, boundscheck=False)(function))


@jit
def extend(codes: Codes, places: Codes, numbers: Codes, size: np.int32) -> None:
    """Codes of several keys, the last of which has `size` different values: multiplies each by that, and adds the number of its place."""
    for row in range(len(codes)):
        codes[row] = codes[row] * size + numbers[places[row]]


@jit
def number(codes: Codes, numbers: Codes, found: Codes) -> int:
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
def count_known(groups: Codes, known: Bits, offset: int, counts: Wholes) -> None:
    """Counts the set bits of each group, the first row's at `offset`; no bits are counted as they were."""
    if len(known) == 0:
        return
    for row in range(len(groups)):
        bit = row + offset
        counts[groups[row]] += (known[bit >> 3] >> (bit & 7)) & 1


@jit
def add(groups: Codes, values: Numbers, known: Bits, offset: int, sums: Reals) -> None:
    """Adds up the values of each group; where `known` is not empty, those whose bit is set.

    The others are added beside them and left: a branch that is guessed wrong takes longer.
    """
    both, is_some = np.zeros(2 * len(sums)), len(known) > 0
    for row in range(len(groups)):
        bit = row + offset
        is_known = (known[bit >> 3] >> (bit & 7)) & 1 if is_some else 1
        both[2 * groups[row] + is_known] += values[row]
    for group in range(len(sums)):
        sums[group] += both[2 * group + 1]


@jit
def join_words(groups: Codes, places: Codes, words: Wholes, joined: Wholes) -> None:
    """Joins the bits of each group's words, of which each row has one, by its place."""
    for row in range(len(groups)):
        joined[groups[row]] |= words[places[row]]


@jit
def spread(groups: Codes, values: Numbers, known: Bits, offset: int, places: Wholes, ordered: Ordered) -> None:
    """Writes the values of each group from its place on, as whole numbers of the same order.

    Values whose bit is not set are written to the last place of `ordered`, which is nobody's.
    """
    both, is_some = np.full(2 * len(places), len(ordered) - 1), len(known) > 0
    for group in range(len(places)):
        both[2 * group + 1] = places[group]
    one = np.empty(1, np.float64)
    number = one.view(np.uint64)
    for row in range(len(groups)):
        bit = row + offset
        is_known = np.int64((known[bit >> 3] >> (bit & 7)) & 1 if is_some else 1)
        place = both[2 * groups[row] + is_known]
        both[2 * groups[row] + is_known] = place + is_known
        one[0] = values[row]
        if one[0] != one[0]:
            ordered[place] = _MOST
        elif number[0] & _SIGN:
            ordered[place] = ~number[0]
        else:
            ordered[place] = number[0] | _SIGN


@jit
def percentiles(ordered: Ordered, starts: Wholes, shares: Reals, first: int, last: int, found: Reals) -> None:
    """The percentiles of groups from `first` up to `last`, linear between two values. A group's values stand from its start on."""
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
def _lay(values: Ordered, buckets: Wholes) -> tuple[np.uint64, np.uint64]:
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
def _two(
    values: Ordered, below: int, above: int, least: np.uint64, shift: np.uint64, buckets: Wholes, inner: Wholes, scratch: Ordered
) -> tuple[np.uint64, np.uint64]:
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
def _bucket_of(place: int, bucket: int, before: int, buckets: Wholes) -> tuple[int, int]:
    """The bucket that holds a place of the order, and how many values come before it; looked for from a bucket on."""
    while before + buckets[bucket] <= place:
        before += buckets[bucket]
        bucket += 1
    return bucket, before


@jit
def _ends(values: Ordered, least: np.uint64, shift: np.uint64, low: int, high: int) -> tuple[np.uint64, np.uint64]:
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
def _sort(values: Ordered) -> None:
    """Sorts few values in their place."""
    for place in range(1, len(values)):
        value, before = values[place], place - 1
        while before >= 0 and values[before] > value:
            values[before + 1] = values[before]
            before -= 1
        values[before + 1] = value


def warm() -> None:
    """Runs every kernel once, on each kind of numbers: the compiled code is kept for the next process."""
    codes, bits, wholes, ordered = np.zeros(1, np.int32), np.ones(1, np.uint8), np.zeros(1, np.int64), np.zeros(1, np.uint64)
    extend(codes, codes, codes, np.int32(1))
    number(codes, np.full(1, -1, np.int32), codes)
    count_known(codes, bits, 0, wholes)
    join_words(codes, codes, wholes, wholes)
    for values in (np.zeros(1), np.zeros(1, np.int64)):
        add(codes, values, bits, 0, np.zeros(1))
        spread(codes, values, bits, 0, np.zeros(1, np.int64), ordered)
    percentiles(ordered, np.array([0, 1]), np.array([0.5]), 0, 1, np.zeros((1, 1)))
