"""Sums of two groups by stratum and block in, gains of the treated against requests alike in the same block out.

A stratum is a segment cut further by what was met before treatment, such as the batch at admission. Strata of a stream are taken together
with the weight n_T n_C / (n_T + n_C): where one group is missing nothing is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from pipeline.inference import contrast, interval
from pipeline.inference.contrast import Reference, Sums

LEAST_BLOCKS_BEFORE = 12

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Matched:
    """Contrasts (positive = treated is worse), an array (streams, blocks), NaN where no stratum had both groups.

    shares: treated's share of the compared requests; coverage: the share of requests without the lever that had a match; both (streams,).
    """

    differences: Reals
    shares: Reals
    coverage: Reals


def matched(treated: Sums, without: Sums, streams: Whole, count: int, sign: float = 1.0) -> Matched:
    """The contrasts of `count` streams; sums are arrays (strata, blocks), `streams` (strata,) says of which stream each stratum is.

    sign: 1 where lower is better, -1 where higher is.
    """
    reference = Reference.start(len(streams))
    found: list[Reals] = []
    met: Reals = np.zeros(count)
    weighed, shared = met, met
    for block in range(treated.n.shape[1]):
        one, other = _at(treated, block), _at(without, block)
        told = contrast.block(one, other, reference, sign=sign)
        known = np.isfinite(told.difference)
        weight = np.where(known, one.n * other.n / np.maximum(one.n + other.n, 1), 0.0)
        parts = (np.where(known, weight * of, 0.0) for of in (1.0, told.difference, told.share))
        total, summed, share = (np.bincount(streams, part, count).astype(np.float64) for part in parts)
        found.append(_divided(summed, total, np.nan))
        met = met + np.bincount(streams, np.where(known, other.n, 0.0), count)
        weighed, shared = weighed + total, shared + share
        reference = contrast.learn(reference, one, other)
    asked = np.bincount(streams, without.n.sum(axis=1), count).astype(np.float64)
    differences = np.array(found).reshape(-1, count).T
    return Matched(differences, _divided(shared, weighed, np.nan), _divided(met, asked, 0.0))


def intervals(differences: Reals, shares: Reals, alpha: float, error: float | Reals = 0.0, sign: float = 1.0) -> tuple[Reals, Reals, Reals]:
    """The gain of each stream against requests without the lever, its low and its high end (streams,), which hold at any look.

    Contrasts are averaged and then made gains: the mean of each block's gain leans to loss where few requests had no lever. `error` is a
    standard error that every block shares, such as that of replicas' levels: half of alpha goes to it. Infinite below 3 blocks.
    """
    told = np.isfinite(differences)
    values = np.where(told, differences, 0.0)
    seen = interval.Running(told.sum(axis=1).astype(np.float64), values.sum(axis=1), (values**2).sum(axis=1))
    has_error = bool(np.any(error))
    low, high = interval.avt(seen.n, seen.mean(), seen.variance(), alpha / 2 if has_error else alpha)
    wider = -ndtri(alpha / 4) * np.asarray(error)
    ends = (seen.mean(), high + wider, low - wider)  # the worst contrast is the least gain
    mean, least, most = (
        np.where(np.isfinite(end), contrast.gain(np.where(np.isfinite(end), end, 0.0), shares, sign), -end) for end in ends
    )
    return mean, least, most


def _divided(of: Reals, by: Reals, otherwise: float) -> Reals:
    return np.asarray(np.divide(of, by, out=np.full(len(of), otherwise), where=by > 0))


def _at(sums: Sums, block: int) -> Sums:
    return Sums(*(part[:, block] for part in (sums.n, sums.num, sums.den, sums.num_sq, sums.den_sq, sums.num_den)))
