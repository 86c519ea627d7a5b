"""Requests in, where and when each of them was served out: in flight beside each, and its part of its replica's and its link's time."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from pipeline.sweep import swept

AROUND = ("request_id", "replica", "prefill_replica", "started_at", "ended_at", "ttft_s", "queue_s", "prefill_s", "kv_transfer_s")
LONGEST_S = 86_400.0  # a phase that is said to be longer is none, and would overflow a time


def with_lives(requests: pl.DataFrame, around: pl.DataFrame, sampled: Collection[str] = ()) -> pl.DataFrame:
    """`requests` with concurrency, gpu_s and kv_link_s (seconds) where they had none and it can be told; `around` are others that ran.

    Nothing is told of requests on `sampled` replicas, which serve others that nobody sees.
    """
    seen = _seen(pl.concat([requests.select(AROUND), around.select(AROUND)], how="vertical_relaxed"))
    in_flight, busy_s = _of_rows(_on_replicas(seen), len(requests))
    _, link_s = _of_rows(_on_links(seen), len(requests))
    if seen["is_pair"].any():  # of a pair whose prefill has no known end, only the time on one of its replicas is known
        is_told = (~seen["is_pair"] | seen["prefilled_at"].is_not_null()).head(len(requests))
        busy_s = _where(is_told, busy_s)
    if sampled:
        is_partial = pl.any_horizontal(pl.col("replica", "prefill_replica").is_in(list(sampled)).fill_null(False))
        is_whole = requests.select(~is_partial).to_series()
        in_flight, busy_s, link_s = (_where(is_whole, values) for values in (in_flight, busy_s, link_s))
    return requests.with_columns(
        requests["concurrency"].fill_null(in_flight),
        requests["gpu_s"].fill_null(busy_s * requests["gpus"]),
        requests["kv_link_s"].fill_null(link_s),
    )


def _where(mask: pl.Series, values: pl.Series) -> pl.Series:
    return values.zip_with(mask, pl.Series([None], dtype=values.dtype).new_from_index(0, len(values)))


def _seen(requests: pl.DataFrame) -> pl.DataFrame:
    """One row per request, times in microseconds; `is_pair` where two replicas served it, `prefilled_at` where it says when that ended."""
    phases = [
        pl.col(name).clip(0.0, LONGEST_S).mul(1e6).round().cast(pl.Int64) for name in ("ttft_s", "queue_s", "prefill_s", "kv_transfer_s")
    ]
    seen = requests.select("replica", "prefill_replica", pl.col("started_at", "ended_at").dt.epoch("us"), *phases)
    after = pl.coalesce(pl.col("queue_s") + pl.col("prefill_s"), pl.col("ttft_s") - pl.col("kv_transfer_s").fill_null(0)).clip(0)
    return seen.with_row_index("row").with_columns(
        (pl.col("prefill_replica") != pl.col("replica")).fill_null(False).alias("is_pair"),
        pl.min_horizontal(pl.col("started_at") + after, pl.when(after.is_not_null()).then("ended_at")).alias("prefilled_at"),
    )


def _on_replicas(seen: pl.DataFrame) -> pl.DataFrame:
    """Each request's lives: on its replica, and before that on the replica that prefilled it."""
    if not seen["is_pair"].any():
        return _swept(seen, "replica", pl.col("started_at"), pl.col("ended_at"))
    is_split = pl.col("is_pair") & pl.col("prefilled_at").is_not_null()
    since = pl.when(is_split).then("prefilled_at").otherwise("started_at")
    last = seen.select("row", "replica", since.alias("since"), pl.col("ended_at").alias("until"), pl.lit(True).alias("is_last"))
    first = seen.filter(is_split).select(
        "row", pl.col("prefill_replica").alias("replica"), pl.col("started_at").alias("since"),
        pl.col("prefilled_at").alias("until"), pl.lit(False).alias("is_last"),
    )  # fmt: skip
    lives = _swept(pl.concat([last, first]), "replica", pl.col("since"), pl.col("until"))
    return lives.group_by("row").agg(pl.col("beside").filter("is_last").first(), pl.col("share_s").sum())


def _on_links(seen: pl.DataFrame) -> pl.DataFrame:
    """The transfers, each on its link: a pair of replicas."""
    moved = seen.filter(pl.col("is_pair") & (pl.col("kv_transfer_s") > 0) & pl.col("prefilled_at").is_not_null())
    link = pl.concat_str(["prefill_replica", "replica"], separator="\n")
    return _swept(moved.with_columns(link.alias("link")), "link", pl.col("prefilled_at"), pl.col("prefilled_at") + pl.col("kv_transfer_s"))


def _swept(lives: pl.DataFrame, place: str, since: pl.Expr, until: pl.Expr) -> pl.DataFrame:
    """Those that have a place and last for some time, with `beside` and `share_s`. One without an end counts nowhere."""
    lives = lives.filter(pl.col(place).is_not_null() & (until > since))
    places = lives[place].cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    times = lives.select(since.alias("since"), until.alias("until"))
    beside, share_s = swept(places, times["since"].to_numpy(), times["until"].to_numpy())
    return lives.with_columns(pl.Series("beside", beside), pl.Series("share_s", share_s))


def _of_rows(lives: pl.DataFrame, count: int) -> tuple[pl.Series, pl.Series]:
    """(beside, share_s) of the first `count` rows; null where a row has no life."""
    mine = lives.filter(pl.col("row") < count)
    rows = mine["row"].to_numpy()
    beside, share_s = np.full(count, -1, np.int64), np.full(count, np.nan)
    beside[rows], share_s[rows] = mine["beside"].fill_null(-1).to_numpy(), mine["share_s"].to_numpy()
    return pl.Series(beside).replace(-1, None), pl.Series(share_s).fill_nan(None)
