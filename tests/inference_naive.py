"""Simulated days in, how often the usual tests would have alarmed out: t-tests on requests or replica-minutes, looked at every minute."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from inference_days import CONTROL, TREATED
from inference_watch import blocks
from scipy.special import ndtri, stdtr

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Unit = Literal["request", "cluster"]
_FIELDS = {"request": slice(0, 3), "cluster": slice(3, 6)}
LEAST_MINUTES = 30  # of a test over all data since the first minute


def significant(days: Reals, window_min: int | None, unit: Unit, alpha: float = 0.05) -> Truths:
    """Whether Welch's t-test over the trailing window (None = since the first minute) is significant: (days, minutes).

    unit: `request`, each request an observation; `cluster`, each mean of a replica's minute.
    """
    sums = np.cumsum(days[..., _FIELDS[unit]], axis=1)
    if window_min:
        sums = sums.copy()
        sums[:, window_min:] -= sums[:, :-window_min].copy()
    mean, error, freedom = _arms(sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (mean[..., TREATED] - mean[..., CONTROL]) / np.sqrt(error.sum(axis=-1))
        degrees = error.sum(axis=-1) ** 2 / (error**2 / freedom).sum(axis=-1)
        found = np.asarray(2 * stdtr(degrees, -np.abs(t)) < alpha)
    found[:, : (window_min or LEAST_MINUTES) - 1] = False
    return found


def paired(days: Reals, block_min: int, alpha: float = 0.05) -> Truths:
    """Whether the mean of all paired block contrasts so far is beyond its plain normal limits: (days, blocks)."""
    difference = np.array([block.difference for block in blocks(days, block_min)]).T
    told = np.isfinite(difference)
    value = np.where(told, difference, 0.0)
    n, s, ss = (np.cumsum(part, axis=1) for part in (told, value, value**2))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = s / np.sqrt(n * (ss - s**2 / n) / (n - 1))
    return np.asarray((n >= 3) & (np.abs(z) > -ndtri(alpha / 2)))


def per_day(found: Truths) -> float:
    """The share of days with an alarm at any look."""
    return float(np.mean(found.any(axis=1)))


def at_a_look(found: Truths) -> float:
    """The share of days that one look finds significant, the last of the day."""
    return float(np.mean(found[:, -1]))


def _arms(sums: Reals) -> tuple[Reals, Reals, Reals]:
    n, s1, s2 = sums[..., 0], sums[..., 1], sums[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = s1 / n
        variance = np.maximum(s2 - n * mean**2, 0.0) / (n - 1)
        return mean, variance / n, n - 1
