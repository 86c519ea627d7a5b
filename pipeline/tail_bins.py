"""Histograms of blocks in the store in, sparse arrays of many pairs of lever and segment out, and what is counted in them.

A row is one pair's histogram of one arm in one block. Rows come in order of blocks, so the rows of a range of blocks are a slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS
from pipeline.measure import BLOCK_S
from queries import files
from queries.store import Store

BLOCK = timedelta(seconds=BLOCK_S)
FIRST_BIN, LAST_BIN = -200, 700  # 40 microseconds and half an hour: what is beyond counts there

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bins:
    """One metric's histograms of `pairs` pairs, in a range of blocks that are numbered from 0.

    Per row: `pair`, `arm` (its place in ARMS) and `block`; its values are those from `start` on, to the next row's. Per value: `key`, row *
    width + place, rising, where place is the bin's distance from FIRST_BIN. `upto` (values + 1,) is the running total of counts.
    """

    pairs: int
    width: int
    pair: Whole
    arm: Whole
    block: Whole
    start: Whole
    key: Whole
    upto: Reals

    def rows(self, since: int, until: int) -> slice:
        """The rows of the blocks from one to before another."""
        low, high = np.searchsorted(self.block, [since, until])
        return slice(int(low), int(high))

    def counts(self, rows: slice) -> Reals:
        """How many values each of these rows has."""
        return np.diff(self.upto[self.start[rows.start : rows.stop + 1]])

    def running(self, rows: slice, weights: Reals | None = None) -> Reals:
        """Running totals (pairs, ARMS, width) over the bins of all these rows together; `weights` (rows,) say how much each row counts."""
        start = self.start[rows.start : rows.stop + 1]
        lengths, n = np.diff(start), np.diff(self.upto[start[0] : start[-1] + 1])
        if weights is not None:
            n *= np.repeat(weights, lengths)
        moved = (self.pair[rows] * len(ARMS) + self.arm[rows] - np.arange(rows.start, rows.stop)) * self.width
        places = self.key[start[0] : start[-1]] + np.repeat(moved, lengths)
        counted = np.bincount(places, weights=n, minlength=self.pairs * len(ARMS) * self.width)
        return np.cumsum(counted.reshape(self.pairs, len(ARMS), self.width), axis=2)

    def below(self, rows: slice, places: Whole) -> Reals:
        """How many of a row's values lie in bins up to a place, (rows,); `places` (pairs, ARMS) are -1 for none."""
        limit = np.arange(rows.start, rows.stop) * self.width + places[self.pair[rows], self.arm[rows]]
        return self.upto[np.searchsorted(self.key, limit, side="right")] - self.upto[self.start[rows]]


def read(store: Store, metric: str, pairs: pl.DataFrame, since: datetime, until: datetime) -> Bins:
    """The histograms of blocks from `since` to `until`; `pairs` has `lever`, `segment` and `pair`, which counts from 0."""
    series = store.frame(files.question("tail_series")).join(pairs, on=["lever", "segment"])
    asked = {"metric": metric, "since": since, "until": until, "series": series["series_id"].to_list()}
    found = store.frame(files.question("tail_bins"), asked)
    return of_rows(found.join(series.select("series_id", "pair", "arm"), on="series_id", maintain_order="left"), len(pairs), since)


def of_rows(found: pl.DataFrame, pairs: int, since: datetime) -> Bins:
    """The same of a frame of `pair`, `arm`, `block_started_at`, `bins` and `counts`, oldest first; bins of a row rise."""
    lengths = found["bins"].list.len().to_numpy()
    held = found if lengths.all() else found.filter(pl.col("bins").list.len() > 0)
    place = held["bins"].explode().clip(FIRST_BIN, LAST_BIN).to_numpy().astype(np.int64) - FIRST_BIN
    width = int(place.max(initial=0)) + 1
    return Bins(
        pairs=pairs,
        width=width,
        pair=found["pair"].to_numpy().astype(np.int64),
        arm=found["arm"].replace_strict({name: place for place, name in enumerate(ARMS)}, return_dtype=pl.Int64).to_numpy(),
        block=((found["block_started_at"] - since).dt.total_seconds() // BLOCK_S).to_numpy(),
        start=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        key=np.repeat(np.arange(len(found)) * width, lengths) + place,
        upto=np.concatenate([[0.0], np.cumsum(held["counts"].explode().to_numpy(), dtype=np.float64)]),
    )
