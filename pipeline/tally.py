"""Parts of requests, keys and metrics in, sums and exact percentiles of each segment out: the table `counted` of a report's statement.

What SQL would answer too, in half the time where requests are many: keys stay codes of their dictionaries, a request is looked at once,
and of the values none is sorted that is far from a percentile.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from pipeline import tally_chunk
from pipeline.metric_row import Metric
from pipeline.tally_chunk import Sums, Wholes
from pipeline.tally_total import Total
from queries import metric_sql, report_chunks, report_plain, report_sources
from queries.provenance_digits import is_told
from queries.report_chunks import Chunk, Wanted
from queries.report_parts import inputs, mark, words
from queries.store import Store, Transaction

MIN_ROWS = 2_000_000  # fewer are answered by SQL in a quarter of a second
MOST_VALUES = 60_000_000  # that percentiles are made of: 1 GB
MOST_SEGMENTS = 1 << 62  # combinations of all keys


def counted(
    store: Store, seen: Transaction, metrics: Sequence[Metric], by: Sequence[str], since: datetime | None, until: datetime | None
) -> pl.DataFrame | None:
    """One row per segment: keys, `requests`, and by metric what the table `counted` of `queries.report_plain` has.

    None where SQL is to count: requests are few or too many, a metric needs another pass, a key is no text, or parts are of before they
    kept digits of provenance.
    """
    if not metrics or not all(map(is_plain, metrics)) or not _are_texts(seen, by):
        return None
    files, rows = report_sources.whole_files(store, seen, since, until)
    held = sum(1 for metric in metrics if metric.kind == "quantile" or metric.percentiles_of)
    if rows < MIN_ROWS or rows * max(held, 1) > MOST_VALUES:
        return None
    with ThreadPoolExecutor(len(os.sched_getaffinity(0)), "tally") as pool:
        return _added(_reads(seen, files, report_chunks.wanted(by, metrics, since, until)), by, metrics, pool)


def _reads(seen: Transaction, files: Sequence[Path], wanted: Wanted) -> Iterator[Callable[[], Chunk]]:
    """What gives the chunks; the first are read while the rest is looked for."""
    for groups in report_chunks.row_groups(files, wanted.since, wanted.until):
        yield partial(report_chunks.of_part, groups, wanted)
    hot = report_chunks.of_hot(seen, wanted)
    yield lambda: hot


def is_plain(metric: Metric) -> bool:
    """Whether one pass over columns of parts answers a metric."""
    is_one_pass = metric.kind in report_plain.KINDS and metric.kind != "label" and not metric_sql.virtual_columns(metric)
    return is_one_pass and bool(metric_sql.columns_of(metric)) and is_told(inputs(metric), has_digits=True)


def _are_texts(seen: Transaction, by: Sequence[str]) -> bool:
    schema = seen.frame(f"select * from {report_sources.HOT} limit 0").schema
    return all(schema.get(name) == pl.String for name in by)


def _added(
    reads: Iterator[Callable[[], Chunk]], by: Sequence[str], metrics: Sequence[Metric], pool: ThreadPoolExecutor
) -> pl.DataFrame | None:
    asked = tally_chunk.tallied(metrics)
    try:
        every = list(pool.map(lambda read: tally_chunk.sums(read(), asked), reads))
    except report_chunks.TooManyKeysError:
        return None
    chunks = [one for one in every if len(one.segments)]
    keys, places = _together(chunks, by) if chunks else (None, np.empty(0, np.int64))
    if keys is None:
        return None
    total = Total(chunks, places, max(int(places.max()) + 1, 1))
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
    codes, places = np.unique(np.ravel_multi_index(tuple(numbers), sizes), return_inverse=True)
    keys = zip(by, every, np.unravel_index(codes, sizes), strict=True)
    return [pl.Series(name, [texts[place] for place in at.tolist()], pl.String) for name, texts, at in keys], places


def _columns(metric: Metric, total: Total, pool: ThreadPoolExecutor) -> list[pl.Series]:
    n = mark(metric, "n")
    known = mark(metric, "known") if metric.known_when else n
    columns = [total.sum(name, n) for tag in ("num", "den", "times") if (name := mark(metric, tag)) in total.summed]
    columns += [pl.Series(n, total.count(n)), pl.Series(mark(metric, "known"), total.count(known))]
    if metric.kind == "quantile" or metric.percentiles_of:
        name = mark(metric, "percentiles")
        columns.append(total.percentiles(name, n if metric.kind == "quantile" else mark(metric, "pct_n"), pool).alias(name))
    return [column.alias(column.name.strip('"')) for column in columns]
