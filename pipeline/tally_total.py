"""Sums of chunks by their own segments in, the sums and exact percentiles of all of them by the segments of a report out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl

from pipeline.tally_chunk import Sums, Wholes
from queries import metric_sql, report_kernels

SHARES = np.array([share for _, share in metric_sql.QUANTILES])
RUNS = 16  # of segments, of about as many values each, that threads take in turn


class Total:
    """The sums of chunks by segment; `places` has the segment of each row of each chunk, one after the other."""

    def __init__(self, chunks: Sequence[Sums], places: Wholes, count: int) -> None:
        self._chunks, self._places, self._count = chunks, places, count
        self.summed = chunks[0].sums.keys()
        self._ends = np.cumsum([len(one.requests) for one in chunks])[:-1]

    def whole(self, numbers: Sequence[Wholes]) -> Wholes:
        """The sums of whole numbers."""
        return np.bincount(self._places, np.concatenate(numbers), self._count).astype(np.int64)

    def count(self, name: str) -> Wholes:
        """How many requests a truth holds of."""
        return self.whole([one.counts[name] for one in self._chunks])

    def sum(self, name: str, n: str) -> pl.Series:
        """The sum of a mark, null where no request counts."""
        found = np.bincount(self._places, np.concatenate([one.sums[name] for one in self._chunks]), self._count)
        return pl.select(pl.when(pl.Series(self.count(n) > 0)).then(pl.Series(found)).alias(name)).to_series()

    def words(self, place: int) -> Wholes:
        """The words of a place, joined."""
        found = np.zeros(self._count, np.int64)
        np.bitwise_or.at(found, self._places, np.concatenate([one.words[place] for one in self._chunks]))
        return found

    def percentiles(self, name: str, n: str, pool: ThreadPoolExecutor) -> pl.Series:
        """The percentiles of what is held, of which there are `n`, as lists; null where there are none."""
        counts = np.concatenate([one.counts[n] for one in self._chunks])
        order = np.argsort(self._places, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.cumsum(counts[order]) - counts[order]
        starts = np.concatenate([[0], np.cumsum(self.count(n))])
        ordered, found = np.empty(starts[-1] + 1, np.uint64), np.full((self._count, len(SHARES)), np.nan)
        each = [(one.segments, one.held[name]) for one in self._chunks]

        def spread(of: int) -> None:
            (segments, mark), free = each[of], np.split(places, self._ends)[of]
            report_kernels.spread(segments, mark.values, mark.bits, mark.offset, free, ordered)

        def read(ends: tuple[int, int]) -> None:
            report_kernels.percentiles(ordered, starts, SHARES, *ends, found)

        list(pool.map(spread, range(len(each))))
        cuts = np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], RUNS + 1)[:-1]).clip(0, self._count))
        list(pool.map(read, zip([0, *cuts[1:]], [*cuts[1:], self._count], strict=True)))
        lists = pl.Series(found).arr.to_list()
        return pl.select(pl.when(pl.Series(np.diff(starts) > 0)).then(lists)).to_series()
