"""Block contrasts in, the standard deviation that the next one should have out: predictable, and not widened by the shift it must show.

Half squared differences of contrasts k blocks apart, k = 1..K, measure the variance: a lasting shift touches K of them and no more, where a
centered variance would take in all of it. The farther half of the lags gives the variance, the nearer ones how much of it neighbors share
(a Bartlett long-run variance). What requests alone explain (b / n) is split off, so the scale follows the traffic of each block
(docs/statistics.md; record 030 says why the far lags are averaged).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

PHI = 1.05  # times the standard deviation; `leverwatch calibrate` finds it by splits of one arm (docs/statistics.md)
LEAST_LAGS = 4
BURN_IN_LAGS = 4  # times its lags, in blocks: before that a scale says nothing
SPAN_S = 3600.0  # lags reach back at least so far
MOST_INFLATION = 8.0  # of the variance, by what blocks have in common with their neighbors
LEAST_CLUSTER = 0.05  # of the requests' own noise is always left to replicas and time
HALF_LIFE_S = 86_400.0

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class State:
    """What is kept per stream. All is plain arrays: stored and loaded, they go on exactly where they stopped.

    recent (streams, K): the last K contrasts, newest first, NaN = not yet. squares (streams, K): fading sums of half squared differences at
    lags 1..K. weight, noise, thinness (streams,): fading count of those sums, and fading sums of b and of ih over the same blocks.
    seen (streams,): blocks with a contrast so far. reach (streams,): how many of the K lags a stream uses, fewer where blocks are longer.
    """

    recent: Reals
    squares: Reals
    weight: Reals
    noise: Reals
    thinness: Reals
    seen: Whole
    reach: Whole

    @classmethod
    def start(cls, streams: int, lags: int) -> Self:
        """States of streams that have seen no block, and use all lags."""
        weight, noise, thinness = np.zeros((3, streams))
        seen, reach = np.zeros(streams, np.int64), np.full(streams, lags, np.int64)
        return cls(np.full((streams, lags), np.nan), np.zeros((streams, lags)), weight, noise, thinness, seen, reach)

    def is_burning_in(self) -> Truths:
        """Whether a stream has seen fewer than 4 times its lags, so that its scale is not known yet."""
        return np.asarray(self.seen < BURN_IN_LAGS * self.reach)


def lags(block_s: float, rotation_s: float = 0.0) -> int:
    """K for blocks of `block_s` seconds: at least an hour, two turns of the control replicas, and 4 blocks."""
    return max(LEAST_LAGS, int(np.ceil(SPAN_S / block_s)), int(np.ceil(2 * rotation_s / block_s)))


def sd(state: State, ih: Reals, phi: float | Reals = PHI) -> Reals:
    """The standard deviation that a contrast with this `ih` should have (relative), per stream; NaN during burn-in (4 K blocks).

    NaN too where nothing ever moved: without a scale there is no evidence. K is what a stream reaches back.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        request = state.noise / state.weight
        from_requests = request * state.thinness / state.weight
        cluster = np.maximum(long_run_variance(state) - from_requests, LEAST_CLUSTER * from_requests)
        spread = phi * np.sqrt(cluster + request * ih)
    return np.where(~state.is_burning_in() & (spread > 0), spread, np.nan)


def inflation(state: State) -> Reals:
    """By how much the variance of a sum of contrasts exceeds that of independent ones, per stream: 1..8, kappa in docs/statistics.md."""
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = 1.0 - state.squares / _far(state)[:, None]
    near = _nearness(state.recent.shape[1])[state.reach]
    return np.asarray(np.clip(1.0 + 2.0 * np.einsum("sk,sk->s", correlations, near), 1.0, MOST_INFLATION))


def long_run_variance(state: State) -> Reals:
    """Variance of a contrast times `inflation`, per stream; NaN before the first difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(inflation(state) * _far(state) / state.weight)


def update(state: State, difference: Reals, ih: Reals, b: Reals, frozen: Truths | bool = False, half_life_blocks: float = np.inf) -> State:
    """The state after one more block. Call it after `sd`, so that a block never sets its own scale.

    A stream without a contrast (NaN) is carried on unchanged. A frozen one (its evidence is past the root of the threshold) moves its lags
    on and learns nothing. A block counts half after `half_life_blocks` more: HALF_LIFE_S over the block's length, in service.
    """
    told, learning, half_squares = lesson(state, difference, frozen)
    fade = np.where(learning, 0.5 ** (1.0 / half_life_blocks), 1.0)
    return State(
        recent=pushed(state, difference, told),
        squares=state.squares * fade[:, None] + half_squares,
        weight=state.weight * fade + learning,
        noise=state.noise * fade + np.where(learning, b, 0.0),
        thinness=state.thinness * fade + np.where(learning, ih, 0.0),
        seen=state.seen + told,
        reach=state.reach,
    )


def lesson(state: State, difference: Reals, frozen: Truths | bool = False) -> tuple[Truths, Truths, Reals]:
    """(where there is a contrast, where it can be learned from, its half squared differences at each lag, 0 where not), per stream."""
    told = np.isfinite(difference)
    farthest = np.take_along_axis(state.recent, state.reach[:, None] - 1, axis=1)[:, 0]
    learning = told & np.isfinite(farthest) & ~np.asarray(frozen)
    half_squares = difference[:, None] - state.recent
    half_squares *= half_squares
    half_squares *= 0.5
    half_squares[~learning] = 0.0
    half_squares[np.arange(half_squares.shape[1]) >= state.reach[:, None]] = 0.0
    return told, learning, half_squares


def pushed(state: State, difference: Reals, told: Truths) -> Reals:
    """The last K contrasts after this one, per stream; unchanged where there is none."""
    moved = np.concatenate([difference[:, None], state.recent[:, :-1]], axis=1)
    moved[~told] = state.recent[~told]
    return moved


def far_mean(at_lags: Reals, reach: Whole) -> Reals:
    """The mean over the farther half of the lags that a stream reaches back, of values (streams, K), per stream."""
    return np.asarray(np.einsum("sk,sk->s", at_lags, _farness(at_lags.shape[1])[reach]))


def _far(state: State) -> Reals:
    """The sum of half squared differences at the farther half of the lags, their mean."""
    return far_mean(state.squares, state.reach)


@functools.cache
def _farness(lags: int) -> Reals:
    """What each lag weighs in the mean of the farther half, for each reach from 0 to `lags`: (lags + 1, lags)."""
    reach, lag = np.arange(lags + 1)[:, None], np.arange(lags)
    chosen = (lag >= (reach + 1) // 2) & (lag < reach)
    return np.asarray(chosen / np.maximum(chosen.sum(axis=1, keepdims=True), 1))


@functools.cache
def _nearness(lags: int) -> Reals:
    """Bartlett's weight of each lag, for each reach from 0 to `lags`: (lags + 1, lags)."""
    reach, lag = np.arange(lags + 1)[:, None], np.arange(1, lags + 1)
    return np.clip(1.0 - lag / np.maximum(reach, 1), 0.0, None)
