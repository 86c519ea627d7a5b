"""Parts of requests, keys and metrics in, the sums and exact percentiles of each segment out, as a report's statement has them in `counted`.

What SQL would answer too, in half the time where requests are many: keys stay codes of their dictionaries, a request is looked at once,
and of the values none is sorted that is far from a percentile.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

import numpy as np
import polars as pl

from pipeline import tally_chunk
from pipeline.metric_row import Metric
from pipeline.tally_chunk import Sums, Wholes
from queries import metric_sql, report_chunks, report_kernels, report_plain, report_sources
from queries.provenance_digits import is_told
from queries.report_chunks import Chunk
from queries.report_parts import inputs, mark, words
from queries.store import Store, Transaction

MIN_ROWS = 2_000_000  # fewer are answered by SQL in a quarter of a second
MOST_VALUES = 60_000_000  # that percentiles are made of: 1 GB
MOST_SEGMENTS = 1 << 62  # combinations of all keys
SHARES = np.array([share for _, share in metric_sql.QUANTILES])


def counted(
    store: Store, seen: Transaction, metrics: Sequence[Metric], by: Sequence[str], since: datetime | None, until: datetime | None
) -> pl.DataFrame | None:
    """One row per segment: keys, `requests`, and by metric what the table `counted` of `queries.report_plain` has.

    None where SQL is to count: requests are few or too many, a metric needs another pass, a key is no text, or parts are of before they
    kept digits of provenance.
    """
    if not all(map(_is_plain, metrics)) or not _are_texts(seen, by):
        return None
    files, rows = report_sources.whole_files(store, seen, since, until)
    held = sum(1 for metric in metrics if metric.kind == "quantile" or metric.percentiles_of)
    if rows < MIN_ROWS or rows * max(held, 1) > MOST_VALUES:
        return None
    wanted = report_chunks.wanted(by, metrics, since, until)
    reads: list[Callable[[], Chunk]] = [
        partial(report_chunks.of_part, group, wanted) for group in report_chunks.row_groups(files, since, until)
    ]
    hot = report_chunks.of_hot(seen, wanted)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "tally") as pool:
        return _added([*reads, lambda: hot], by, metrics, pool)


def _is_plain(metric: Metric) -> bool:
    """Whether one pass over columns of parts answers a metric."""
    is_one_pass = metric.kind in report_plain.KINDS and metric.kind != "label" and not metric_sql.virtual_columns(metric)
    return is_one_pass and bool(metric.numerator) and is_told(inputs(metric), has_digits=True)


def _are_texts(seen: Transaction, by: Sequence[str]) -> bool:
    schema = seen.frame(f"select * from {report_sources.HOT} limit 0").schema
    return all(schema.get(name) == pl.String for name in by)


def _added(
    reads: Sequence[Callable[[], Chunk]], by: Sequence[str], metrics: Sequence[Metric], pool: ThreadPoolExecutor
) -> pl.DataFrame | None:
    asked = tally_chunk.tallied(metrics)
    try:
        every = list(pool.map(lambda read: tally_chunk.sums(read(), asked), reads))
    except tally_chunk.TooManyKeysError:
        return None
    chunks = [one for one in every if len(one.segments)]
    keys, places = _together(chunks, by) if chunks else (None, np.empty(0, np.int64))
    if keys is None:
        return None
    total = _Total(chunks, places, max(int(places.max()) + 1, 1))
    columns = [pl.Series("requests", total.whole([one.requests for one in chunks]))]
    columns += [column for metric in metrics for column in _columns(metric, total, pool)]
    columns += [pl.Series(name.strip('"'), total.words(place)) for place, (name, _) in enumerate(words(metrics))]
    return pl.DataFrame([*keys, *columns])


def _together(chunks: Sequence[Sums], by: Sequence[str]) -> tuple[list[pl.Series] | None, Wholes]:
    """The keys of all segments, and which of these each segment of each chunk is; no keys where they cannot be numbered."""
    if not by:
        return [], np.zeros(len(chunks), np.int64)
    every, numbers = [], []
    for place in range(len(by)):
        texts: dict[str | None, int] = {}
        found = [np.array([texts.setdefault(text, len(texts)) for text in one.texts[place]])[one.keys[place]] for one in chunks]
        every.append(list(texts))
        numbers.append(np.concatenate(found))
    sizes = [len(texts) for texts in every]
    if math.prod(sizes) > MOST_SEGMENTS:
        return None, np.empty(0, np.int64)
    codes, places = np.unique(np.ravel_multi_index(numbers, sizes), return_inverse=True)
    found = np.unravel_index(codes, sizes)
    return [pl.Series(name, np.array(texts, object)[at], pl.String) for name, texts, at in zip(by, every, found, strict=True)], places


class _Total:
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
        ordered, found = np.empty(starts[-1], np.uint64), np.full((self._count, len(SHARES)), np.nan)
        each = [(one.segments, one.held[name]) for one in self._chunks]

        def spread(of: int) -> None:
            (segments, mark), free = each[of], np.split(places, self._ends)[of].copy()
            report_kernels.spread(segments, mark.values, mark.bits, mark.offset, free, ordered)

        def read(ends: tuple[int, int]) -> None:
            report_kernels.percentiles(ordered, starts, SHARES, *ends, found)

        list(pool.map(spread, range(len(each))))
        cuts = np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], 17)[:-1]).clip(0, self._count))
        list(pool.map(read, zip([0, *cuts[1:]], [*cuts[1:], self._count], strict=True)))
        lists = pl.Series(found).arr.to_list()
        return pl.select(pl.when(pl.Series(np.diff(starts) > 0)).then(lists)).to_series()


def _columns(metric: Metric, total: _Total, pool: ThreadPoolExecutor) -> list[pl.Series]:
    n = mark(metric, "n")
    known = mark(metric, "known") if metric.known_when else n
    columns = [total.sum(name, n) for tag in ("num", "den", "times") if (name := mark(metric, tag)) in total.summed]
    columns += [pl.Series(n, total.count(n)), pl.Series(mark(metric, "known"), total.count(known))]
    if metric.kind == "quantile" or metric.percentiles_of:
        name = mark(metric, "percentiles")
        columns.append(total.percentiles(name, n if metric.kind == "quantile" else mark(metric, "pct"), pool).alias(name))
    return [column.alias(column.name.strip('"')) for column in columns]
