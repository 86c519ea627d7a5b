"""Cells in, rows under names out, as a lake keeps them; and such rows in, into a store in the place of what it had of the same hours."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from pipeline import cell_store, segments
from pipeline.cell_sums import SUMS
from pipeline.measure import Cells
from queries import cells_rolled
from queries.store import Store, Transaction

SERIES = ("segment", *segments.CELL_SEGMENT_KEYS, "lever", "arm", "replica", "batch_bucket", "is_together", "block_started_at")
KINDS = ("cells", "cell_histograms")
HOUR = timedelta(hours=1)
_VIEWS = dict(zip(KINDS, ("lake_cells", "lake_histograms"), strict=True))
_WITHIN = "block_started_at >= $hour and block_started_at < $hour::timestamptz + interval 1 hour"


def long(cells: Sequence[Cells]) -> Mapping[str, pl.DataFrame]:
    """One row per cell and metric under names: the sums, and where it has any its bins with their counts. No two of one cell."""
    bins = [
        one.histograms.sort("bin").group_by("cell", "metric", maintain_order=True)
        .agg(pl.col("bin").cast(pl.Int16).alias("bins"), pl.col("n").cast(pl.Int64).alias("counts"))
        for one in cells
    ]  # fmt: skip
    frames = [one.sums for one in cells], bins
    return {kind: pl.concat(map(_named, cells, some)) if cells else pl.DataFrame() for kind, some in zip(KINDS, frames, strict=True)}


def together(rows: Mapping[str, pl.DataFrame]) -> Mapping[str, pl.DataFrame]:
    """Rows of `long` that several made of different requests, added up: no two of one cell and metric."""
    place = [*SERIES, "metric"]
    sums = rows["cells"].group_by(place).agg(pl.col(SUMS).sum())
    apart = rows["cell_histograms"].explode("bins", "counts").group_by([*place, "bins"]).agg(pl.col("counts").sum())
    bins = apart.sort("bins").group_by(place, maintain_order=True).agg("bins", "counts")
    return {kind: some.select(rows[kind].columns) for kind, some in zip(KINDS, (sums, bins), strict=True)}


def cells_of(rows: Mapping[str, pl.DataFrame]) -> Cells:
    """The same rows as cells again."""
    sums, bins = (rows[kind] for kind in KINDS)
    keys = pl.concat([sums.select(SERIES), bins.select(SERIES)]).unique(maintain_order=True).with_row_index("cell")
    names = pl.Enum(pl.concat([sums["metric"], bins["metric"]]).unique(maintain_order=True))
    sums, bins = (some.join(keys, on=SERIES, nulls_equal=True).with_columns(pl.col("metric").cast(names)) for some in (sums, bins))
    apart = bins.select("cell", "metric", pl.col("bins").alias("bin"), pl.col("counts").alias("n")).explode("bin", "n")
    return Cells(keys, sums.select("cell", "metric", *SUMS), apart)


def take(transaction: Transaction, hour: datetime, rows: Mapping[str, pl.DataFrame], limit_segments: int = segments.LIMIT_SEGMENTS) -> None:
    """Puts an hour's rows in the place of what the store has of it.

    What was summed up to hours and days already is added to and taken away from; an hour that was not is written anew.
    """
    is_open = transaction.frame("select 1 from cell_periods where tier = 'hour' and started_at = $hour and state <> 'open'", {"hour": hour})
    if is_open.is_empty():
        for kind in cells_rolled.KINDS:
            within = "started_at >= $hour and started_at < $hour::timestamptz + interval 1 hour"
            transaction.execute(f"delete from block_{kind} where {within}", {"hour": hour})
        cell_store.add(transaction, cells_of(rows), limit_segments=limit_segments)
        return
    old = {kind: transaction.frame(f"select * from {_VIEWS[kind]} where {_WITHIN}", {"hour": hour}) for kind in KINDS}
    cell_store.add(transaction, cells_of(old), sign=-1)
    cell_store.add(transaction, cells_of(rows), limit_segments=limit_segments)
    blocks = pl.concat([some["block_started_at"] for some in (*old.values(), *rows.values())]).unique()
    cell_store.fold(transaction, blocks.sort().to_list())


def blocks(store: Store, hours: Collection[datetime]) -> pl.DataFrame:
    """The blocks of these hours that have cells, as `dirty_blocks` has them."""
    found = (
        "select distinct started_at as block_started_at from block_cells where date_trunc('hour', started_at) in (select unnest($hours))"
    )
    return store.frame(found, {"hours": [*hours]})


def _named(cells: Cells, values: pl.DataFrame) -> pl.DataFrame:
    return values.with_columns(pl.col("metric").cast(pl.String)).join(cells.keys.select("cell", *SERIES), on="cell").drop("cell")
