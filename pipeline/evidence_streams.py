"""What is kept of streams of evidence between blocks: plain numbers, so that a restart goes on exactly where it stopped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from pipeline.evidence_families import ARMS, SUMS, Family
from pipeline.inference import block_length, contrast, detector, interval, scale, turn
from pipeline.inference.waiting import Waiting
from pipeline.measure import BLOCK_S

ROTATION_S = 1800.0
LAGS = scale.lags(BLOCK_S, ROTATION_S)
LAYOUT = 4
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_REFERENCE, _SCALE, _RUNNING, _TURNED = 6, 4 * LAGS + 11, 3, 4

Reals = npt.NDArray[np.float64]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Streams:
    """What is kept of each pair of lever and segment, in the order of `pairs`; of each of the family's metrics, pair by pair.

    `until` is the end of a pair's newest block. `log_m` has shape (streams, nulls, 2, 6): a gain below the null, and above it.
    """

    family: Family
    pairs: tuple[Pair, ...]
    until: tuple[datetime, ...]
    open: block_length.Open
    reference: contrast.Reference
    scale: Waiting
    log_m: Reals
    running: interval.Running
    turned: turn.State

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
            block_length.Open.start(len(named), _open_width(family)),
            contrast.Reference.start(count),
            Waiting.start(count, LAGS),
            log_m,
            interval.Running.start(count),
            turn.State.start(count),
        )

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair, in an order that `LAYOUT` names."""
        of_pairs = [self.open.sums, self.open.control_n[:, None], self.open.blocks[:, None].astype(np.float64)]
        parts = [*self._reference(), self.scale.numbers(), self.log_m, *self._running(), *self._turned()]
        columns = [part.reshape(len(part), int(np.prod(part.shape[1:]))) for part in parts]
        streams = np.concatenate(columns, axis=1)
        return np.concatenate([*of_pairs, streams.reshape(len(self.pairs), len(self.family.metrics) * streams.shape[1])], axis=1)

    @classmethod
    def of_numbers(cls, family: Family, pairs: Sequence[Pair], until: Sequence[datetime], numbers: Reals) -> Streams:
        """What `numbers` gave, back."""
        width, bets = _open_width(family), len(family.nulls) * 2 * len(detector.LAM)
        held = block_length.Open(numbers[:, :width], numbers[:, width], numbers[:, width + 1].astype(np.int64))
        rest = numbers[:, width + 2 :].reshape(len(pairs) * len(family.metrics), _REFERENCE + _SCALE + bets + _RUNNING + _TURNED)
        reference, scaled, log_m, running, turned = np.split(rest, np.cumsum([_REFERENCE, _SCALE, bets, _RUNNING]), axis=1)
        return cls(
            family,
            tuple(pairs),
            tuple(until),
            held,
            contrast.Reference(*reference.T),
            Waiting.of_numbers(scaled),
            log_m.reshape(len(rest), len(family.nulls), 2, len(detector.LAM)),
            interval.Running(*running.T),
            turn.State(*turned.T),
        )

    def _reference(self) -> list[Reals]:
        kept = self.reference
        return [kept.treated_n, kept.treated_num, kept.treated_den, kept.control_n, kept.control_num, kept.control_den]

    def _running(self) -> list[Reals]:
        return [self.running.n, self.running.s, self.running.ss]

    def _turned(self) -> list[Reals]:
        return [self.turned.total, self.turned.n, self.turned.difference, self.turned.share]


def with_pairs(streams: Streams, pairs: Iterable[Pair]) -> Streams:
    """The streams, and those of pairs that are new."""
    known = set(streams.pairs)
    new = Streams.start(streams.family, sorted(set(pairs) - known))
    if not new.pairs:
        return streams
    numbers = np.concatenate([streams.numbers(), new.numbers()])
    return Streams.of_numbers(streams.family, streams.pairs + new.pairs, streams.until + new.until, numbers)


def without(streams: Streams, pairs: Iterable[Pair]) -> Streams:
    """The streams but for these pairs: they begin anew when they are seen again."""
    gone = set(pairs).intersection(streams.pairs)
    if not gone:
        return streams
    kept = np.array([pair not in gone for pair in streams.pairs], dtype=np.bool_)
    named, until = (tuple(one for one, keeps in zip(all_of, kept, strict=True) if keeps) for all_of in (streams.pairs, streams.until))
    return Streams.of_numbers(streams.family, named, until, streams.numbers()[kept])  # type: ignore[arg-type]


def _open_width(family: Family) -> int:
    return len(family.raw) * len(ARMS) * len(SUMS)
