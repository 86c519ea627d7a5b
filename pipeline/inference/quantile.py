"""Histograms by block in, intervals of percentiles out that hold at every look: Woodruff's, with whole blocks as the units.

At a value x the block sums y = #(values <= x) - p * n have mean 0 if x is the percentile. x stays in the set while the sum of y is within
the anytime-valid t interval with the long-run variance of y (docs/tails.md). Sequences for independent requests miss the true median
on 94 % of days, since requests of one minute are slow together. For display: what alarms are exceedances (`exceedance.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference import interval

SPAN_BLOCKS = 12  # an hour of 5-minute blocks, as far as blocks are alike; four times as many are needed to tell how alike
MOST_INFLATION = 8.0

LEAST_BLOCKS = 10

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """A percentile: the middle of its bin, and the interval's ends, in the unit of the edges; NaN where there are no values.

    The ends are 0 and infinity with fewer than four spans of blocks, or where nothing bounds it.
    """

    value: float
    low: float
    high: float


def bounds(counts: Reals, edges: Reals, share: float, alpha: float, span_blocks: int = SPAN_BLOCKS) -> Bounds:
    """The percentile `share` (0..1) of one stream over all of its blocks. `counts` is (blocks, bins), `edges` (bins + 1,) rising.

    Blocks without values say nothing. Count failed requests in the last bin, and let its upper edge be infinity.
    """
    held = counts[counts.sum(axis=1) > 0]
    if not len(held):
        return Bounds(np.nan, np.nan, np.nan)
    y = np.cumsum(held, axis=1)[:, :-1] - share * held.sum(axis=1, keepdims=True)  # at each inner edge
    total = y.sum(axis=0)
    reached = np.flatnonzero(total >= -1e-9 * held.sum())
    middle = int(reached[0]) if len(reached) else held.shape[1] - 1
    radius = _radius(y, alpha, span_blocks)
    below, above = np.flatnonzero(total < -radius), np.flatnonzero(total > radius)
    low = float(edges[below.max() + 1]) if len(below) else 0.0
    high = float(edges[above.min() + 1]) if len(above) else float("inf")
    return Bounds(float(np.sqrt(edges[middle] * edges[middle + 1])), low, high)


def paired_ratio(treated: Reals, control: Reals, edges: Reals, share: float, alpha: float, span_blocks: int = SPAN_BLOCKS) -> Bounds:
    """Treated's percentile over control's, block by block: what both arms have in common cancels, so it is far narrower than `ratio`.

    Where does treated's share of values below reach that of control's below its percentile q? q is estimated, which moves both shares alike
    where the arms' distributions have the same shape about it. Both are (blocks, bins); the ends are known to a bin, 2 %.
    """
    mine, theirs = (np.cumsum(arm, axis=1) for arm in (treated, control))
    both = (mine[:, -1] > 0) & (theirs[:, -1] > 0)
    mine, theirs = mine[both], theirs[both]
    if not len(mine):
        return Bounds(np.nan, np.nan, np.nan)
    place = int(np.argmin(np.abs(theirs[:, :-1].sum(axis=0) / theirs[:, -1].sum() - share)))
    weight = mine[:, -1:] + theirs[:, -1:]
    y = weight * (mine[:, :-1] / mine[:, -1:] - theirs[:, [place]] / theirs[:, -1:])
    total, radius, over = y.sum(axis=0), _radius(y, alpha, span_blocks), edges[1:-1] / edges[place + 1]
    below, above = np.flatnonzero(total < -radius), np.flatnonzero(total > radius)
    return Bounds(
        float(over[int(np.argmin(np.abs(total)))]),
        float(over[below.max()]) if len(below) else 0.0,
        float(over[above.min()]) if len(above) else float("inf"),
    )


def ratio(treated: Bounds, control: Bounds) -> Bounds:
    """Treated's percentile over control's. Each at alpha / 2, the ends divided: conservative, and honest at every look."""
    return Bounds(_over(treated.value, control.value), _over(treated.low, control.high), _over(treated.high, control.low))


def difference(treated: Bounds, control: Bounds) -> Bounds:
    """Treated's percentile less control's, in their unit. Each at alpha / 2, the ends subtracted."""
    return Bounds(treated.value - control.value, treated.low - control.high, treated.high - control.low)


def sum_radius(y: Reals, blocks: Reals, alpha: float, span_blocks: int) -> Reals:
    """Half the width of the interval of each column's sum of block sums y (blocks, columns), whose ends hold at every look.

    y is 0 in blocks that say nothing; `blocks` counts the others. Infinite where they are fewer than ten.
    """
    told = np.maximum(blocks, 1.0)
    variance = long_run_variance(y, span_blocks) * len(y) / told
    return np.where(blocks >= LEAST_BLOCKS, told * interval.avt_radius(blocks, variance, alpha), np.inf)


def ends(upto: Reals, total: Reals, radius: Reals) -> tuple[Whole, Whole, Whole]:
    """The bins at which running counts (streams, bins) are nearest to a total, last below and first above its interval.

    The places are of upper edges: the percentile lies between the edges of the last two. -1 and the number of bins where nothing bounds it.
    """
    gap = upto - total[:, None]
    below, above = gap < -radius[:, None], gap > radius[:, None]
    bins = upto.shape[1]
    low = np.where(below.any(axis=1), bins - 1 - below[:, ::-1].argmax(axis=1), -1)
    high = np.where(above.any(axis=1), above.argmax(axis=1), bins)
    return np.abs(gap).argmin(axis=1), low, high


def long_run_variance(y: Reals, span_blocks: int = SPAN_BLOCKS) -> Reals:
    """The variance of a column's block sums (blocks, columns) times what neighbors have in common (Bartlett), 1 to 8 times.

    Widened by 1 / (1 - (lags + 1) / blocks): taking the mean off takes so much of it away.
    """
    rest = y - y.mean(axis=0)
    lags = min(span_blocks, len(y) // 4)
    variance = (rest**2).sum(axis=0) / max(len(y) - 1, 1)
    shared = [(1 - lag / (lags + 1)) * (rest[lag:] * rest[:-lag]).sum(axis=0) for lag in range(1, lags + 1)]
    together = variance + 2 * np.sum(shared, axis=0) / max(len(y) - 1, 1) if shared else variance
    return np.asarray(np.clip(together, variance, MOST_INFLATION * variance) / (1 - (lags + 1) / (len(y) + 1)))


def _radius(y: Reals, alpha: float, span_blocks: int) -> Reals:
    """Half the width of the interval of each column's sum; infinite with fewer than four spans of blocks."""
    blocks = len(y)
    if blocks < 4 * span_blocks:
        return np.full(y.shape[1], np.inf)
    n = np.full(y.shape[1], float(blocks))
    return np.asarray(blocks * interval.avt_radius(n, long_run_variance(y, span_blocks), alpha))


def _over(above: float, below: float) -> float:
    if np.isnan(above) or np.isnan(below):
        return float("nan")
    if below == 0:
        return float("inf")
    return 0.0 if np.isinf(below) else above / below
