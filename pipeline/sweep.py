"""Intervals at places in (lives on replicas, transfers on links), how many ran beside each and its part of the time out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


def swept(places: Ints, since_us: Ints, until_us: Ints) -> tuple[Ints, Reals]:
    """(how many intervals of its place hold the start of each, itself included; its part of the time its place is busy, in seconds).

    Intervals are half open, `since <= t < until`, and none is empty. At every moment the time is split evenly among those that run, so
    that the parts of a place's intervals add up to the time in which any of them ran.
    """
    count = len(places)
    times, owners = np.concatenate([since_us, until_us]), np.concatenate([places, places])
    order = np.lexsort((times, owners))
    times, owners = times[order], owners[order]
    running = np.cumsum(np.where(order < count, 1, -1))  # after each start or end; 0 after a place's last
    spent_us = np.zeros(2 * count)
    spent_us[1:] = np.cumsum(np.diff(times) / np.maximum(running[:-1], 1) * (running[:-1] > 0))
    position = np.empty(2 * count, np.int64)
    position[order] = np.arange(2 * count)
    last = _last_of_equals(owners, times)
    starts, ends = position[:count], position[count:]
    return running[last[starts]], (spent_us[ends] - spent_us[starts]) / 1e6


def _last_of_equals(owners: Ints, times: Ints) -> Ints:
    """For each event the position of the last one of the same place and moment."""
    places = np.arange(len(times))
    is_last = np.ones(len(times), np.bool_)
    is_last[:-1] = (owners[1:] != owners[:-1]) | (times[1:] != times[:-1])
    found: Ints = np.minimum.accumulate(np.where(is_last, places, len(times))[::-1])[::-1]
    return found
