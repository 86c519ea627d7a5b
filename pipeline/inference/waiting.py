"""A scale whose newest lessons wait before they count: in a change of the effect the detector speaks before the change widens its scale.

A lasting shift of several standard deviations would otherwise widen the scale, and by what lags then share also its inflation, just while
it is to be found. Lessons are gathered for 2 K blocks, wait as long again, and then count; where evidence of harm rises meanwhile, all
that wait are dropped. A lever that pays for weeks goes on learning, which freezing on evidence of either side would end (record 030).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from pipeline.inference import scale
from pipeline.inference.scale import State, Truths

WAIT_LAGS = 2  # lessons count after once to twice as many times K blocks: two to four hours of blocks of five minutes

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is kept per stream: `known`, of which `scale.sd` is taken; and lessons that wait, newer and older, (streams, K + 3) each.

    A lesson's columns: half squares at lags 1..K, weight, noise and thinness, as in `scale.State`. gathered (streams,): blocks in `newer`.
    """

    known: State
    newer: Reals
    older: Reals
    gathered: npt.NDArray[np.int64]

    @classmethod
    def start(cls, streams: int, lags: int) -> Self:
        """States of streams that have seen no block."""
        newer, older = np.zeros((2, streams, lags + 3))
        return cls(State.start(streams, lags), newer, older, np.zeros(streams, np.int64))

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a stream: (streams, `width` of K)."""
        whole = np.stack([self.known.seen, self.known.reach, self.gathered], axis=1).astype(np.float64)
        return np.concatenate([self.known.recent, _lessons(self.known), self.newer, self.older, whole], axis=1)

    @classmethod
    def of_numbers(cls, numbers: Reals) -> Self:
        """What `numbers` gave, back."""
        lags = (numbers.shape[1] - width(0)) // 4
        recent, lessons, newer, older, whole = np.split(numbers, np.cumsum([lags, lags + 3, lags + 3, lags + 3]), axis=1)
        seen, reach, gathered = whole.astype(np.int64).T
        return cls(_with(replace(State.start(len(numbers), lags), recent=recent, seen=seen, reach=reach), lessons), newer, older, gathered)


def width(lags: int) -> int:
    """How many numbers are kept of a stream of so many lags."""
    return 4 * lags + 12


def update(
    waiting: Waiting, difference: Reals, ih: Reals, b: Reals, doubtful: Truths | bool = False, half_life_blocks: float | Reals = np.inf
) -> Waiting:
    """The state after one more block. Call it after `scale.sd(waiting.known, ...)`; NaN in `difference` leaves a stream as it was.

    doubtful: where evidence of harm is past the root of the threshold (`detector.freezes`): what waits is dropped, this block too. During
    burn-in lessons count at once.
    """
    known = waiting.known
    told, learning, half_squares = scale.lesson(known, difference, doubtful)
    fade = np.where(learning, np.power(0.5, 1.0 / half_life_blocks), 1.0)[:, None]
    lesson = np.concatenate([half_squares, np.stack([np.ones_like(b), b, ih], axis=1)], axis=1)
    lesson[~learning] = 0.0
    at_once = known.is_burning_in()
    drops = told & np.asarray(doubtful)
    newer, older = waiting.newer * fade, waiting.older * fade
    newer[~at_once] += lesson[~at_once]
    newer[drops], older[drops] = 0.0, 0.0
    gathered = np.where(drops, 0, waiting.gathered + (learning & ~at_once))
    full = gathered >= WAIT_LAGS * known.reach
    counted = _lessons(known) * fade
    counted[at_once] += lesson[at_once]
    counted[full] += older[full]
    older[full], newer[full] = newer[full], 0.0
    moved = replace(known, recent=scale.pushed(known, difference, told), seen=known.seen + told)
    return Waiting(_with(moved, counted), newer, older, np.where(full, 0, gathered))


def _lessons(state: State) -> Reals:
    return np.concatenate([state.squares, state.weight[:, None], state.noise[:, None], state.thinness[:, None]], axis=1)


def _with(state: State, lessons: Reals) -> State:
    return replace(state, squares=lessons[:, :-3], weight=lessons[:, -3], noise=lessons[:, -2], thinness=lessons[:, -1])
