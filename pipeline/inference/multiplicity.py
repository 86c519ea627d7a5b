"""Evidence of many streams in, which of them to believe together out: e-BH for a current list, Bonferroni for what cannot be undone.

Evidence is an e-value: M of the detector over the blocks of a cycle (`log_e - log(blocks)`), or an e-process. e-BH holds under any
dependence at one moment (Wang and Ramdas; docs/statistics.md); what is latched over time needs `bonferroni_threshold`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


def ebh(log_e: Reals, q: float, weights: Reals | None = None) -> Truths:
    """Which streams are rejected at a false discovery rate of `q` at most: those of the largest k with the k-th E >= m / (q k).

    log_e: logarithms of e-values (not of M), NaN = no evidence. weights: what part of the streams' budget each one has; they are made to
    sum to 1, and a stream's E counts times its weight times m.
    """
    count = len(log_e)
    weighted = np.where(np.isnan(log_e), -np.inf, log_e)
    if count and weights is not None:
        with np.errstate(divide="ignore"):
            weighted = weighted + np.log(weights / np.sum(weights) * count)
    order = np.argsort(-weighted, kind="stable")
    ranks = np.arange(1, count + 1)
    passing = np.flatnonzero(weighted[order] >= np.log(count / (q * ranks)))
    rejected = np.zeros(count, dtype=bool)
    if passing.size:
        rejected[order[: passing[-1] + 1]] = True
    return rejected


def bonferroni_threshold(streams: float, blocks_per_cycle: float, alpha: float) -> float:
    """The M (not its logarithm) past which an action may be latched: over all streams and a whole cycle, wrong with probability `alpha`."""
    return streams * blocks_per_cycle / alpha
