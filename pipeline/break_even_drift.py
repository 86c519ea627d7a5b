"""Contrasts of each bucket's blocks in, whether what was said of a bucket still holds out: one detector per bucket, against its sign.

Arrays are flat, one place per stream: a bucket of a pair. A sign is that of blocks before, so a block never speaks against itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from pipeline.inference import break_even, detector, scale, waiting
from pipeline.inference.break_even import OPEN
from pipeline.inference.contrast import Contrast
from pipeline.inference.waiting import Waiting
from pipeline.measure import BLOCK_S

ALPHA = 0.05
BLOCKS_A_CYCLE = 86_400 // BLOCK_S
LAGS = scale.lags(BLOCK_S)
WIDTH = 1 + len(detector.LAM) + waiting.width(LAGS)
_HALF_LIFE_BLOCKS = scale.HALF_LIFE_S / BLOCK_S

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Drift:
    """What is kept of each stream: the sign that it is held to (OPEN: none yet), the evidence against that, and the contrasts' scale."""

    signs: Whole
    log_m: Reals
    scale: Waiting

    @classmethod
    def start(cls, streams: int) -> Self:
        """Streams of which nothing was said."""
        return cls(np.full(streams, OPEN, np.int64), detector.start(streams), Waiting.start(streams, LAGS))

    def numbers(self) -> Reals:
        """All that is kept, one row of WIDTH numbers a stream."""
        return np.concatenate([self.signs[:, None].astype(np.float64), self.log_m, self.scale.numbers()], axis=1)

    @classmethod
    def of_numbers(cls, numbers: Reals) -> Self:
        """What `numbers` gave, back."""
        signs, log_m, told = np.split(numbers, [1, 1 + len(detector.LAM)], axis=1)
        return cls(signs[:, 0].astype(np.int64), log_m, Waiting.of_numbers(told))


def step(drift: Drift, told: Contrast, buckets: int) -> Drift:
    """What is kept after one more block; NaN in its difference leaves a stream as it was. A pair has so many `buckets`."""
    against = break_even.contrary(drift.signs, -told.difference)
    log_m = detector.step(drift.log_m, against / scale.sd(drift.scale.known, told.ih))
    doubtful = detector.freezes(log_m, _least(buckets))
    learned = waiting.update(drift.scale, told.difference, told.ih, told.b, doubtful, _HALF_LIFE_BLOCKS)
    return Drift(drift.signs, log_m, learned)


def held(drift: Drift, signs: Whole, is_anew: Truths) -> Drift:
    """The streams held to the signs that are known now. One that has a sign keeps it, but where `is_anew`: the order was just refuted."""
    taken = np.where(is_anew | (drift.signs == OPEN), signs, drift.signs)
    return Drift(taken, np.where((taken == drift.signs)[:, None], drift.log_m, -np.inf), drift.scale)


def is_stale(drift: Drift, signs: Whole, buckets: int) -> Truths:
    """Whether a stream's sign holds no more: evidence against it, or an epoch that as a whole says the opposite (`signs`, those of now).

    False alarms per pair and day: ALPHA at most, over all of its buckets together.
    """
    is_opposite = (drift.signs != OPEN) & (signs == -drift.signs)
    return np.asarray(detector.alarms(drift.log_m, _least(buckets)) | is_opposite)


def inflation(drift: Drift, buckets: int) -> Reals:
    """By how much neighboring blocks that are alike inflate the variance of a pair's mean gains: (pairs, 1), 1 where that is not known.

    The largest of its buckets, those past their burn-in where there are any: one bucket's own is too noisy to hold a band (record 035).
    """
    state = drift.scale.known
    kappa = np.nan_to_num(scale.inflation(state), nan=1.0).reshape(-1, buckets)
    is_known = ~state.is_burning_in().reshape(-1, buckets)
    counts = is_known | ~is_known.any(axis=1, keepdims=True)
    return np.asarray(np.where(counts, kappa, 1.0).max(axis=1, keepdims=True, initial=1.0))


def restarted(drift: Drift, is_new: Truths) -> Drift:
    """The streams of `is_new` with nothing said of them. Their scale stays, without the blocks that it would compare across the change."""
    known = replace(drift.scale.known, recent=np.where(is_new[:, None], np.nan, drift.scale.known.recent))
    newer, older = (np.where(is_new[:, None], 0.0, lessons) for lessons in (drift.scale.newer, drift.scale.older))
    told = Waiting(known, newer, older, np.where(is_new, 0, drift.scale.gathered))
    return Drift(np.where(is_new, OPEN, drift.signs), np.where(is_new[:, None], -np.inf, drift.log_m), told)


def _least(buckets: int) -> float:
    return float(detector.threshold(BLOCKS_A_CYCLE * buckets, ALPHA))
