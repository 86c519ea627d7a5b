"""Counts of two arms in, evidence that treated has more or fewer of them than its share says, out: exact, without a variance to estimate.

Given that one happens, it is treated's with probability `share`. For odds r times those, q = r * share / (r * share + 1 - share), and each
count multiplies the evidence by its likelihood ratio: a conditional Bernoulli e-process (docs/tails.md). Counts must come one by one
and independently: collapse bursts first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def log_ratios(treated: Reals, control: Reals, share: Reals | float, odds: Reals) -> Reals:
    """What one block adds to the log-likelihood ratio of each odds against 1: shape (streams, odds).

    `share` is treated's share of what was offered in that block, ratio 0..1. No count, an unknown one or a share of 0 or 1 adds 0.
    """
    share = np.broadcast_to(np.asarray(share, dtype=np.float64), treated.shape)
    told = np.isfinite(treated) & np.isfinite(control) & (share > 0) & (share < 1)
    pi = np.where(told, share, 0.5)[:, None]
    both = np.log1p((odds - 1) * pi)  # ln(odds * pi + 1 - pi)
    mine, theirs = (np.where(told, count, 0.0)[:, None] for count in (treated, control))
    return np.asarray(mine * np.log(odds) - (mine + theirs) * both)


def changed(log_m: Reals, ratios: Reals) -> Reals:
    """The Shiryaev-Roberts state after a block of these log ratios: M <- e^ratio * (M + 1), in logs, (streams, odds), -inf at start.

    A block without counts leaves M + 1, as a block without evidence does: divide the blocks of a cycle by alpha for the threshold.
    """
    return np.asarray(ratios + np.logaddexp(log_m, 0.0))


def log_mean(log_values: Reals) -> Reals:
    """The log of the mean over the odds, per stream; -inf where all are."""
    top = log_values.max(axis=1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(log_values - safe).mean(axis=1)) + safe[:, 0])
