"""Each bucket's gains per block in, out the value of the key at which the gain is zero: a point to show beside the band.

It is nothing to act on, and before the band has both a bucket that pays and one that loses it leans to where most blocks lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

from pipeline.inference.interval import LEAST_BLOCKS, Running

MIN_BUCKETS_OF_LINE = 4
LEAST_FIT_P = 0.05

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Line:
    """A line through the gains over log2 of the key, arrays (streams,): where it is zero, its slope per doubling, whether it fits."""

    points: Reals
    slopes: Reals
    fits: Truths


def centers(edges: Sequence[float]) -> Reals:
    """What stands for each bucket of these edges: the middle, in log2, of its whole numbers; the first begins at 1, the last doubles."""
    lower = np.array([1.0, *edges])
    upper = np.array([*(edge - 1 for edge in edges), 2 * edges[-1] - 1])
    return np.asarray(np.sqrt(lower * np.maximum(upper, lower)))


def isotonic(keys: Reals, sums: Running, *, falls: bool = True) -> Reals:
    """Where the gain is zero (streams,), in units of `keys` (buckets,); NaN where the gains seen have one sign.

    Pool-adjacent-violators with weights n / variance, and a straight line in log2 between the two buckets that the zero lies between.
    """
    weights = _weights(sums)
    means = sums.mean()
    return np.array([_crossing(np.log2(keys), mean, weight, falls) for mean, weight in zip(means, weights, strict=True)])


def line(keys: Reals, sums: Running, *, falls: bool = True) -> Line:
    """A weighted straight line over log2 of `keys` (buckets,): smoother than `isotonic`, where it fits.

    It fits with four buckets or more, a slope of the assumed sign, and a chi-squared test that does not reject it at 5 %.
    """
    weights = _weights(sums)
    means = np.nan_to_num(sums.mean())
    x = np.broadcast_to(np.log2(keys), means.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = weights.sum(axis=1)
        middle_x, middle = (weights * x).sum(axis=1) / total, (weights * means).sum(axis=1) / total
        off = x - middle_x[:, None]
        slopes = (weights * off * means).sum(axis=1) / (weights * off**2).sum(axis=1)
        points = np.exp2(middle_x - middle / slopes)
    left = (weights * (means - middle[:, None] - slopes[:, None] * off) ** 2).sum(axis=1)
    used = (weights > 0).sum(axis=1)
    fits = (used >= MIN_BUCKETS_OF_LINE) & (stats.chi2.sf(left, np.maximum(used - 2, 1)) > LEAST_FIT_P) & ((slopes < 0) == falls)
    return Line(np.where(fits, points, np.nan), slopes, fits)


def _weights(sums: Running) -> Reals:
    """n / variance; 0 in a bucket with too few blocks, or whose blocks do not differ."""
    variance = sums.variance()
    is_told = (sums.n >= LEAST_BLOCKS) & (variance > 0)
    return np.divide(sums.n, variance, out=np.zeros_like(sums.n), where=is_told)


def _crossing(x: Reals, means: Reals, weights: Reals, falls: bool) -> float:
    is_told = weights > 0
    if not is_told.any():
        return float("nan")
    x = x[is_told]
    fitted = optimize.isotonic_regression(means[is_told], weights=weights[is_told], increasing=not falls).x
    pays, loses = np.nonzero(fitted > 0)[0], np.nonzero(fitted < 0)[0]
    if not len(pays) or not len(loses):
        return float("nan")
    first, second = (pays[-1], loses[0]) if falls else (loses[-1], pays[0])
    share = fitted[first] / (fitted[first] - fitted[second])
    return float(np.exp2(x[first] + share * (x[second] - x[first])))
