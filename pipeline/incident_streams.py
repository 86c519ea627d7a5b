"""Incidents of one block after another in, evidence per lever and segment out: does treated fail more often than control, or less?

Given an incident, it is treated's with the probability of treated's share of offered requests, if both fail alike. Each adds a likelihood
ratio, exactly: no scale is to be learned. What is kept is plain numbers, as of other streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence import ALPHA, BEYOND
from pipeline.evidence_families import ARMS, NO_GAIN, NULLS
from pipeline.evidence_streams import NEVER, RESTED, Pair
from pipeline.evidence_told import BLOCKS_A_CYCLE, SCHEMA
from pipeline.inference import odds
from pipeline.inference.incidents import RATES, watched
from pipeline.inference.multiplicity import bonferroni_threshold
from pipeline.measure import REQUESTS
from pipeline.tuning import PLAIN, Tuning

METRIC = "error_rate"
LAYOUT = 1

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Streams:
    """What is kept of each pair of lever and segment: `log_m` and `log_m_back` (pairs, rates), of a rise and of a fall.

    `blocks` counts those with both arms, `until` is the end of a pair's newest block.
    """

    pairs: tuple[Pair, ...]
    until: tuple[datetime, ...]
    log_m: Reals
    log_m_back: Reals
    blocks: Reals

    @classmethod
    def start(cls, pairs: Iterable[Pair] = ()) -> Streams:
        """Pairs that have seen no block."""
        named = tuple(pairs)
        empty = np.full((len(named), len(RATES)), -np.inf)
        return cls(named, (NEVER,) * len(named), empty, empty, np.zeros(len(named)))

    def numbers(self) -> Reals:
        """All that is kept as one row of numbers a pair."""
        return np.concatenate([self.log_m, self.log_m_back, self.blocks[:, None]], axis=1)

    @classmethod
    def of_numbers(cls, pairs: Sequence[Pair], until: Sequence[datetime], numbers: Reals) -> Streams:
        """What `numbers` gave, back."""
        log_m, log_m_back, blocks = np.split(numbers, [len(RATES), 2 * len(RATES)], axis=1)
        return cls(tuple(pairs), tuple(until), log_m, log_m_back, blocks[:, 0])


def advanced(
    streams: Streams, cells: pl.DataFrame, incidents: pl.DataFrame, ended_at: datetime, tuning: Tuning = PLAIN
) -> tuple[Streams, pl.DataFrame]:
    """(the streams after one more block, the evidence at its end), as `evidence.advanced` gives it, of no gain alone.

    `cells` are those of the block: lever, segment, arm, metric REQUESTS, `n`; `incidents` its lever, segment, arm and `n`. A pair that has
    seen a later block is left as it is, and so is one without requests of both arms.
    """
    offered = _by_arm(cells.filter(pl.col("metric") == REQUESTS)).filter((pl.col("treated") > 0) & (pl.col("control") > 0))
    both = offered.join(_by_arm(incidents), on=["lever", "segment"], how="left", suffix="_failed").fill_null(0.0).sort("lever", "segment")
    streams = _with_pairs(streams, both.select("lever", "segment").iter_rows())
    place = {pair: number for number, pair in enumerate(streams.pairs)}
    at = np.array([place[pair] for pair in both.select("lever", "segment").iter_rows()], np.int64)
    here, told = np.zeros(len(place), np.bool_), np.zeros((len(place), 4))
    here[at], told[at] = True, both.select("treated", "control", "treated_failed", "control_failed").to_numpy()
    taking = here & np.array([until < ended_at for until in streams.until], np.bool_)
    begins_anew = tuning.is_new(streams.pairs, streams.until, taking, ended_at)
    after = _stepped(_restarted(streams, begins_anew), told, taking)
    until = tuple(ended_at if took else before for took, before in zip(taking, streams.until, strict=True))
    is_late = np.array([before > ended_at for before in streams.until], np.bool_)
    return replace(after, until=until), _told(after, here & ~is_late)


def _by_arm(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per lever and segment: what `n` adds up to in each arm."""
    sums = [pl.col("n").filter(pl.col("arm") == arm).sum().cast(pl.Float64).alias(arm) for arm in ARMS]
    return rows.group_by("lever", "segment").agg(sums)


def _with_pairs(streams: Streams, pairs: Iterable[Pair]) -> Streams:
    new = Streams.start(sorted(set(pairs) - set(streams.pairs)))
    numbers = np.concatenate([streams.numbers(), new.numbers()])
    return Streams.of_numbers(streams.pairs + new.pairs, streams.until + new.until, numbers)


def _restarted(streams: Streams, is_new: Truths) -> Streams:
    kept = [np.where(is_new[:, None], -np.inf, logs) for logs in (streams.log_m, streams.log_m_back)]
    return replace(streams, log_m=kept[0], log_m_back=kept[1], blocks=np.where(is_new, 0.0, streams.blocks))


def _stepped(streams: Streams, told: Reals, taking: Truths) -> Streams:
    """`told` (pairs, 4): treated's and control's requests, and their incidents."""
    asked, failed = told[:, :2], np.where(taking[:, None], told[:, 2:], np.nan)
    share = asked[:, 0] / np.maximum(asked.sum(axis=1), 1.0)
    moved = watched(streams.log_m, streams.log_m_back, failed[:, 0], failed[:, 1], share)
    counts = Counter(lever for lever, _ in streams.pairs)
    most = {lever: np.log(bonferroni_threshold(count, BLOCKS_A_CYCLE, ALPHA)) + BEYOND for lever, count in counts.items()}
    limit = np.array([most[lever] for lever, _ in streams.pairs])[:, None]
    log_m, log_m_back = (np.minimum(logs, limit) for logs in moved)
    return replace(streams, log_m=log_m, log_m_back=log_m_back, blocks=streams.blocks + taking)


def _told(streams: Streams, here: Truths) -> pl.DataFrame:
    """One row per pair that is here, in the columns that all evidence has; what contrasts alone have is null."""
    pairs = [pair for pair, is_here in zip(streams.pairs, here, strict=True) if is_here]
    below, above = (np.maximum(odds.log_mean(logs[here]), RESTED) for logs in (streams.log_m, streams.log_m_back))
    rows = pl.DataFrame(pairs, schema={"lever": pl.String, "segment": pl.String}, orient="row").with_columns(
        pl.lit(METRIC).alias("metric"),
        pl.Series("evidence", np.exp(below) / BLOCKS_A_CYCLE, dtype=pl.Float64),
        pl.len().over("lever").alias("tests"),
        _listed("evidence_below", below),
        _listed("evidence_above", above),
        pl.Series("blocks_seen", streams.blocks[here].astype(np.int64)),
    )
    return rows.select((pl.col(name) if name in rows.columns else pl.lit(None).alias(name)).cast(kind) for name, kind in SCHEMA.items())


def _listed(name: str, logs: Reals) -> pl.Series:
    lists = [[float(log) if place == NO_GAIN else None for place in range(len(NULLS))] for log in logs]
    return pl.Series(name, lists, dtype=pl.List(pl.Float64))
