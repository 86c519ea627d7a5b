"""Samples and settled requests in, one row per replica out: what its time series counted, beside what its requests say of the same."""

from __future__ import annotations

import polars as pl

from pipeline.series import DELTA, GATEWAYS, counted
from pipeline.traps import PAIRS

COUNTED = (
    "requests_total", "prompt_tokens_total", "cached_tokens_total", "cache_queried_tokens_total", "preemptions_total",
    "draft_tokens_total", "accepted_tokens_total", "kv_transfer_s", "kv_transfer_bytes", "kv_transfer_bytes_per_s", "tpot_s",
)  # fmt: skip
OWN = ("span", "body", "log", "derived")  # a request's own word, and not a share of a series


def grown(samples: pl.DataFrame) -> pl.DataFrame:
    """One row per replica: `since`, `until`, and how far each counter grew between its first and last sample.

    Of a histogram the sum of its observations counts, and their number as `<signal>_n`. A counter that fell began anew. Null where there
    is no such series.
    """
    asked = samples.filter(pl.col("signal").is_in(list(COUNTED))).with_columns(pl.col("labels").cast(PAIRS))
    counters = _moved(counted(asked), ["replica", "signal", "series"]).with_columns(pl.lit(None, pl.Float64).alias("observations"))
    histograms = asked.filter(pl.col("kind") == "histogram").with_columns(_told())
    histograms = histograms.filter(pl.col("engine").eq_missing(_own_word().over("replica", "signal")))
    of_histogram = ["replica", "signal", "name", "told", "sender"]
    histograms = _moved(histograms, of_histogram).with_columns(_growth("total", of_histogram).alias("observations"))
    kept = ["replica", "signal", "observed_at", "growth", "observations"]
    moved = pl.concat([counters.select(kept), histograms.select(kept)])
    sums = [_sum("growth", signal).alias(signal) for signal in COUNTED]
    numbers = [_sum("observations", signal).alias(f"{signal}_n") for signal in COUNTED if not signal.endswith("_total")]
    period = [pl.col("observed_at").min().alias("since"), pl.col("observed_at").max().alias("until")]
    return moved.group_by("replica", maintain_order=True).agg(*period, *sums, *numbers)


def compared(requests: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """One row per replica with samples: `grown`, and of its requests what the series traps hold against it.

    `own_*` are sums over requests that said it themselves; `peer_*` is the replica of the same model that skips the largest share.
    """
    counters = grown(samples)
    said = requests.with_columns(_own(column).alias(f"own:{column}") for column in ("cached_tokens", "accepted_tokens"))
    by_replica = said.filter(pl.col("replica").is_not_null()).group_by("replica").agg(*_of_requests())
    links = pl.concat([_links(requests, column) for column in ("replica", "prefill_replica", "decode_replica")])
    links = links.group_by("replica").agg(pl.col("link_peak").max())
    joined = counters.join(by_replica, on="replica", how="left").join(links, on="replica", how="left")
    own, told = pl.col("own_cached") / pl.col("own_prompt"), pl.col("cached_tokens_total") / _looked_up()
    joined = joined.with_columns(
        pl.coalesce(own, told).alias("skipped_share"),
        own.alias("own_share"),
        told.alias("counted_share"),
        _looked_up().alias("looked_up"),
    )
    best = joined.filter(pl.col("skipped_share").is_finite()).sort("skipped_share", descending=True).group_by("model").first()
    best = best.select("model", *(pl.col(name).alias(f"peer_{name}") for name in ("replica", "skipped_share", "block")))
    return joined.join(best, on="model", how="left")


def _moved(rows: pl.DataFrame, series: list[str]) -> pl.DataFrame:
    return rows.sort(*series, "observed_at").with_columns(_growth("value", series).alias("growth"))


def _growth(column: str, series: list[str]) -> pl.Expr:
    value = pl.col(column).cast(pl.Float64)
    before = value.shift().over(series)
    grown = pl.when(value >= before).then(value - before).when(value < before).then(value)
    return pl.when(pl.col("told").str.contains(DELTA, literal=True)).then(value).otherwise(grown)


def _told() -> pl.Expr:
    """The labels of a series as text."""
    pair = pl.concat_str(pl.element().struct.field("key"), pl.element().struct.field("value"), separator="=")
    return pl.col("labels").list.eval(pair).list.sort().list.join("\n").fill_null("").alias("told")


def _own_word() -> pl.Expr:
    """The engine whose word counts: not a gateway's, where another speaks of the same."""
    return pl.col("engine").sort_by(pl.col("engine").is_in(list(GATEWAYS)).fill_null(value=True), "engine").first()


def _sum(column: str, signal: str) -> pl.Expr:
    """The sum over a signal's series; null where none has grown or stood between two samples."""
    mine = pl.col(column).filter((pl.col("signal") == signal) & pl.col(column).is_not_null())
    return pl.when(mine.len() > 0).then(mine.sum())


def _looked_up() -> pl.Expr:
    """The tokens that the cache was asked for: counted as such, else all prompt tokens."""
    return pl.coalesce("cache_queried_tokens_total", "prompt_tokens_total")


def _own(column: str) -> pl.Expr:
    """Whether a request said a column itself."""
    told = pl.element().struct.field("key").eq(column) & pl.element().struct.field("value").is_in(list(OWN))
    return pl.col("provenance").cast(PAIRS).list.eval(told).list.any().fill_null(False)


def _of_requests() -> list[pl.Expr]:
    own = pl.col("own:cached_tokens") & (pl.col("prompt_tokens") > 0)
    drafted = pl.col("own:accepted_tokens") & (pl.col("draft_tokens") > 0)
    stepped = pl.col("verify_steps") > 0
    return [
        pl.len().alias("requests"),
        pl.col("model").drop_nulls().first(),
        pl.col("prompt_tokens").mean().alias("prompt_mean"),
        own.sum().alias("own_n"),
        pl.col("cached_tokens").filter(own).sum().alias("own_cached"),
        pl.col("prompt_tokens").filter(own).sum().alias("own_prompt"),
        pl.col("kv_block_tokens").max().alias("block"),
        (pl.col("prompt_tokens") < pl.col("kv_block_tokens")).mean().alias("short_share"),
        drafted.sum().alias("drafted_n"),
        (pl.col("accepted_tokens").filter(drafted).sum() / pl.col("draft_tokens").filter(drafted).sum()).alias("own_acceptance"),
        (1 + pl.col("accepted_tokens").filter(stepped).sum() / pl.col("verify_steps").filter(stepped).sum()).alias("length"),
        pl.col("tpot_s").count().alias("timed_n"),
        pl.col("tpot_s").mean().alias("tpot_mean_s"),
        (pl.col("e2e_s") / pl.col("output_tokens")).filter(pl.col("output_tokens") >= 2).mean().alias("whole_mean_s"),
    ]


def _links(requests: pl.DataFrame, column: str) -> pl.DataFrame:
    named = requests.filter(pl.col(column).is_not_null() & (pl.col("link_peak_bytes_per_s") > 0))
    return named.select(pl.col(column).alias("replica"), pl.col("link_peak_bytes_per_s").alias("link_peak"))
