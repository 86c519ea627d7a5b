"""Cells in the store in, what splits of one arm recommend out, and kept in the table `calibrations` where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from pipeline import calibrating
from pipeline.calibrating import LEAST_REPLICAS, METRICS, Sample
from pipeline.inference import scale
from pipeline.measure import BLOCK_S
from queries import files
from queries.store import Store

LIMIT_SEGMENTS = 3  # of a lever, those with most requests: 50 splits of a week take seconds each
BLOCK = timedelta(seconds=BLOCK_S)
SCHEMA = pl.Schema(
    {
        "lever": pl.String(),
        "metric": pl.String(),
        "blocks_together": pl.Int64(),
        "block_s": pl.Int64(),
        "phi": pl.Float64(),
        "in_use": pl.Float64(),
        "phis": pl.List(pl.Float64()),
        "rates": pl.List(pl.Float64()),
        "spread": pl.Float64(),
        "neighbors": pl.Float64(),
        "contrasts": pl.Int64(),
        "splits": pl.Int64(),
        "replicas": pl.Int64(),
        "segments": pl.Int64(),
        "arm": pl.String(),
        "since": pl.Datetime("us", "UTC"),
        "until": pl.Datetime("us", "UTC"),
        "missing": pl.String(),
    }
)
_NOT_KEPT = ("block_s", "in_use", "missing")


def newest(store: Store) -> datetime | None:
    """The end of the newest block that has cells; None where there are none."""
    found: datetime | None = store.rows("select max(started_at) as newest from block_cells")[0]["newest"]
    return found + BLOCK if found else None


def recommended(store: Store, levers: Sequence[str], since: datetime, splits: int = calibrating.SPLITS) -> pl.DataFrame:
    """One row per lever, metric and block length (SCHEMA): what widens its scale enough; or one of a lever with what is `missing`.

    `in_use` is what widens it now: what is shipped where nothing was kept, null where nothing holds. `rates` are false alarms a side and
    cycle, at each of `phis`.
    """
    asked = {"levers": list(levers), "since": since, "least_replicas": LEAST_REPLICAS, "limit_rows": LIMIT_SEGMENTS}
    found = store.frame(files.question("calibrate_segments"), asked)
    kept = store.rows("select lever, metric, blocks_together, phi from calibrations")
    in_use = {(row["lever"], row["metric"], row["blocks_together"]): row["phi"] for row in kept}
    rows = [row for lever in levers for row in _of_lever(store, found.filter(pl.col("lever") == lever), splits)]
    for row in rows:
        row["in_use"] = in_use.get((row["lever"], row.get("metric"), row.get("blocks_together")), scale.PHI)
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def keep(store: Store, found: pl.DataFrame, calibrated_at: datetime) -> int:
    """Writes what is recommended in the place of what was kept of the same levers' metrics; gives how many rows that were."""
    told = found.filter(pl.col("missing").is_null()).drop(_NOT_KEPT).with_columns(pl.lit(calibrated_at).alias("calibrated_at"))
    if len(told):
        with store.write() as transaction:
            same = "t.lever = i.lever and t.metric = i.metric and t.blocks_together = i.blocks_together"
            transaction.using(told, f"delete from calibrations t using incoming i where {same}")
            transaction.insert("calibrations", told)
    return len(told)


def _of_lever(store: Store, found: pl.DataFrame, splits: int) -> Iterator[dict[str, Any]]:
    """The rows of one lever, whose segments are given with their replicas and first and last block."""
    if found.is_empty():
        return
    segments = list(found.iter_rows(named=True))
    since, until = min(row["since"] for row in segments), max(row["last_block"] for row in segments) + BLOCK
    samples = [_sample(store, row, since, (until - since) // BLOCK) for row in segments]
    lacking = [sample.missing() for sample in samples]
    enough = [sample for sample, lacks in zip(samples, lacking, strict=True) if lacks is None]
    same = {"lever": samples[0].lever, "since": since, "until": until}
    if not enough:
        yield {**same, "arm": samples[0].arm, "missing": lacking[0]}
        return
    arms = "+".join(sorted({sample.arm for sample in enough}))
    most = max(sample.sums.shape[1] for sample in enough)
    for row in calibrating.calibrated(enough, splits):
        block_s = BLOCK_S * row["blocks_together"]
        yield {**same, **row, "block_s": block_s, "splits": splits, "replicas": most, "segments": len(enough), "arm": arms}


def _sample(store: Store, row: dict[str, Any], since: datetime, blocks: int) -> Sample:
    asked = {name: row[name] for name in ("lever", "segment", "arm")}
    cells = store.frame(files.question("calibrate_cells"), asked | {"since": since, "metrics": list(METRICS)})
    return Sample.of_cells(row["lever"], row["segment"], row["arm"], since, blocks, cells)
