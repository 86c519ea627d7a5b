"""Studentized contrasts in, evidence of a change for the worse out: a mixture Shiryaev-Roberts e-detector that may be read at any moment.

Under the null M - t is a supermartingale, so M reaches B / alpha within B blocks with probability alpha at most, however often one looks
(Shin, Ramdas and Rinaldo, e-detectors; docs/statistics.md). Its logarithm is kept: M itself overflows. The state is an array (streams, 6);
a restart goes on exactly where it stopped.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Tails = Literal["gaussian", "bennett"]

LAM: Reals = np.array([0.08, 0.15, 0.25, 0.4, 0.6, 0.9])  # shifts that are looked for, in standard deviations a block
CLIP = 4.0  # a contrast beyond it counts as this: lowers the mean under the null, so it is conservative
_COST = {
    "gaussian": LAM**2 / 2,
    "bennett": (np.exp(CLIP * LAM) - CLIP * LAM - 1) / CLIP**2,  # holds for any z <= CLIP with variance <= 1
}


def start(streams: int) -> Reals:
    """The state of streams that have seen no block: (streams, 6), logarithms of 0."""
    return np.full((streams, len(LAM)), -np.inf)


def step(log_m: Reals, z: Reals, tails: Tails = "gaussian") -> Reals:
    """The state after one more block with the contrasts `z` in standard deviations, positive = against the null.

    NaN in `z` leaves the stream as it was. `bennett` is for blocks below 5 minutes or heavy tails: it takes about twice as long.
    """
    bet = np.minimum(z, CLIP)[:, None]
    return np.where(np.isfinite(bet), LAM * bet - _COST[tails] + np.logaddexp(log_m, 0.0), log_m)


def log_e(log_m: Reals) -> Reals:
    """The logarithm of M, the mean over the shifts looked for, per stream; -inf = nothing yet."""
    top = np.max(log_m, axis=1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe[:, 0] + np.log(np.mean(np.exp(log_m - safe), axis=1)))


def threshold(blocks_per_cycle: float | Reals, alpha: float | Reals) -> float | Reals:
    """The M (not its logarithm) at which to alarm, for at most `alpha` false alarms per stream and peak cycle of so many blocks."""
    return blocks_per_cycle / alpha


def alarms(log_m: Reals, least: float | Reals) -> Truths:
    """Whether M has reached `least` (see `threshold`), per stream."""
    return np.asarray(log_e(log_m) >= np.log(least))


def freezes(log_m: Reals, least: float | Reals) -> Truths:
    """Whether M is past the root of `least`, per stream: then its scale stops learning."""
    return np.asarray(log_e(log_m) > 0.5 * np.log(least))
