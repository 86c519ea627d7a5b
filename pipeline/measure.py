"""Rows of `requests` in, cells out: the additive sums and histograms of every metric per judging segment, lever, arm, replica and block.

The requests are grouped once, by every key of every lever together; the groups of each lever, and those of all requests, are sums of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import guard_cells, segments
from pipeline.cell_bins import counted, with_bins
from pipeline.cell_marks import with_marks
from pipeline.cell_sums import SUMS, added, melted, values
from pipeline.metrics import METRICS, Metric, in_cells

BLOCK_S = 300
REQUESTS = "requests"  # the pseudo-metric that counts a cell's requests, known or not
ALL_REQUESTS = ""  # the lever, and its arm, under which every request counts
CELL_KEYS = ("segment", "lever", "arm", "replica", "batch_bucket", "block_started_at")
WITH_BATCH = "speculation"  # its break-even asks for the batch as of admission
_GROUP, _COUNTED = "group_number", f"{REQUESTS}.n"
_Binned = tuple[pl.DataFrame, pl.DataFrame]
_PLACE = [*segments.CELL_SEGMENT_KEYS, *CELL_KEYS[1:], "is_together"]


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells in three frames: `keys` (one row per cell), `sums` (per cell and metric) and `histograms` (per cell, metric and bin).

    `keys` has `cell`, CELL_KEYS, the segment's own keys as columns, and `is_together`: whether all replicas are in the cell. The other two
    name a cell by its number.
    """

    keys: pl.DataFrame
    sums: pl.DataFrame
    histograms: pl.DataFrame

    def long(self) -> pl.DataFrame:
        """One row per cell and metric: CELL_KEYS, `metric` and the sums."""
        named = self.sums.join(self.keys.select("cell", *CELL_KEYS), on="cell").with_columns(pl.col("metric").cast(pl.String))
        return named.select(*CELL_KEYS, "metric", *SUMS)


def cells(requests: pl.DataFrame, *, by_tenant: bool = False, metrics: Sequence[Metric] = METRICS) -> Cells:
    """The cells of these requests, whose maps are lists of key and value. Lever "" holds all requests, and its histograms are by replica.

    Those of a lever's arm are of all replicas together (`replica` null). Under a lever a segment has a key: `{}` would be all traffic.
    """
    held = [metric for metric in metrics if in_cells(metric)]
    kind = pl.Enum([REQUESTS, *(metric.name for metric in held), *guard_cells.found(requests)])
    marked, arms = with_marks(_ready(requests, by_tenant))
    fine = _grouped(marked, ["block_started_at", "replica", "batch_bucket", *segments.CELL_SEGMENT_KEYS, "marks"])
    placed, (by_replica, replica_bins), (armed, armed_bins) = _placed(fine.groups, arms), *_binned(marked, arms, held)
    keys = pl.concat([one.select(_PLACE) for one in (placed, by_replica, armed)]).unique().with_row_index("cell")
    wide, seen = values(marked, held)
    wide = pl.DataFrame({_COUNTED: np.ones(len(requests))}).hstack(wide.get_columns())
    by_group = added(wide, _whole(fine.of_rows), len(fine.groups))
    numbers = _numbers(placed, keys)
    by_cell = added(by_group[numbers[_GROUP]], _whole(numbers["cell"]), len(keys)).with_row_index("cell")
    trapped = guard_cells.trapped(marked, fine.of_rows, numbers, kind)
    totals = [_counted(by_cell, kind), *melted(by_cell, seen, "cell", kind), trapped]
    together = _numbers(armed, keys).join(armed_bins, on=_GROUP).group_by("cell", "metric", "bin").agg(pl.col("n").sum())
    histograms = pl.concat([_numbers(by_replica, keys).join(replica_bins, on=_GROUP).select(together.columns), together])
    return Cells(_with_segment(keys), pl.concat(totals), histograms.with_columns(pl.col("metric").cast(kind)))


@dataclass(frozen=True, slots=True)
class _Grouped:
    """Requests grouped by keys: one row per group with its number, and the number of each request's group."""

    groups: pl.DataFrame
    of_rows: pl.Series


def _grouped(requests: pl.DataFrame, keys: Sequence[str]) -> _Grouped:
    groups = requests.select(keys).unique().with_row_index(_GROUP)
    return _Grouped(groups, requests.select(keys).join(groups, on=keys, nulls_equal=True, maintain_order="left")[_GROUP])


def _ready(requests: pl.DataFrame, by_tenant: bool) -> pl.DataFrame:
    tenant = pl.col("tenant") if by_tenant else pl.lit(None, pl.String)
    return requests.with_columns(tenant.alias("tenant"), pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at"))


def _placed(groups: pl.DataFrame, arms: pl.DataFrame, *, is_together: bool = False) -> pl.DataFrame:
    """Each group with the keys of each cell that it belongs to: of all requests, and of every lever that has it."""
    everything = groups.with_columns(pl.lit(ALL_REQUESTS).alias("lever"), pl.lit(ALL_REQUESTS).alias("arm"))
    both = everything if arms.is_empty() else pl.concat([everything, groups.join(arms, on="marks").select(everything.columns)])
    both = both.with_columns(pl.lit(is_together).alias("is_together"))
    only = [pl.when(pl.col("lever") == WITH_BATCH).then(key).alias(key) for key in ("temperature_bucket", "batch_bucket")]
    only.append(pl.when(~pl.col("lever").is_in(segments.TOPOLOGY_LEVERS)).then("topology").alias("topology"))
    has_key = pl.any_horizontal(pl.col(key).is_not_null() for key in segments.CELL_SEGMENT_KEYS)
    return both.with_columns(only).filter((pl.col("lever") == ALL_REQUESTS) | has_key).select(_GROUP, *_PLACE)


def _binned(marked: pl.DataFrame, arms: pl.DataFrame, held: Sequence[Metric]) -> tuple[_Binned, _Binned]:
    """For all requests by replica, and for the levers' arms: groups with the keys of the cells that they belong to, and the groups' bins.

    A group of the first is one cell; several of the second may be.
    """
    block = ["block_started_at", "tenant", *segments.JUDGING_KEYS]
    every = _grouped(marked, [*block, "replica"])
    armed = _grouped(marked, [*block, "temperature_bucket", "marks"])
    binned = with_bins(marked, held)
    every_placed = _placed(every.groups.with_columns(*_nulls("temperature_bucket", "batch_bucket")), arms.clear())
    armed_placed = _placed(armed.groups.with_columns(*_nulls("replica", "batch_bucket")), arms, is_together=True)
    return (
        (every_placed, counted(binned, every.of_rows)),
        (armed_placed.filter(pl.col("lever") != ALL_REQUESTS), counted(binned, armed.of_rows)),
    )


def _nulls(*names: str) -> list[pl.Expr]:
    return [pl.lit(None, pl.String).alias(name) for name in names]


def _whole(numbers: pl.Series) -> npt.NDArray[np.int64]:
    return numbers.cast(pl.Int64).to_numpy()


def _numbers(placed: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """The number of each group with that of each cell that it belongs to."""
    return placed.join(keys, on=_PLACE, nulls_equal=True).select(_GROUP, "cell")


def _counted(in_cells: pl.DataFrame, kind: pl.Enum) -> pl.DataFrame:
    whole = [pl.col(_COUNTED).cast(pl.Int64).alias(name) for name in SUMS[:2]]
    counted = in_cells.filter(pl.col(_COUNTED) > 0)
    return counted.select("cell", pl.lit(REQUESTS, kind).alias("metric"), *whole, *(pl.lit(0.0).alias(name) for name in SUMS[2:]))


def _with_segment(keys: pl.DataFrame) -> pl.DataFrame:
    names = list(segments.CELL_SEGMENT_KEYS)
    distinct = keys.select(names).unique()
    named = distinct.with_columns(pl.Series("segment", [segments.canonical(row) for row in distinct.to_dicts()], dtype=pl.String))
    return keys.join(named, on=names, nulls_equal=True)
