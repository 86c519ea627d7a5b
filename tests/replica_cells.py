"""Replicas that serve one arm or the other in a block, and how slow each is, in; cells in a store, compared and judged, out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

import alerts.run
from alerts.policy import shipped
from pipeline import jobs, segments, settle
from pipeline.arm_split import Holdout
from queries.store import Store

START = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
TOKENS = 100.0
Counts = Callable[[int, int], tuple[int, int]]
"""A block's and a replica's number in, its requests of treated and of control out."""
LEVEL_S = {"tpot_s": 0.02, "ttft_s": 0.4, "error_rate": 0.0, "e2e_s": 2.4}


def rotating(replicas: int, at_once: int = 1, every: int = 6, n: int = 100) -> Counts:
    """Control moves on every so many blocks."""
    return lambda block, replica: (0, n) if (replica - block // every * at_once) % replicas < at_once else (n, 0)


def fixed(at_once: int = 1, n: int = 100) -> Counts:
    """The first replicas are control."""
    return lambda _, replica: (0, n) if replica < at_once else (n, 0)


def segment(model: str) -> str:
    """The judging segment of a model's requests."""
    return segments.canonical({"model": model, "hardware": "h100", "topology": "tp4", "input_bucket": "<512", "temperature_bucket": "<0.3"})


def put(store: Store, blocks: range, counts: Counts, slow: Sequence[float], gain: float = 0.0, model: str = "m") -> None:
    """Blocks of cells of a model: each replica is slower by its share of `slow`, and treated takes 1 - gain of control's time."""
    rows = [row for block in blocks for replica in range(len(slow)) for row in _replica(block, replica, counts, slow[replica], gain)]
    cells = pl.DataFrame(rows).with_columns(pl.lit("speculation").alias("lever"), pl.lit(segment(model)).alias("segment"))
    with store.write() as transaction:
        transaction.using(cells, _METRICS)
        transaction.using(cells, _SEGMENTS)
        transaction.using(cells, _SERIES)
        transaction.using(cells, _CELLS)
        when = pl.DataFrame({"block_started_at": [START + BLOCK * number for number in blocks]})
        transaction.using(when, "insert into dirty_blocks select block_started_at from incoming")


def compared(store: Store, until: int, holdouts: Sequence[Holdout] = ()) -> None:
    """Compares all blocks before the one with this number, and judges them by the shipped policies."""
    with store.write() as transaction:
        row = {"ended_at": START + BLOCK * until + settle.LAG}
        transaction.execute("insert or replace into watermarks values ('s', $ended_at, $ended_at)", row)
    while jobs.compare_next(store, holdouts=holdouts):
        pass
    alerts.run.run(store, shipped(), START + BLOCK * until)


def verdicts(store: Store, model: str = "m") -> list[tuple[str, str]]:
    """Each verdict on a model and its reason code, in order, without repetitions."""
    rows = store.rows("select verdict, reason_code from verdicts where segment = $segment order by decided_at", {"segment": segment(model)})
    said = [(row["verdict"], row["reason_code"]) for row in rows]
    return [one for number, one in enumerate(said) if not number or said[number - 1] != one]


def _replica(block: int, replica: int, counts: Counts, slow: float, gain: float) -> list[dict[str, Any]]:
    rng, shared = np.random.default_rng((block, replica)), np.random.default_rng(block)
    level = float(np.exp(shared.normal(0, 0.1)))
    rows = []
    for arm, n in zip(("treated", "control"), counts(block, replica), strict=True):
        if n:
            factor = (1 + slow) * (1 - gain if arm == "treated" else 1.0)
            rows += [_cell(block, replica, arm, n, metric, rng, level * factor) for metric in ("requests", *LEVEL_S)]
    return rows


def _cell(block: int, replica: int, arm: str, n: int, metric: str, rng: np.random.Generator, factor: float) -> dict[str, Any]:
    each = TOKENS if metric == "tpot_s" else 1.0
    mean = LEVEL_S.get(metric, 0.0) * factor * (1 + rng.normal(0, 0.3) / np.sqrt(n)) * each
    has = metric != "requests"
    return {
        "metric": metric, "arm": arm, "replica": f"r{replica}", "started_at": START + BLOCK * block, "n": n,
        "num": mean * n, "den": each * n * has, "num_sq": n * mean**2 * 1.09, "den_sq": n * each**2 * has, "num_den": n * mean * each,
    }  # fmt: skip


_METRICS = """
insert into cell_metrics
select (coalesce((select max(metric_id) from cell_metrics), 0) + row_number() over ())::smallint, metric
from (select distinct metric from incoming where metric not in (select metric from cell_metrics) order by metric)
"""
_SEGMENTS = """
insert into cell_segments (segment_id, segment)
select (select max(segment_id) + 1 from cell_segments), segment
from (select distinct segment from incoming where segment not in (select segment from cell_segments))
"""
_SERIES = """
insert into cell_series
select (coalesce((select max(series_id) from cell_series), 0) + row_number() over ())::integer, segment_id, lever, arm, replica, null, false
from (select distinct segment, lever, arm, replica from incoming order by all) i join cell_segments using (segment)
where not exists (
    select 1 from cell_series s where s.segment_id = cell_segments.segment_id and s.arm = i.arm and s.replica = i.replica
)
"""
_CELLS = """
insert into block_cells
select s.series_id, i.started_at, m.metric_id, i.n, i.n, i.num, i.den, i.num_sq, i.den_sq, i.num_den, 0
from incoming i join cell_segments using (segment) join cell_series s using (segment_id, lever, arm, replica)
join cell_metrics m using (metric)
"""
