"""Made-up cells in a store, and the blocks that hold them: what comparing finds once a watermark has passed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from pipeline import jobs, segments, settle
from queries.store import Store

START = datetime(2026, 11, 29, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
ARMS = {"treated": 400.0, "control": 60.0}  # requests of a bucket in a block
METRICS = ("requests", "tpot_s", "ttft_s")
LEVEL_S = {"tpot_s": 0.02, "ttft_s": 0.4}
Gains = Mapping[str, float]


def put(store: Store, blocks: range, gains: Mapping[tuple[str, str | None], Gains], levers: Sequence[str] = ("speculation",)) -> None:
    """Blocks of cells by bucket of the batch: `gains` of each (segment, input bucket), a gain in time per token for each batch bucket."""
    places = [
        (lever, segments.canonical({"model": name, "input_bucket": length}), arm, batch, gain)
        for lever, ((name, length), told) in itertools.product(levers, gains.items())
        for batch, gain in told.items()
        for arm in ARMS
    ]
    with store.write() as transaction:
        transaction.using(pl.DataFrame({"metric": METRICS}), _METRICS)
        named = pl.DataFrame(places, schema=["lever", "segment", "arm", "batch_bucket", "gain"], orient="row")
        transaction.using(named, _SEGMENTS)
        transaction.using(named, _SERIES)
        asked = "select s.series_id, lever, g.segment, arm, batch_bucket from cell_series s join cell_segments g using (segment_id)"
        series = named.join(transaction.frame(asked), on=["lever", "segment", "arm", "batch_bucket"], maintain_order="left")
        numbers = dict(transaction.frame("select metric, metric_id from cell_metrics").iter_rows())
        made = [_block(series, number, metric, numbers[metric]) for number in blocks for metric in METRICS]
        transaction.insert("block_cells", pl.concat(made))
        when = pl.DataFrame({"block_started_at": [START + BLOCK * number for number in blocks]})
        transaction.using(when, "insert into dirty_blocks select block_started_at from incoming")


def closed(store: Store, until: int, edges: segments.Edges | None = None) -> int:
    """Compares all blocks before the one with this number; gives how many were taken."""
    with store.write() as transaction:
        row = {"ended_at": START + BLOCK * until + settle.LAG}
        transaction.execute("insert or replace into watermarks values ('s', $ended_at, $ended_at)", row)
    return sum(iter(lambda: jobs.compare_next(store, edges=edges or segments.Edges()), 0))


def _block(series: pl.DataFrame, number: int, metric: str, metric_id: int) -> pl.DataFrame:
    """Both arms' sums, with a level that the block shares; its noise is of the block and the metric alone, whatever else there is."""
    drawn = np.random.default_rng((number, metric_id))
    level = LEVEL_S.get(metric, 0.0) * float(np.exp(drawn.normal(0, 0.1)))
    n = series["arm"].replace_strict(ARMS, return_dtype=pl.Float64).to_numpy()
    factor = np.where(series["arm"] == "treated", 1 - series["gain"].to_numpy(), 1.0) if metric == "tpot_s" else 1.0
    mean = level * factor * (1 + drawn.normal(0, 0.3, len(series)) / np.sqrt(n))
    each = 100.0 if metric == "tpot_s" else 1.0
    return pl.DataFrame(
        {
            "num": mean * each * n,
            "den": each * n,
            "num_sq": n * (mean * each) ** 2 * 1.09,
            "den_sq": n * each**2,
            "num_den": n * mean * each**2,
        }
    ).with_columns(
        series["series_id"],
        pl.Series("n", n.astype(np.int64)),
        pl.Series("known", n.astype(np.int64)),
        pl.lit(START + BLOCK * number).alias("started_at"),
        pl.lit(metric_id).alias("metric_id"),
        pl.lit(0.0).alias("times"),
    )


_METRICS = """
insert into cell_metrics
select (coalesce((select max(metric_id) from cell_metrics), 0) + row_number() over ())::smallint, metric
from incoming where metric not in (select metric from cell_metrics)
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
    segment_id, lever, arm, 'r', batch_bucket, false
from incoming join cell_segments g using (segment)
where not exists (
    select 1 from cell_series s
    where s.segment_id = g.segment_id and s.lever = incoming.lever and s.arm = incoming.arm and s.batch_bucket = incoming.batch_bucket
)
"""
