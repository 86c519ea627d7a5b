"""Contrasts and the scale that they were held against in, out whether the last day of them looked as it should: spread and neighbors.

Half squared differences of contrasts, over the scale, tell both, as they tell the scale itself: an effect that is there all day, or comes
and goes with the hours, is no fault of the scale (docs/statistics.md). Contrasts while evidence of harm is up do not count, and a single
difference counts for 8 variances at most: a lever that turns, however much, is no fault of the scale either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from pipeline.inference import scale
from pipeline.inference.calibration import MOST_NEIGHBORS, MOST_SPREAD

MOST_HALF_SQUARE = 8.0
LEAST_CONTRASTS = 96  # of longer blocks it takes more than a day
WIDTH = 5

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Checks:
    """Per stream: contrasts of the day that goes on, and sums of their half squares over the scale's, with the next one and with far ones.

    `spread` and `neighbors` are of the last whole day, NaN before: the contrasts' deviation by what it should be, and the correlation of
    two in a row.
    """

    n: Reals
    near: Reals
    far: Reals
    spread: Reals
    neighbors: Reals

    @classmethod
    def start(cls, streams: int) -> Self:
        """Streams that have seen no block."""
        n, near, far = np.zeros((3, streams))
        spread, neighbors = np.full((2, streams), np.nan)
        return cls(n, near, far, spread, neighbors)

    def is_off(self) -> Truths:
        """Whether the last whole day had too much spread, or neighbors too much alike; False while there is none."""
        return np.asarray((self.spread > MOST_SPREAD) | self.is_alike())

    def is_alike(self) -> Truths:
        """Whether neighbors were too much alike: longer blocks would help."""
        return np.asarray(self.neighbors > MOST_NEIGHBORS)


def step(checks: Checks, known: scale.State, difference: Reals, sd: Reals, doubtful: Truths, blocks_a_day: Reals) -> Checks:
    """The checks after one more block; call it with the scale's state of before. `sd` is what the contrast was divided by.

    doubtful: where evidence of harm is past the root of the threshold: the contrast does not count.
    """
    _, learning, half_squares = scale.lesson(known, difference, doubtful)
    counts = learning & np.isfinite(sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        told = np.where(counts[:, None], np.minimum(half_squares / np.square(sd)[:, None], MOST_HALF_SQUARE), 0.0)
    n, near, far = checks.n + counts, checks.near + told[:, 0], checks.far + scale.far_mean(told, known.reach)
    whole = n >= np.maximum(blocks_a_day, LEAST_CONTRASTS)
    moved = whole & (far > 0)
    safe = np.where(moved, far, 1.0)
    spread = np.where(moved, np.sqrt(safe / np.maximum(n, 1)), checks.spread)
    neighbors = np.where(moved, 1.0 - near / safe, checks.neighbors)
    return Checks(np.where(whole, 0.0, n), np.where(whole, 0.0, near), np.where(whole, 0.0, far), spread, neighbors)
