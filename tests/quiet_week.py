"""A number of streams and a seed in, a week of blocks as judging reads them out, in which no lever does anything.

Both arms have the same levels, which wander alike and apart. Evidence is made of them by the kernels that serve; what a fleet does besides
is in the week too: traffic that stops for hours, deploys, and blocks of which not enough is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from evidence_days import BEGAN, BLOCK, LEVELS_S, days
from numpy.lib.stride_tricks import sliding_window_view

from alerts.chain import Policy
from alerts.effects import Effect
from alerts.playing import Play, Played
from alerts.streams import Block
from pipeline import evidence, evidence_lengths
from pipeline.compare import WINDOW_BLOCKS
from pipeline.evidence_families import ARMS, NULLS, TIMES
from pipeline.evidence_streams import Streams, restarted
from pipeline.inference import detector, scale
from pipeline.inference.charge import added_s
from pipeline.window_contrasts import contrasted
from pipeline.window_sums import Arm

BLOCKS_A_DAY = 288
BLOCKS = 7 * BLOCKS_A_DAY
LEVERS = ("speculation", "prefix_caching", "weight_quantization")
"""Judged by net ITL, by TTFT and by TPOT."""
ALIKE, SD = 0.3, 0.03
"""Of an arm's level: how alike two blocks in a row are, and how far it strays, as a ratio."""
GAPS_A_WEEK, GAP_BLOCKS = 4, (6, 36)
DEPLOYS_A_WEEK = 3
DIPS_A_WEEK, DIP_BLOCKS, DIPPED = 6, (1, 12), 0.6
SHOWN = ("blocks", "n_a", "n_b", "value_a", "value_b", "gain", "gain_low", "gain_high")

FAMILY = replace(TIMES, nulls=tuple(NULLS.index(null) for null in (-0.02, 0.0, 0.05)))
"""With the nulls alone at which a lever's harm, and its return, are read: no scale depends on the others."""

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


class Told(NamedTuple):
    """What evidence says of each stream and metric: logarithms of M (pairs, metrics, nulls, sides), -inf where no scale is known."""

    logs: Reals
    is_off: Truths
    multiple: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Week:
    """Sums (pairs, blocks, requests and LEVELS_S, arms, SUMS), and where a pair's traffic stops, is deployed to, or is not known enough."""

    sums: Reals
    is_gone: Truths
    is_deployed: Truths
    coverage: Reals

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The names of the pairs, sorted."""
        return [("any", f"{number:04d}") for number in range(len(self.sums))]


def quiet(pairs: int, seed: int, *, blocks: int = BLOCKS, alike: float = ALIKE, sd: float = SD) -> Week:
    """A week at no effect; `alike` and `sd` as ALIKE and SD."""
    rng = np.random.default_rng([seed, 7])
    sums = days(blocks, alike, seed, gain=0.0, pairs=pairs, sd=sd)
    is_gone, is_deployed = np.zeros((2, pairs, blocks), np.bool_)
    coverage = np.ones((pairs, blocks))
    for pair in range(pairs):
        for start, length in _stretches(rng, GAPS_A_WEEK, GAP_BLOCKS, blocks):
            is_gone[pair, start : start + length] = True
        for start, length in _stretches(rng, DIPS_A_WEEK, DIP_BLOCKS, blocks):
            coverage[pair, start : start + length] = DIPPED
        is_deployed[pair, rng.integers(0, blocks, DEPLOYS_A_WEEK)] = True
    sums[is_gone] = 0.0
    return Week(sums, is_gone, is_deployed, coverage)


def harmed(week: Week, loss: float, from_block: int) -> Week:
    """The same, with treated slower by a ratio from a block on."""
    sums = week.sums.copy()
    sums[:, from_block:, 1:, 0] *= np.array([1.0, 1 + loss, 1.0, (1 + loss) ** 2, 1.0, 1 + loss])
    return Week(sums, week.is_gone, week.is_deployed, week.coverage)


def blocks(week: Week) -> Iterator[Block]:
    """Every stream's effects at every block's end, in order: of each pair under every lever, in segments of their own: no lever waits."""
    shown = {metric: _windows(week.sums, metric) for metric in TIMES.metrics}
    for number, told in enumerate(_evidence(week)):
        until = BEGAN + (number + 1) * BLOCK
        here = [
            (name, {metric: _effect(week, told, pair, number, metric, shown[metric][number][pair]) for metric in TIMES.metrics})
            for pair, (_, name) in enumerate(week.pairs)
            if not week.is_gone[pair, number]
        ]
        yield from (Block(lever, f'{{"model":"{lever}-{pair}"}}', until, effects) for lever in LEVERS for pair, effects in here)


def _stretches(rng: np.random.Generator, most: int, lengths: tuple[int, int], blocks: int) -> Iterator[tuple[int, int]]:
    for _ in range(most):
        yield int(rng.integers(0, blocks)), int(rng.integers(*lengths))


def _evidence(week: Week) -> Iterator[Told]:
    streams = Streams.start(FAMILY, week.pairs)
    flat = week.sums[:, :, 1:].reshape(*week.sums.shape[:2], -1)
    for number in range(week.sums.shape[1]):
        if week.is_deployed[:, number].any():
            streams = restarted(streams, week.is_deployed[:, number])
        taking = ~week.is_gone[:, number]
        streams, _ = evidence.stepped(streams, flat[:, number], week.sums[:, number, 0, 1, 0], taking, scale.PHI)
        asked = evidence_lengths.due(streams)
        if asked and number + 1 >= evidence_lengths.BLOCKS_A_DAY:
            places = [streams.pairs.index(pair) for pair in asked]
            day = week.sums[places, number + 1 - evidence_lengths.BLOCKS_A_DAY : number + 1]
            streams = evidence_lengths.lengthened(streams, asked, day)
        yield _told(streams)


def _told(streams: Streams) -> Told:
    shape = (len(streams.pairs), len(FAMILY.metrics))
    logs = detector.log_e(streams.log_m.reshape(-1, len(detector.LAM))).reshape(*shape, len(FAMILY.nulls), 2)
    return Told(logs + np.log(streams.multiple)[:, None, None, None], streams.checks.is_off().reshape(shape), streams.multiple)


def _windows(sums: Reals, metric: str) -> list[list[tuple[Any, ...]]]:
    """What people see of a metric over the last blocks, by block and pair, as `compare.effects` makes it."""
    pairs, count = sums.shape[:2]
    padded = np.concatenate([np.zeros((pairs, WINDOW_BLOCKS - 1, *sums.shape[2:])), sums], axis=1)
    seen = np.moveaxis(sliding_window_view(padded, WINDOW_BLOCKS, axis=1), 0, 1).reshape(count * pairs, *sums.shape[2:], WINDOW_BLOCKS)
    requests = seen[:, 0, :, 0].sum(axis=-1)
    treated, control = (_arm(seen, TIMES.made_of[metric], arm, requests) for arm in range(len(ARMS)))
    if metric in TIMES.charged:
        first, other = (_arm(seen, "ttft_s", arm, requests) for arm in range(len(ARMS)))
        treated = replace(treated, num=treated.num + treated.n * added_s(first.n, first.num, other.n, other.num))
    rows = contrasted(treated, control, requests[:, 1] > 0, 1.0).select(SHOWN).rows()
    return [rows[start : start + pairs] for start in range(0, len(rows), pairs)]


def _arm(seen: Reals, metric: str, arm: int, requests: Reals) -> Arm:
    n, num, den = (seen[:, 1 + [*LEVELS_S].index(metric), arm, place] for place in range(3))
    return Arm(n, num, den, requests[:, arm])


def _effect(week: Week, told: Told, pair: int, number: int, metric: str, shown: tuple[Any, ...]) -> Effect:
    until, place = BEGAN + (number + 1) * BLOCK, TIMES.metrics.index(metric)
    since, coverage = until - WINDOW_BLOCKS * BLOCK, float(week.coverage[pair, number])
    below, above = (_listed(side) for side in told.logs[pair, place].T.tolist())
    return Effect(
        metric, since, until, *shown, "control", coverage, None,
        evidence_below=below, evidence_above=above, tests=len(week.pairs),
        uncalibrated=bool(told.is_off[pair, place]), blocks_together=int(told.multiple[pair]),
    )  # fmt: skip


def _listed(logs: list[float]) -> list[float | None] | None:
    """One number per null, None for those that are not kept; None where no scale is known."""
    if not math.isfinite(logs[0]):
        return None
    found: list[float | None] = [None] * len(NULLS)
    for null, log in zip(FAMILY.nulls, logs, strict=True):
        found[null] = log
    return found


def judged(policies: Sequence[Policy], history: Iterable[Block]) -> Iterator[Played]:
    """All that policies say of these blocks, in order."""
    play = Play(policies)
    for until, together in groupby(history, key=lambda block: block.until):
        yield from play.at(until, play.dues(together))


def is_flip(said: Played) -> bool:
    """Whether a stream's state changed."""
    return said.judgment.state != said.before.state
