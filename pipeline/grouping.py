"""Spans of whole traces in, the logical request of each span out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.joining import HEAD_ROLES, groups_of, inferred_phases

DEPTH_LIMIT = 256

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def with_request(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans that belong to a request, with `group`: the row number of the span that stands for the request.

    A span belongs to the topmost span above it that a client, gateway, tap or engine sent for a request, its `top`; which tops are
    one request says `joining`. `phase` is the span's own, else that of the nearest span above it that is of one leg of a pair, else
    its pool, else what the legs' order tells; `is_of_pool` says that its pool did. Spans of another rank's copy, and what lies below
    them, are left out. `outside_s` says how far a span reaches out of its top.
    """
    spans = spans.sort("trace_id", "started_at", "span_id")  # so that the order of arrival decides nothing
    spans = spans.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
    is_head = spans["role"].is_in(list(HEAD_ROLES)).fill_null(False).to_numpy()
    parents = _parents(spans)
    top = _topmost(parents, is_head)
    spans = spans.with_columns(pl.Series("top", top), *_phases(spans, parents))
    is_copy = _below(parents, (spans["role"] == "duplicate").fill_null(False).to_numpy())
    spans = inferred_phases(spans.filter((pl.col("top") >= 0) & ~pl.Series(is_copy)))
    return _beside_their_tops(spans.join(groups_of(spans), on="top", how="left"))


def _beside_their_tops(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans with `outside_s`: how long one began before its top, or ended after it.

    One that is longer than its top says nothing by its end, nor does one whose caller went away: the engine went on.
    """
    gave_up = (pl.col("outcome") == "aborted").fill_null(False) | (pl.col("status") == "error").fill_null(False)
    tops = spans.filter(pl.col("row") == pl.col("top"))
    tops = tops.select("top", pl.col("started_at").alias("since"), pl.col("ended_at").alias("until"), gave_up.alias("gave_up"))
    spans = spans.join(tops, on="top", how="left", maintain_order="left")
    before_s = (pl.col("since") - pl.col("started_at")).dt.total_microseconds() / 1e6
    after_s = (pl.col("ended_at") - pl.col("until")).dt.total_microseconds() / 1e6
    fits = (pl.col("ended_at") - pl.col("started_at") <= pl.col("until") - pl.col("since")) & ~pl.col("gave_up")
    outside_s = pl.max_horizontal(before_s, pl.when(fits).then(after_s))
    return spans.with_columns(outside_s.alias("outside_s")).drop("since", "until", "gave_up")


def _phases(spans: pl.DataFrame, parents: Ints) -> tuple[pl.Series, pl.Series]:
    """The leg of each span (its own word, else the nearest word above it, else its pool's), and whether its pool said it."""
    own = spans["phase"]
    if own.null_count() < len(own) and (parents >= 0).any():
        nearest = _nearest(parents, own.is_not_null().to_numpy())
        own = own.gather(pl.Series(nearest).replace(-1, None))
    return own.fill_null(spans["pool"]).alias("phase"), (own.is_null() & spans["pool"].is_not_null()).alias("is_of_pool")


def _parents(spans: pl.DataFrame) -> Ints:
    """Each span's parent as a row number; -1 where it has none here."""
    if spans["parent_span_id"].null_count() == len(spans):
        return np.full(len(spans), -1, np.int64)
    known = spans.select("trace_id", pl.col("span_id").alias("parent_span_id"), pl.col("row").alias("parent"))
    known = known.unique(["trace_id", "parent_span_id"], keep="first")
    found = spans.join(known, on=["trace_id", "parent_span_id"], how="left", maintain_order="left")
    parents: Ints = found["parent"].fill_null(-1).to_numpy()
    return parents


def _nearest(parents: Ints, marked: Mask) -> Ints:
    """The nearest marked row at or above each row; -1 where there is none."""
    found = np.where(marked, np.arange(len(parents)), -1)
    current = parents
    for _ in range(DEPTH_LIMIT):
        alive = (current >= 0) & (found < 0)
        if not alive.any():
            break
        found = np.where(alive & marked[current], current, found)
        current = np.where(alive, parents[current], -1)
    return found


def _below(parents: Ints, marked: Mask) -> Mask:
    """Which rows are marked or lie below one that is."""
    return marked if not marked.any() else _nearest(parents, marked) >= 0


def _topmost(parents: Ints, is_head: Mask) -> Ints:
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


def _settled(top: Ints, is_head: Mask) -> Ints:
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
