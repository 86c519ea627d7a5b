"""Sums of both sides by segment, stratum and block in, arrays of strata by blocks out, some segments at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference.charge import added_s
from pipeline.inference.contrast import LEAST_REQUESTS, Sums

RAW = ("tpot_s", "ttft_s", "e2e_s")
METRICS = (*RAW, "net_itl_s")
SIDES = ("treated", "without")
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
STRATA_TOGETHER = 1300  # 300 blocks of a day, three metrics and two sides of 6 sums: 112 MB

Reals = npt.NDArray[np.float64]
Arms = tuple[Sums, Sums]


@dataclass(frozen=True, slots=True)
class Grids:
    """Some segments' sums: both sides of RAW (`busy`, `first`, `whole`), arrays (strata, blocks); `streams`: strata's segments."""

    segments: tuple[str, ...]
    streams: npt.NDArray[np.int64]
    busy: Arms
    first: Arms
    whole: Arms

    def arms(self) -> Iterator[Arms]:
        """Both sides of each of METRICS. Net ITL charges treated with the time to the first token that it adds in a stratum."""
        yield from (self.busy, self.first, self.whole)
        first, other = self.first
        added = added_s(first.n, first.num, other.n, other.num, LEAST_REQUESTS)
        yield self.busy[0].charged(added), self.busy[1]

    def values(self, treated: Sums, without: Sums) -> tuple[Reals, Reals]:
        """The metric of each side by segment; a stratum and block weighs n_T n_C / (n_T + n_C) on both, as in `inference.matching`."""
        both = (treated.n >= LEAST_REQUESTS) & (without.n >= LEAST_REQUESTS)
        share = np.divide(treated.n, treated.n + without.n, out=np.zeros_like(treated.n), where=both)
        return self._ratio(treated, np.where(both, 1 - share, 0.0)), self._ratio(without, share)

    def _ratio(self, side: Sums, weight: Reals) -> Reals:
        num, den = (np.bincount(self.streams, (part * weight).sum(axis=1), len(self.segments)) for part in (side.num, side.den))
        return np.asarray(np.divide(num, den, out=np.full(len(num), np.nan), where=den > 0))


def grids(rows: pl.DataFrame) -> Iterator[Grids]:
    """The sums in arrays, segment after segment, at most about STRATA_TOGETHER strata at a time."""
    strata = rows.select("segment", "stratum").unique().sort("segment", "stratum").with_row_index("number")
    ends = strata.group_by("segment", maintain_order=True).agg((pl.col("number").max() // STRATA_TOGETHER).alias("part"))
    placed = rows.join(ends, on="segment")
    for (_,), held in placed.group_by("part", maintain_order=True):
        yield _grid(held)


def _grid(rows: pl.DataFrame) -> Grids:
    strata = rows.select("segment", "stratum").unique().sort("segment", "stratum").with_row_index("row")
    numbered = rows.join(strata, on=["segment", "stratum"]).with_columns((pl.col("block_started_at").rank("dense") - 1).alias("column"))
    names = strata["segment"].unique(maintain_order=True)
    streams = (strata["segment"].rank("dense") - 1).cast(pl.Int64).to_numpy()
    shape = len(strata), int(numbered["column"].to_numpy().max(initial=0)) + 1
    busy, first, whole = ((_summed(numbered, name, SIDES[0], shape), _summed(numbered, name, SIDES[1], shape)) for name in RAW)
    return Grids(tuple(names.to_list()), streams, busy, first, whole)


def _summed(rows: pl.DataFrame, metric: str, side: str, shape: tuple[int, int]) -> Sums:
    held = rows.filter((pl.col("metric") == metric) & (pl.col("side") == side))
    place = held["row"].cast(pl.Int64).to_numpy() * shape[1] + held["column"].cast(pl.Int64).to_numpy()
    return Sums(*(np.bincount(place, held[name].to_numpy(), shape[0] * shape[1]).astype(np.float64).reshape(shape) for name in SUMS))
