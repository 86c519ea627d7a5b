"""Bins and counts in, dense histograms of many streams and what is read from them out.

A histogram is counts (streams, bins) over neighboring bins of the fixed logarithmic grid of `pipeline/cell_bins.py`, from `first` on. What
lies below it counts in the first bin, what lies above in the last. Bins of all arms and times are the same, so histograms add up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def dense(stream: Whole, number: Whole, n: Reals, streams: int, first: int, bins: int) -> Reals:
    """Counts (streams, bins) of rows of stream, bin number and n; rows of one place are added."""
    place = stream * bins + np.clip(number - first, 0, bins - 1)
    return np.bincount(place, weights=n, minlength=streams * bins).reshape(streams, bins).astype(np.float64)


def place(counts: Reals, share: float, failed: Reals | float = 0.0) -> Whole:
    """The bin in which `share` of a stream's values is reached, (streams,), as its place; -1 where there are none.

    `failed` requests lie above every bin: where they are needed to reach `share` it is the last bin.
    """
    return reached(np.cumsum(counts, axis=1), share, failed)


def reached(upto: Reals, share: float, failed: Reals | float = 0.0) -> Whole:
    """`place` of running totals (streams, bins), for those who have them."""
    total = upto[:, -1] + failed
    below = (upto < (share * total - 1e-9 * total)[:, None]).sum(axis=1)
    return np.where(total > 0, np.minimum(below, upto.shape[1] - 1), -1)


def above(counts: Reals, places: Whole, failed: Reals | float = 0.0) -> Reals:
    """How many of a stream's values lie in bins above the given one, failed requests with them, (streams,)."""
    upto = np.cumsum(counts, axis=1)
    held = np.take_along_axis(upto, np.maximum(places, 0)[:, None], axis=1)[:, 0]
    return np.asarray(upto[:, -1] - np.where(places >= 0, held, 0.0) + failed)
