"""Spans of whole traces in, the logical request of each span out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

HEAD_ROLES = ("engine", "gateway", "client", "body")
DEPTH_LIMIT = 256
APART_S = 5  # the same key again after this long is another request: callers reuse ids

Ints = npt.NDArray[np.int64]


def with_request(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans that belong to a request, with `group`: the row number of the span that stands for the request.

    A span belongs to the topmost span above it that a client, gateway, tap or engine sent for a request. Requests of one
    trace that state the same `join_key` at the same time (legs of a prefill/decode pair, samples of n > 1) are one request.
    """
    spans = spans.sort("trace_id", "started_at", "span_id")  # so that the order of arrival decides nothing
    spans = spans.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    is_head = spans["role"].is_in(list(HEAD_ROLES)).fill_null(False).to_numpy()
    top = _topmost(_parents(spans), is_head)
    spans = spans.with_columns(pl.Series("top", top)).filter(pl.col("top") >= 0)
    groups = _same_request(spans.filter(pl.col("row") == pl.col("top")))
    return spans.join(groups, on="top", how="left")


def _same_request(heads: pl.DataFrame) -> pl.DataFrame:
    """(top, group): heads of one trace and join key whose times touch stand for one request; the first of them gives its number."""
    key = ["trace_id", "join_key"]
    heads = heads.select("row", *key, "started_at", "ended_at").sort(*key, "started_at", "row")
    apart = pl.col("started_at") > pl.col("ended_at").cum_max().shift().over(key) + pl.duration(seconds=APART_S)
    heads = heads.with_columns(apart.fill_null(False).cast(pl.Int64).cum_sum().over(key).alias("turn"))
    first = pl.col("row").min().over(*key, "turn")
    return heads.select(
        pl.col("row").alias("top"), pl.when(pl.col("join_key").is_null()).then(pl.col("row")).otherwise(first).alias("group")
    )


def _parents(spans: pl.DataFrame) -> Ints:
    """Each span's parent as a row number; -1 where it has none here."""
    known = spans.select("trace_id", pl.col("span_id").alias("parent_span_id"), pl.col("row").alias("parent"))
    known = known.unique(["trace_id", "parent_span_id"], keep="first")
    found = spans.join(known, on=["trace_id", "parent_span_id"], how="left", maintain_order="left")
    parents: Ints = found["parent"].fill_null(-1).to_numpy()
    return parents


def _topmost(parents: Ints, is_head: npt.NDArray[np.bool_]) -> Ints:
    """The topmost head at or above each row; -1 where there is none. Parents that form a ring end at a fixed depth."""
    rows = np.arange(len(parents))
    top = np.where(is_head, rows, -1)
    current = parents
    for _ in range(DEPTH_LIMIT):
        alive = current >= 0
        if not alive.any():
            break
        top = np.where(alive & is_head[current], current, top)
        current = np.where(alive, parents[current], -1)
    return _settled(top, is_head)


def _settled(top: Ints, is_head: npt.NDArray[np.bool_]) -> Ints:
    """The tops made to be their own tops: in a ring, or above the depth that is looked at, each head stands for itself."""
    rows = np.arange(len(top))
    unsettled = (top >= 0) & (top[top] != top)
    top = np.where(unsettled & is_head, rows, top)
    for _ in range(DEPTH_LIMIT):
        following = np.where(top >= 0, top[top], -1)
        if (following == top).all():
            return top
        top = following
    return np.where((top >= 0) & (top[top] == top), top, -1)
