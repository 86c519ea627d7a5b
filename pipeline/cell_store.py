"""Cells in, rows of the store out: appended as parts of their cells, and folded to one row a cell when their block has closed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from pipeline.cell_sums import SUMS
from pipeline.measure import Cells
from pipeline.segments import LIMIT_SEGMENTS
from queries import cells_rolled, files
from queries.store import Transaction

LIMIT_OTHER_ROWS = 1_000_000


def add(transaction: Transaction, cells: Cells, sign: int = 1, limit_segments: int = LIMIT_SEGMENTS) -> None:
    """Adds cells to those of the store, or with `sign` -1 takes them back. Of segments beyond the limit the cells count as `other`."""
    if cells.keys.is_empty():
        return
    transaction.using(cells.keys, "create or replace temp table working_cells as select * from incoming")
    if sign > 0:
        transaction.execute(files.question("cell_admit"), {"limit_segments": limit_segments})
        transaction.execute(files.question("cell_admit_other"), {"limit_rows": LIMIT_OTHER_ROWS})
    transaction.execute(files.question("cell_place"))
    transaction.execute(files.question("cell_series"))
    numbers = transaction.frame(files.question("cell_numbers")).join(cells.keys.select("cell", "block_started_at"), on="cell")
    numbers = numbers.rename({"block_started_at": "started_at"})
    sums = _numbered(transaction, cells.sums, numbers).with_columns(pl.col(SUMS) * sign)
    histograms = _numbered(transaction, cells.histograms, numbers).sort("bin").group_by("series_id", "started_at", "metric_id")
    cells_rolled.add(transaction, sums, histograms.agg(pl.col("bin").alias("bins"), (pl.col("n") * sign).alias("counts")))


def fold(transaction: Transaction, blocks: Sequence[datetime]) -> None:
    """Makes one row of each cell of these blocks; cells that nothing is left of go."""
    cells_rolled.fold(transaction, "block", blocks)


def _numbered(transaction: Transaction, rows: pl.DataFrame, numbers: pl.DataFrame) -> pl.DataFrame:
    """The rows under the numbers of their series and metric."""
    kind = rows.schema["metric"]
    names = kind.categories.to_list() if isinstance(kind, pl.Enum) else []
    transaction.using(pl.DataFrame({"place": range(len(names)), "metric": names}), files.question("cell_metrics"))
    known = dict(transaction.frame("select metric, metric_id from cell_metrics").iter_rows())
    ids = pl.Series("metric_id", [known[name] for name in names], dtype=pl.Int16)
    coded = rows.with_columns(ids.gather(rows["metric"].to_physical()).alias("metric_id")).drop("metric")
    return coded.join(numbers, on="cell").drop("cell")
