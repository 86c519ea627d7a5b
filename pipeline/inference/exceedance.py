"""Histograms of two arms in, block contrasts of their tails out: how many more of treated's requests exceed control's earlier percentile.

The threshold is control's percentile of the last hour, this block left out: the treatment cannot move it, and no value of the block chooses
it. So a tail is an ordinary block contrast, where intervals of percentiles of independent requests fail under load (docs/tails.md). A
request that failed, or still runs, exceeds every threshold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.inference.block_length import LEAST_EXCEEDANCES
from pipeline.inference.contrast import Contrast
from pipeline.inference.histogram import above, reached

WINDOW_S = 3_600.0

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def threshold(earlier: Reals, share: float, failed: Reals | float = 0.0) -> Whole:
    """The bin that `share` of control's earlier requests do not exceed, (streams,), as its place; -1 = too few to tell.

    `earlier` (streams, bins) adds up control's blocks of the last 60 minutes, or more for thin traffic, without the block that is judged.
    """
    return limit(np.cumsum(earlier, axis=1), share, failed)


def limit(upto: Reals, share: float, failed: Reals | float = 0.0) -> Whole:
    """`threshold` of running totals (streams, bins), for those who have them."""
    total = upto[:, -1] + failed
    return np.where(total * (1 - share) >= LEAST_EXCEEDANCES - 1e-9, reached(upto, share, failed), -1)


def block(
    treated: Reals,
    control: Reals,
    threshold: Whole,
    share: float,
    theta0: float = 1.0,
    failed: tuple[Reals | float, Reals | float] = (0.0, 0.0),
) -> Contrast:
    """The contrast of exceedances of one block, per stream; NaN where fewer than ten of an arm's requests are expected to exceed.

    Both arms are histograms (streams, bins); `failed` counts requests of treated and control that failed. The difference is relative to the
    share 1 - `share` that should exceed: 0.5 = half as many again. Fixed in advance, since a rare event's own level is noise.
    """
    n = [arm.sum(axis=1) + lost for arm, lost in zip((treated, control), failed, strict=True)]
    over = [above(arm, threshold, lost) for arm, lost in zip((treated, control), failed, strict=True)]
    expected = 1 - share
    told = (threshold >= 0) & (np.minimum(*n) * expected >= LEAST_EXCEEDANCES - 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        mine, theirs = over[0] / n[0], over[1] / n[1]
        large = np.where(n[0] >= n[1], mine, theirs)
        values = (
            (mine - theta0 * theirs) / expected,
            1 / n[0] + theta0**2 / n[1],
            large * (1 - large) / expected**2,
            np.full(len(mine), expected),
            n[0] / (n[0] + n[1]),
        )
    return Contrast(*(np.where(told, value, np.nan) for value in values))
