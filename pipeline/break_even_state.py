"""Cells of one block after another in, what is known of each bucket out, per lever and segment: the state of one axis of break-evens.

Both arms are compared within a bucket and a block. What is kept are plain numbers: a restart goes on exactly where it stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import break_even_drift
from pipeline.break_even_drift import Drift
from pipeline.inference import break_even, contrast
from pipeline.inference.break_even import Band
from pipeline.inference.contrast import Reference, Sums
from pipeline.inference.interval import Running

ALPHA = 0.05
ARMS = ("treated", "control")
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
LAYOUT = 2
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_SUMMED = 6 + 3
_WIDTH = _SUMMED + break_even_drift.WIDTH

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of each pair of lever and segment, in the order of `pairs`; arrays have shape (pairs, buckets).

    `since` is the beginning of a pair's epoch, `until` the end of its newest block. `drift` is flat, pair by pair.
    """

    pairs: tuple[Pair, ...]
    since: tuple[datetime, ...]
    until: tuple[datetime, ...]
    reference: Reference
    gains: Running
    is_refuted: Truths
    drift: Drift

    @classmethod
    def start(cls, pairs: Iterable[Pair], buckets: int, since: datetime = NEVER) -> Kept:
        """Pairs whose epoch begins."""
        named = tuple(pairs)
        reference = Reference(*np.zeros((6, len(named), buckets)))
        always = tuple(since for _ in named)
        gains, is_refuted = break_even.start(len(named), buckets), np.zeros(len(named), np.bool_)
        return cls(named, always, always, reference, gains, is_refuted, Drift.start(len(named) * buckets))

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair, in an order that `LAYOUT` names."""
        summed = np.stack([*_parts(self.reference), self.gains.n, self.gains.s, self.gains.ss], axis=2)
        drift = self.drift.numbers().reshape(*summed.shape[:2], break_even_drift.WIDTH)
        parts = np.concatenate([summed, drift], axis=2)
        flat = parts.reshape(len(self.pairs), parts.shape[1] * _WIDTH)
        return np.concatenate([self.is_refuted[:, None].astype(np.float64), flat], axis=1)

    @classmethod
    def of_numbers(cls, pairs: Sequence[Pair], since: Sequence[datetime], until: Sequence[datetime], numbers: Reals) -> Kept:
        """What `numbers` gave, back."""
        parts = numbers[:, 1:].reshape(len(pairs), (numbers.shape[1] - 1) // _WIDTH, _WIDTH)
        summed = np.moveaxis(parts[..., :_SUMMED], 2, 0)
        drift = Drift.of_numbers(parts[..., _SUMMED:].reshape(-1, break_even_drift.WIDTH))
        return cls(tuple(pairs), tuple(since), tuple(until), Reference(*summed[:6]), Running(*summed[6:]), numbers[:, 0] > 0, drift)

    def band(self, *, falls: bool, alpha: float = ALPHA) -> Band:
        """What is known of each bucket now."""
        kappa = break_even_drift.inflation(self.drift, self.gains.n.shape[1])
        return break_even.band(self.gains, alpha, falls=falls, kappa=kappa, was_refuted=self.is_refuted)


def advanced(kept: Kept, cells: pl.DataFrame, names: Sequence[str], ended_at: datetime, *, lower_is_better: bool, falls: bool) -> Kept:
    """What is kept after one more block; a pair that has seen a later block is left as it is.

    `cells` are those of the block and of one metric, replicas summed: lever, segment, bucket (one of `names`, others are left out), arm
    and SUMS.
    """
    armed = cells.filter(pl.col("arm").is_in(ARMS), pl.col("bucket").is_in(list(names)))
    both = armed.group_by("lever", "segment").agg(pl.col("arm").n_unique().alias("arms")).filter(pl.col("arms") == len(ARMS))
    kept = _with_pairs(kept, sorted(both.select("lever", "segment").iter_rows()), len(names), ended_at)
    late = [until >= ended_at for until in kept.until]
    sums = _arrays(kept.pairs, armed, names)
    sums[np.array(late, np.bool_)] = 0.0
    here: Truths = np.any(sums[..., 0] > 0, axis=(1, 2))
    treated, control = (Sums(*np.moveaxis(sums[:, :, arm].reshape(-1, len(SUMS)), 1, 0)) for arm in range(len(ARMS)))
    flat = Reference(*(part.reshape(-1) for part in _parts(kept.reference)))
    sign = 1.0 if lower_is_better else -1.0
    told = contrast.block(treated, control, flat, sign=sign)
    gain = np.where(np.isfinite(told.difference), contrast.gain(told.difference, told.share, sign), np.nan)
    learned = contrast.learn(flat, treated, control)
    shape = (len(kept.pairs), len(names))
    after = replace(
        kept,
        until=tuple(ended_at if is_here else before for is_here, before in zip(here, kept.until, strict=True)),
        reference=Reference(*(part.reshape(shape) for part in _parts(learned))),
        gains=kept.gains.add(gain.reshape(shape)),
    )
    band, drift = after.band(falls=falls), break_even_drift.step(kept.drift, told, len(names))
    is_anew = np.repeat(band.is_refuted & ~kept.is_refuted, len(names))
    return replace(after, is_refuted=band.is_refuted, drift=break_even_drift.held(drift, band.signs.reshape(-1), is_anew))


def stale(kept: Kept, *, falls: bool) -> Truths:
    """Which buckets (pairs, buckets) no longer do what was said of them in this epoch: `restarted` is to follow."""
    signs = kept.band(falls=falls).signs
    return break_even_drift.is_stale(kept.drift, signs.reshape(-1), signs.shape[1]).reshape(signs.shape)


def restarted(kept: Kept, pairs: Collection[Pair], since: datetime) -> Kept:
    """What is kept, with the epoch of these pairs begun anew: a deploy, another model or configuration, acceptance that moved."""
    is_new = np.array([pair in pairs for pair in kept.pairs], np.bool_)
    return replace(
        kept,
        since=tuple(since if new else before for new, before in zip(is_new, kept.since, strict=True)),
        reference=Reference(*(part * ~is_new[:, None] for part in _parts(kept.reference))),
        gains=break_even.restarted(kept.gains, is_new),
        is_refuted=kept.is_refuted & ~is_new,
        drift=break_even_drift.restarted(kept.drift, np.repeat(is_new, kept.gains.n.shape[1])),
    )


def joined(kept: Kept, more: Kept) -> Kept:
    """What is kept of two sets of pairs that share none."""
    if not kept.pairs or not more.pairs:
        return kept if kept.pairs else more
    numbers = np.concatenate([kept.numbers(), more.numbers()])
    return Kept.of_numbers(kept.pairs + more.pairs, kept.since + more.since, kept.until + more.until, numbers)


def _with_pairs(kept: Kept, pairs: Iterable[Pair], buckets: int, ended_at: datetime) -> Kept:
    known = set(kept.pairs)
    new = Kept.start([pair for pair in pairs if pair not in known], buckets)
    return joined(kept, replace(new, since=tuple(ended_at for _ in new.pairs))) if new.pairs else kept


def _arrays(pairs: Sequence[Pair], cells: pl.DataFrame, names: Sequence[str]) -> Reals:
    """Sums (pairs, buckets, arms, SUMS); zeros where the block has none."""
    sums = np.zeros((len(pairs), len(names), len(ARMS), len(SUMS)))
    if not pairs:
        return sums
    numbered = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_row_index("pair")
    placed = cells.join(numbered, on=["lever", "segment"])
    bucket, arm = (
        placed[column].replace_strict({word: place for place, word in enumerate(words)}, return_dtype=pl.Int64).to_numpy()
        for column, words in (("bucket", names), ("arm", ARMS))
    )
    np.add.at(sums, (placed["pair"].to_numpy(), bucket, arm), placed.select(SUMS).cast(pl.Float64).to_numpy())
    return sums


def _parts(of: Reference) -> tuple[Reals, ...]:
    return of.treated_n, of.treated_num, of.treated_den, of.control_n, of.control_num, of.control_den
