"""Contrasts of arms that are alike in, out by how much the scale must be widened, and whether it is right at all.

An arm split in two at random (A/A) has no effect to be found: every alarm is a false one. phi multiplies the scale, so contrasts
studentized with a phi of 1 tell what any other would have given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.inference import detector

PHIS = tuple(float(phi) for phi in np.round(np.arange(1.0, 1.55, 0.05), 2))
MOST_SPREAD, MOST_NEIGHBORS = 1.2, 0.3  # beyond either a stream is not calibrated: no automatic action

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The smallest phi whose false alarms a cycle stay within half of alpha, None if none does; and the rate at each of PHIS."""

    phi: float | None
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """Of each stream's studentized contrasts: their standard deviation, lag-1 correlation, and whether both will do, (streams,) each."""

    spread: Reals
    neighbors: Reals
    calibrated: Truths


def smallest_phi(z: Reals, blocks_per_cycle: int, alpha: float) -> Calibrated:
    """What splits of one arm ask for. z: (blocks, streams), studentized with a phi of 1, NaN where there is none; a stream is one split.

    A rate is false alarms of either side a stream, side and cycle; after one, the detector begins anew.
    """
    rates = tuple(_rates(z, blocks_per_cycle, alpha).tolist())
    fitting = [phi for phi, rate in zip(PHIS, rates, strict=True) if rate <= alpha / 2]
    return Calibrated(fitting[0] if fitting else None, rates)


def check(z: Reals) -> Checked:
    """Whether a day of contrasts (blocks, streams), studentized with the phi in use and without an alarm, looks as it should."""
    told = np.isfinite(z)
    count = np.maximum(told.sum(axis=0), 1)
    centered = np.where(told, z - np.where(told, z, 0.0).sum(axis=0) / count, 0.0)
    variance = (centered**2).sum(axis=0) / count
    together = told[1:] & told[:-1]
    shared = (centered[1:] * centered[:-1]).sum(axis=0) / np.maximum(together.sum(axis=0), 1)
    neighbors = np.divide(shared, variance, out=np.zeros_like(shared), where=variance > 0)
    spread = np.sqrt(variance)
    return Checked(spread, neighbors, (spread <= MOST_SPREAD) & (neighbors <= MOST_NEIGHBORS))


def _rates(z: Reals, blocks_per_cycle: int, alpha: float) -> Reals:
    """The rate at each of PHIS. M begins anew at the threshold, so it needs no logarithm here."""
    least = detector.threshold(blocks_per_cycle, alpha)
    both = np.concatenate([z, -z], axis=1)
    m, alarms = np.zeros((len(PHIS), both.shape[1], len(detector.LAM))), np.zeros(len(PHIS))
    widths = np.array(PHIS)[:, None]
    for block in both:
        told = np.isfinite(block)
        bet = np.where(told, np.minimum(block / widths, detector.CLIP), 0.0)[..., None]
        m = np.where(told[:, None], (m + 1.0) * np.exp(detector.LAM * bet - detector.LAM**2 / 2), m)
        reached = m.mean(axis=2) >= least
        m[reached] = 0.0
        alarms += reached.sum(axis=1)
    cycles = np.isfinite(both).sum() / blocks_per_cycle
    return alarms / cycles if cycles else np.zeros(len(PHIS))
