"""Samples of gauges in, what each request met at its admission out: the last value of its replica before that, if it is not too old."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

TOLERANCE_S = 60.0  # an older sample says nothing of now
COLLECTIVE_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Gauge:
    """A column of `requests` as of admission: from which signal, how its series combine, and whether the prefill replica is asked."""

    column: str
    signal: str
    adds_up: bool
    of_prefill: bool = False


GAUGES = (
    Gauge("batch_at_admission", "running_requests", adds_up=True, of_prefill=True),
    Gauge("queue_depth", "queue_depth", adds_up=True, of_prefill=True),
    Gauge("kv_usage", "kv_usage", adds_up=False),
    Gauge("kv_block_tokens", "kv_block_tokens", adds_up=False),
    Gauge("gpu_memory_used_bytes", "gpu_memory_used_bytes", adds_up=True),
    Gauge("gpu_memory_free_bytes", "gpu_memory_free_bytes", adds_up=True),
    Gauge("collective_bus_bytes_per_s", "collective_bus_bytes_per_s", adds_up=False),
)


def with_gauges(requests: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """`requests` with the columns of `GAUGES` where they had none and a sample says; `samples` as `series.counted` gives them."""
    gauges = samples.filter(pl.col("kind") == "gauge")
    known = set(gauges["signal"].unique())
    admitted = _admitted(requests)
    for gauge in GAUGES:
        if gauge.signal in known and requests[gauge.column].null_count():
            levels = _levels(gauges.filter(pl.col("signal") == gauge.signal), gauge.adds_up)
            found = _as_of(admitted, levels, "prefiller" if gauge.of_prefill else "replica", TOLERANCE_S)["value"]
            if requests.schema[gauge.column] == pl.Int64:
                found = found.round().cast(pl.Int64, strict=False)
            requests = requests.with_columns(requests[gauge.column].fill_null(found))
    if "collective_s" in known and requests["communication_fraction"].null_count():
        fraction = _communication(admitted, gauges.filter(pl.col("signal") == "collective_s"))
        requests = requests.with_columns(requests["communication_fraction"].fill_null(fraction))
    return requests


def _admitted(requests: pl.DataFrame) -> pl.DataFrame:
    """(row, replica, prefiller, observed_at): who is asked, and as of when, in order of time."""
    waited = pl.duration(microseconds=(pl.col("queue_s").fill_null(0.0).clip(0.0, 86_400.0) * 1e6).cast(pl.Int64))
    return requests.with_row_index("row").select(
        "row", "replica", pl.coalesce("prefill_replica", "replica").alias("prefiller"), (pl.col("started_at") + waited).alias("observed_at")
    ).sort("observed_at")  # fmt: skip


def _levels(samples: pl.DataFrame, adds_up: bool) -> pl.DataFrame:
    """(replica, observed_at, value): a signal's value at each moment, its series taken together."""
    moments = samples.group_by("replica", "sender", "observed_at").agg(pl.col("value").sum(), pl.len().alias("series"))
    if moments["sender"].n_unique() > 1:
        moments = _of_all_senders(moments)
    value = pl.col("value") if adds_up else pl.col("value") / pl.col("series")
    return moments.select("replica", "observed_at", value.alias("value")).sort("observed_at")


def _of_all_senders(moments: pl.DataFrame) -> pl.DataFrame:
    """Where ranks of one replica are scraped apart, at each moment the last of each of them together."""
    moments = moments.sort("observed_at")
    place = moments.select("replica", "sender").unique().with_columns((pl.col("sender").rank("ordinal").over("replica") - 1).alias("place"))
    moments = moments.join(place, on=["replica", "sender"], maintain_order="left")
    if not moments["place"].max():
        return moments
    ways: list[pl.DataFrame] = moments.partition_by("place")
    union = moments.select("replica", "observed_at").unique().sort("observed_at")
    each = [_as_of(union, way.select("replica", "observed_at", "value", "series"), "replica", TOLERANCE_S) for way in ways]
    return union.with_columns(
        pl.sum_horizontal(*(way["value"].alias(f"{n}") for n, way in enumerate(each))).alias("value"),
        pl.sum_horizontal(*(way["series"].alias(f"{n}") for n, way in enumerate(each))).alias("series"),
    )


def _as_of(asked: pl.DataFrame, said: pl.DataFrame, replica: str, tolerance_s: float) -> pl.DataFrame:
    """For each row asked, in its order (by `row` where it has one), the last said before or at its moment, not older than the tolerance."""
    found = asked.join_asof(
        said, on="observed_at", by_left=replica, by_right="replica", tolerance=f"{round(tolerance_s * 1e6)}us", check_sortedness=False
    )
    return found.sort("row") if "row" in found.columns else found


def _communication(admitted: pl.DataFrame, samples: pl.DataFrame) -> pl.Series:
    """The part of the time before admission that ranks spent in collectives: an upper bound, since they overlap with computing.

    Only where each collective is said on its own (it has a serial number); the last of them alone says nothing of a time.
    """
    said = samples.filter(pl.col("told").str.contains("(?m)^sn="))
    said = said.with_columns(pl.col("told").str.extract("(?m)^rank=(.*)$").alias("rank"))
    ranks = said.group_by("replica").agg(pl.col("rank").n_unique().alias("ranks"), pl.col("observed_at").min().alias("first"))
    sums = said.group_by("replica", "observed_at").agg(pl.col("value").sum()).sort("observed_at")
    sums = sums.with_columns(pl.col("value").cum_sum().over("replica").alias("total"))
    sums = sums.join(ranks, on="replica", maintain_order="left").select("replica", "observed_at", "total", "ranks", "first")
    until = _as_of(admitted, sums.with_columns(pl.col("observed_at").alias("last")), "replica", COLLECTIVE_WINDOW_S)
    window = pl.duration(microseconds=round(COLLECTIVE_WINDOW_S * 1e6))
    before = _as_of(admitted.with_columns(pl.col("observed_at") - window), sums, "replica", 1e9)["total"].fill_null(0.0)
    span_s = pl.min_horizontal((pl.col("observed_at") - pl.col("first")).dt.total_microseconds() / 1e6, COLLECTIVE_WINDOW_S)
    share = (pl.col("total") - before) / (span_s * pl.col("ranks"))
    return until.select(pl.when(span_s >= COLLECTIVE_WINDOW_S / 2).then(share).alias("share"))["share"]
