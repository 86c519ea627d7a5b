"""What is kept of streams of evidence between blocks: plain numbers, so that a restart goes on exactly where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from pipeline.evidence_families import ARMS, SUMS, Family
from pipeline.inference import block_length, checking, contrast, detector, interval, scale, turn, waiting
from pipeline.inference.checking import Checks
from pipeline.inference.waiting import Waiting
from pipeline.measure import BLOCK_S

ROTATION_S = 1800.0
LAGS = scale.lags(BLOCK_S, ROTATION_S)
LAYOUT = 5
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
RESTED = -700.0
"""The logarithm of M of a stream that began anew with its scale known: as good as 0. -inf is for streams without a scale."""
_OF_PAIR = 4
_REFERENCE, _SCALE, _RUNNING, _TURNED = 6, waiting.width(LAGS), 3, 4

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Streams:
    """What is kept of each pair of lever and segment, in the order of `pairs`; of each of the family's metrics, pair by pair.

    `until` is the end of a pair's newest block. `multiple` is how many base blocks it takes together at least, `age` the base blocks since
    it began without that being asked, -1 once it was. `log_m` has shape (streams, nulls, 2, 6): a gain below the null, and above it.
    """

    family: Family
    pairs: tuple[Pair, ...]
    until: tuple[datetime, ...]
    multiple: Whole
    age: Whole
    open: block_length.Open
    reference: contrast.Reference
    scale: Waiting
    log_m: Reals
    running: interval.Running
    turned: turn.State
    checks: Checks

    @classmethod
    def start(cls, family: Family, pairs: Iterable[Pair] = ()) -> Streams:
        """Pairs that have seen no block."""
        named = tuple(pairs)
        count = len(named) * len(family.metrics)
        log_m = np.full((count, len(family.nulls), 2, len(detector.LAM)), -np.inf)
        return cls(
            family,
            named,
            tuple(NEVER for _ in named),
            np.full(len(named), family.together),
            np.zeros(len(named), np.int64),
            block_length.Open.start(len(named), _open_width(family)),
            contrast.Reference.start(count),
            _scale(family, count),
            log_m,
            interval.Running.start(count),
            turn.State.start(count),
            Checks.start(count),
        )

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair, in an order that `LAYOUT` names."""
        whole = np.stack([self.open.blocks, self.multiple, self.age], axis=1).astype(np.float64)
        of_pairs = [self.open.sums, self.open.control_n[:, None], whole]
        parts = [*self._reference(), self.scale.numbers(), self.log_m, *self._running(), *self._turned(), *self._checks()]
        columns = [part.reshape(len(part), int(np.prod(part.shape[1:]))) for part in parts]
        streams = np.concatenate(columns, axis=1)
        return np.concatenate([*of_pairs, streams.reshape(len(self.pairs), len(self.family.metrics) * streams.shape[1])], axis=1)

    @classmethod
    def of_numbers(cls, family: Family, pairs: Sequence[Pair], until: Sequence[datetime], numbers: Reals) -> Streams:
        """What `numbers` gave, back."""
        width, bets = _open_width(family), len(family.nulls) * 2 * len(detector.LAM)
        blocks, multiple, age = numbers[:, width + 1 : width + _OF_PAIR].astype(np.int64).T
        held = block_length.Open(numbers[:, :width], numbers[:, width], blocks)
        widths = [_REFERENCE, _SCALE, bets, _RUNNING, _TURNED, checking.WIDTH]
        rest = numbers[:, width + _OF_PAIR :].reshape(len(pairs) * len(family.metrics), sum(widths))
        reference, scaled, log_m, running, turned, checks = np.split(rest, np.cumsum(widths[:-1]), axis=1)
        return cls(
            family,
            tuple(pairs),
            tuple(until),
            multiple,
            age,
            held,
            contrast.Reference(*reference.T),
            Waiting.of_numbers(scaled),
            log_m.reshape(len(rest), len(family.nulls), 2, len(detector.LAM)),
            interval.Running(*running.T),
            turn.State(*turned.T),
            Checks(*checks.T),
        )

    def _reference(self) -> list[Reals]:
        kept = self.reference
        return [kept.treated_n, kept.treated_num, kept.treated_den, kept.control_n, kept.control_num, kept.control_den]

    def _running(self) -> list[Reals]:
        return [self.running.n, self.running.s, self.running.ss]

    def _turned(self) -> list[Reals]:
        return [self.turned.total, self.turned.n, self.turned.difference, self.turned.share]

    def _checks(self) -> list[Reals]:
        return [self.checks.n, self.checks.near, self.checks.far, self.checks.spread, self.checks.neighbors]


def with_pairs(streams: Streams, pairs: Iterable[Pair]) -> Streams:
    """The streams, and those of pairs that are new."""
    known = set(streams.pairs)
    new = Streams.start(streams.family, sorted(set(pairs) - known))
    if not new.pairs:
        return streams
    numbers = np.concatenate([streams.numbers(), new.numbers()])
    return Streams.of_numbers(streams.family, streams.pairs + new.pairs, streams.until + new.until, numbers)


def restarted(streams: Streams, is_new: Truths) -> Streams:
    """The streams with the evidence of the pairs where `is_new` (pairs,) begun anew, such as after a deploy; their scale stays."""
    of_streams = np.repeat(is_new, len(streams.family.metrics))
    kept, log_m = np.where(is_new, 0.0, 1.0), streams.log_m
    held, running, turned = streams.open, streams.running, streams.turned
    stays = np.where(of_streams, 0.0, 1.0)
    return replace(
        streams,
        open=block_length.Open(held.sums * kept[:, None], held.control_n * kept, np.where(is_new, 0, held.blocks)),
        log_m=np.where(of_streams[:, None, None, None] & np.isfinite(log_m), RESTED, log_m),
        running=interval.Running(running.n * stays, running.s * stays, running.ss * stays),
        turned=turn.State(turned.total * stays, turned.n * stays, turned.difference * stays, turned.share * stays),
    )


def _scale(family: Family, streams: int) -> Waiting:
    """Nothing known of any stream: lags reach back as far as the family's blocks are long."""
    waits = Waiting.start(streams, LAGS)
    reach = min(LAGS, scale.lags(BLOCK_S * family.together, ROTATION_S))
    return replace(waits, known=replace(waits.known, reach=np.full(streams, reach)))


def _open_width(family: Family) -> int:
    return len(family.raw) * len(ARMS) * len(SUMS)
