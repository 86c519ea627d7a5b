"""Made-up cells of a lever's arms, put into a store as measuring would put them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from pipeline.segments import canonical
from queries.store import Store

START = datetime(2026, 11, 29, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
LEVER = "speculation"
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")


def arm_rows(
    rng: np.random.Generator, segment: Mapping[str, str], arm: str, number: int, n: int, tpot_s: float, ttft_s: float, errors: int = 0
) -> list[dict[str, object]]:
    """The cells of one arm in one block: `n` requests of about so many seconds per token and to the first token."""
    tokens = rng.integers(50, 400, n).astype(float)
    busy_s = tpot_s * tokens * rng.lognormal(-0.02, 0.2, n)
    first_s = ttft_s * rng.lognormal(-0.02, 0.2, n)
    failed = (np.arange(n) < errors).astype(float)
    ones = np.ones(n)
    common = {"segment": canonical(segment), "lever": LEVER, "arm": arm, "replica": f"{arm}-{number % 2}"}
    common |= {"block_started_at": START + number * BLOCK}
    pairs = {"tpot_s": (busy_s, tokens), "ttft_s": (first_s, ones), "error_rate": (failed, ones), "requests": (0 * ones, 0 * ones)}
    return [
        {**common, "metric": metric, **dict(zip(SUMS, (n, a.sum(), d.sum(), (a * a).sum(), (d * d).sum(), (a * d).sum()), strict=True))}
        for metric, (a, d) in pairs.items()
    ]


def put(store: Store, rows: list[dict[str, object]]) -> None:
    """The rows as cells of the store."""
    with store.write() as transaction:
        for statement in (_METRICS, _SEGMENTS, _SERIES, _CELLS):
            transaction.using(pl.DataFrame(rows), statement)


_METRICS = """
insert into cell_metrics
select (coalesce((select max(metric_id) from cell_metrics), 0) + row_number() over ())::smallint, metric
from (select distinct metric from incoming where metric not in (select metric from cell_metrics))
"""
_SEGMENTS = """
insert into cell_segments (segment_id, segment)
select ((select max(segment_id) from cell_segments) + row_number() over ())::integer, segment
from (select distinct segment from incoming where segment not in (select segment from cell_segments) order by segment)
"""
_SERIES = """
insert into cell_series
select
    (coalesce((select max(series_id) from cell_series), 0) + row_number() over ())::integer,
    segment_id, lever, arm, replica, null, false
from (select distinct segment_id, lever, arm, replica from incoming join cell_segments using (segment)) i
where not exists (
    select 1 from cell_series s
    where s.segment_id = i.segment_id and s.lever = i.lever and s.arm = i.arm and s.replica is not distinct from i.replica
)
"""
_CELLS = """
insert into block_cells
select series_id, block_started_at, metric_id, n, n, num, den, num_sq, den_sq, num_den, 0
from incoming
join cell_segments g using (segment)
join cell_series s on s.segment_id = g.segment_id and s.lever = incoming.lever and s.arm = incoming.arm
    and s.replica is not distinct from incoming.replica
join cell_metrics using (metric)
"""
