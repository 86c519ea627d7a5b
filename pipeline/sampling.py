"""Spans and counted requests of replicas in, the share of requests that sent a span out, and what a total must be multiplied by.

A caller whose traceparent says no, or a router that samples 10 %, takes the engine's spans away with its own. The engine's counters of
finished requests stay whole: where fewer spans came than were counted, sums over requests are too small by that share.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from queries import files, ranged
from queries.store import Store

WINDOW_S = 300
LONGEST = timedelta(hours=1)  # of a request that is looked for
FEW_SPANS = 30  # below, the share is known worse than within a fifth: no total is given
SLACK_SHARE, SLACK_REQUESTS = 0.02, 2  # requests that end between a counter's reading and their span's end
SCHEMA = pl.Schema({
    "replica": pl.String(), "window_started_at": pl.Datetime("us", "UTC"), "window_s": pl.Float64(), "spans": pl.Int64(),
    "counted": pl.Int64(), "fraction": pl.Float64(), "weight": pl.Float64(), "state": pl.String(), "basis": pl.String(),
})  # fmt: skip


def sampled(windows: pl.DataFrame) -> pl.DataFrame:
    """The rows of `sampling`, of (replica, window_started_at, spans, counted): share of requests with a span, its state, the weight."""
    slack = SLACK_REQUESTS + SLACK_SHARE * pl.col("counted")
    missing = pl.col("counted") - pl.col("spans")
    state = (
        pl.when(missing < -slack)
        .then(pl.lit("excess"))
        .when(missing <= slack)
        .then(pl.lit("whole"))
        .when(pl.col("spans") < FEW_SPANS)
        .then(pl.lit("few"))
        .otherwise(pl.lit("sampled"))
    )
    fraction = (pl.col("spans") / pl.col("counted")).clip(0.0, 1.0)
    judged = windows.filter(pl.col("counted") > 0).with_columns(state.alias("state"), fraction.alias("fraction"))
    weight = pl.when(pl.col("state") == "whole").then(1.0).when(pl.col("state") == "sampled").then(pl.col("counted") / pl.col("spans"))
    return judged.select(
        "replica", "window_started_at", pl.lit(float(WINDOW_S)).alias("window_s"), "spans", "counted", "fraction",
        weight.alias("weight"), "state", pl.lit("counter").alias("basis"),
    ).cast(SCHEMA).sort("window_started_at", "replica")  # fmt: skip


def scaled(totals: pl.DataFrame, sampling: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """Totals per replica and window, each multiplied to what all requests make, with `totals_are`: whole, scaled, refused or unchecked.

    A total is null where too few spans came to multiply by. Without a counter nothing is known, and totals stay as they are.
    """
    known = sampling.select("replica", "window_started_at", "weight", "state")
    joined = totals.join(known, on=["replica", "window_started_at"], how="left", maintain_order="left")
    words = {"whole": "whole", "sampled": "scaled", "few": "refused", "excess": "unchecked"}
    told = pl.col("state").replace_strict(words, default="unchecked", return_dtype=pl.String).fill_null("unchecked")
    unscaled = pl.col("state").is_null() | (pl.col("state") == "excess")
    weight = pl.when(unscaled).then(1.0).otherwise(pl.col("weight"))
    multiplied = [(pl.col(column) * weight).alias(column) for column in columns]
    return joined.with_columns(*multiplied, told.alias("totals_are")).drop("weight", "state")


def sample_next(store: Store, mark: datetime | None) -> int:
    """Holds spans against counters in the windows that have ended since the last time; gives how many rows that made."""
    if mark is None:
        return 0
    until = _floor(mark - timedelta(seconds=WINDOW_S / 2))
    recent = {"since": until - timedelta(seconds=2 * WINDOW_S)}
    if not store.rows("select 1 from samples where observed_at >= $since and signal = 'requests_total' limit 1", recent):
        return 0
    since = _since(store, until)
    if since >= until:
        return 0
    span = {"window_s": WINDOW_S, "since": since, "until": until}
    with store.write() as transaction:
        counted = transaction.frame(files.question("sampling_counted"), span)
        transaction.using(counted, "create or replace temp table sampling_windows as select * from incoming")
        if counted.is_empty():
            return 0
        ranged.view(store, transaction, "spans", *counted.select(pl.col("since").min() - LONGEST, pl.col("until").max()).row(0))
        rows = sampled(transaction.frame(files.question("sampling_spans")))
        transaction.execute("delete from sampling where window_started_at >= $since", {"since": since})
        if rows.is_empty():
            return 0
        return transaction.insert("sampling", rows)


def _since(store: Store, until: datetime) -> datetime:
    """The end of the last window that was looked at, or of the first counter there is; a day back at most."""
    found = store.rows(
        "select coalesce((select max(window_started_at) + to_seconds($window_s) from sampling), "
        "(select min(observed_at) from samples where signal = 'requests_total')) as since",
        {"window_s": WINDOW_S},
    )
    return max(_floor(found[0]["since"]), until - timedelta(days=1))


def _floor(moment: datetime) -> datetime:
    return moment - timedelta(seconds=moment.timestamp() % WINDOW_S)
