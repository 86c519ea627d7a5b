"""Settled requests in, the same requests out with what they met where they ran: load, shares of time, and counts by exposure."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from pipeline import segments
from pipeline.exposure import EXPOSED, with_counts
from pipeline.gauges import GAUGES, with_gauges
from pipeline.lives import AROUND as OF_LIVES
from pipeline.lives import with_lives
from pipeline.series import counted

# Where the value of a column that is filled here comes from, as `provenance` says it.
SOURCES = {
    **{gauge.column: "sample" for gauge in GAUGES},
    "communication_fraction": "sample",
    "concurrency": "derived",
    "gpu_s": "derived",
    "kv_link_s": "derived",
    **dict.fromkeys(EXPOSED, "counter"),
}
# What is asked of the other requests that ran beside those that are settled.
AROUND = (*OF_LIVES, "arms", "model")


def joined(
    requests: pl.DataFrame, around: pl.DataFrame, samples: pl.DataFrame, edges: segments.Edges, sampled: Collection[str] = ()
) -> pl.DataFrame:
    """`requests` (all columns, maps as lists of pairs), filled where they were null: the columns of `SOURCES` and their buckets.

    `around` has the columns of `AROUND` (`arms` and `model` may lack) of other requests that ran beside these. `samples` has rows of the
    view `samples` (labels as pairs) of their replicas, from before the first start until after the last end. What nothing tells stays
    null. Of `sampled` replicas only some requests are seen: how many ran beside each, and its part of the time, is unknown there.
    Measured: 2.6 µs a request where all of it is filled (60,000 requests, 61,000 samples of 40 replicas), 0.6 µs without samples.
    """
    if requests.is_empty():
        return requests
    filled = with_lives(requests, around, sampled)
    if not samples.is_empty():
        said = counted(samples)
        filled = with_counts(with_gauges(filled, said), said, around)
    return _with_provenance(_with_buckets(filled, edges), requests)


def _with_buckets(requests: pl.DataFrame, edges: segments.Edges) -> pl.DataFrame:
    buckets = {
        "batch_bucket": segments.bucket("batch_at_admission", edges.batch),
        "concurrency_bucket": segments.bucket("concurrency", edges.concurrency),
        "cache_class": segments.cache_class(),
    }
    return requests.with_columns(pl.coalesce(name, bucket).alias(name) for name, bucket in buckets.items())


def _with_provenance(filled: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Extends `provenance` by the source of each value that was filled; few combinations of columns are, so each is written once."""
    code = np.zeros(len(filled), np.int64)
    for place, column in enumerate(SOURCES):
        if filled[column].null_count() < before[column].null_count():
            code |= (before[column].is_null() & filled[column].is_not_null()).to_numpy().astype(np.int64) << place
    told = filled.select("provenance").with_columns(pl.Series("code", code)).with_row_index("row")
    groups = told.group_by("provenance", "code").agg("row")
    dtype = filled.schema["provenance"]
    more = pl.Series([_pairs(one) for one in groups["code"].to_list()], dtype=dtype)
    both = pl.concat_list(pl.col("provenance").fill_null(pl.lit([], dtype)), more)
    return filled.with_columns(groups.with_columns(both.alias("provenance")).explode("row").sort("row")["provenance"])


def _pairs(code: int) -> list[dict[str, str]]:
    return [{"key": column, "value": source} for place, (column, source) in enumerate(SOURCES.items()) if code >> place & 1]
