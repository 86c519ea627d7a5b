"""Sums of one arm alone in, evidence out that a lever's premise is gone: acceptance, skipped tokens, a link's efficiency, a queue's growth.

It says "premise lost", never "net harm": there is no control. Without a pair in the same block the noise of topics and of load stays in, so
blocks are longer (at 5 minutes 13 % false alarms a day, at 20 minutes 2 %). What comes out goes into `scale` and
`detector` as any contrast does.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.inference import contrast
from pipeline.inference.contrast import LEAST_REQUESTS, Contrast, Reference, Sums

BASIS = "premise"
BLOCKS_TOGETHER = 4  # of 300 s
LAGS = 6  # K of the scale: two hours
ABOVE, BELOW = 1.0, -1.0  # on which side of its threshold a premise is lost

Reals = npt.NDArray[np.float64]


def block(arm: Sums, reference: Reference, threshold: float | Reals, lost: float | Reals) -> Contrast:
    """How far one (long) block lies on the lost side of `threshold`, relative to it, per stream: y = (a - R0 d) / dbar / R0.

    `threshold` is above 0, in the metric's unit; `lost` is ABOVE or BELOW. A block below 5 requests, or the first, says nothing (NaN).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = threshold * reference.treated_den / reference.treated_n
        rest = (arm.num - threshold * arm.den) / arm.n
        squares = arm.num_sq - 2 * threshold * arm.num_den + np.square(threshold) * arm.den_sq
        difference = lost * rest / unit
        spread = np.maximum(squares / arm.n - rest**2, 0.0) / unit**2
        is_told = (arm.n >= LEAST_REQUESTS) & np.isfinite(difference)
        values = (difference, 1 / arm.n, spread, np.broadcast_to(threshold, arm.n.shape), np.ones_like(arm.n))
    return Contrast(*(np.where(is_told, value, np.nan) for value in values))


def level(values: Reals, threshold: float | Reals, lost: float | Reals) -> Contrast:
    """The same of one number per block and stream that is no ratio over requests, such as a queue's slope, in its own unit.

    Its noise is read from the series alone: `b` and `ih` are 0.
    """
    is_told = np.isfinite(values)
    nothing = np.where(is_told, 0.0, np.nan)
    return Contrast(lost * (values - threshold), nothing, nothing, nothing + 1, nothing + 1)


def learn(reference: Reference, arm: Sums) -> Reference:
    """The reference after this block; call it after `block`."""
    return contrast.learn(reference, arm, Sums(*np.zeros((6, len(arm.n)))))
