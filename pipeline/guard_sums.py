"""Requests in, sums per replica of what they said of it out: they add up over batches, since one batch may hold few of a replica."""

from __future__ import annotations

import polars as pl

from pipeline.traps import PAIRS

OWN = ("span", "body", "log", "derived")  # a request's own word, and not a share of a series
SUMS = pl.Schema({
    "replica": pl.String(), "since": pl.Datetime("us", "UTC"), "until": pl.Datetime("us", "UTC"),
    "model": pl.String(), "requests": pl.Int64(), "taken_n": pl.Int64(), "link_peak": pl.Float64(),
    "block": pl.Int64(), "short": pl.Int64(), "prompt_n": pl.Int64(), "prompt": pl.Float64(),
    "own_n": pl.Int64(), "own_cached": pl.Float64(), "own_prompt": pl.Float64(),
    "drafted_n": pl.Int64(), "own_accepted": pl.Float64(), "own_drafted": pl.Float64(), "accepted": pl.Float64(), "steps": pl.Float64(),
    "timed_n": pl.Int64(), "tpot_s": pl.Float64(), "whole_n": pl.Int64(), "whole_s": pl.Float64(),
})  # fmt: skip
_LARGEST = ("until", "link_peak", "block")
_SMALLEST = ("since",)
_KEPT = ("replica", "model")


def sums(requests: pl.DataFrame) -> pl.DataFrame:
    """One row per replica that a request names, as SUMS has it: `own_*` of the prompts that it read, all else of the requests it answered.

    `taken_n` are those of them whose prompt another replica read. One that answered none is named for what it read and for its link alone.
    """
    told = requests.with_columns(
        *(_own(column).alias(f"own:{column}") for column in ("cached_tokens", "accepted_tokens")),
        (pl.col("prefill_replica") != pl.col("replica")).fill_null(value=False).alias("is_taken"),
    )
    served = told.filter(pl.col("replica").is_not_null()).group_by("replica").agg(*_of_requests())
    links = pl.concat([_links(requests, column) for column in ("replica", "prefill_replica", "decode_replica")])
    others = pl.concat([links, _read(told)], how="diagonal").group_by("replica").agg(*_of_others())
    both = served.join(others, on="replica", how="full", coalesce=True)
    both = both.with_columns(pl.coalesce("since", "began").alias("since"), pl.coalesce("until", "last").alias("until"))
    return both.select(pl.col(name).cast(kind) for name, kind in SUMS.items())


def together(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per replica of sums of several batches, and the shares and means that follow from them."""
    added = [pl.col(name).sum() for name in SUMS if name not in (*_LARGEST, *_SMALLEST, *_KEPT)]
    largest = [*(pl.col(name).max() for name in _LARGEST), *(pl.col(name).min() for name in _SMALLEST)]
    whole = rows.group_by("replica", maintain_order=True).agg(pl.col("model").drop_nulls().first(), *largest, *added)
    shares = {
        "prompt_mean": pl.col("prompt") / pl.col("prompt_n"),
        "short_share": pl.col("short") / pl.col("prompt_n"),
        "own_share": pl.col("own_cached") / pl.col("own_prompt"),
        "own_acceptance": pl.col("own_accepted") / pl.col("own_drafted"),
        "length": 1 + pl.col("accepted") / pl.col("steps"),
        "tpot_mean_s": pl.col("tpot_s") / pl.col("timed_n"),
        "whole_mean_s": pl.col("whole_s") / pl.col("whole_n"),
    }
    return whole.with_columns(share.fill_nan(None).alias(name) for name, share in shares.items())


def _of_requests() -> list[pl.Expr]:
    drafted = pl.col("own:accepted_tokens") & (pl.col("draft_tokens") > 0)
    stepped = pl.col("verify_steps") > 0
    whole_s = (pl.col("e2e_s") / pl.col("output_tokens")).filter(pl.col("output_tokens") >= 2)
    return [
        pl.col("started_at").min().alias("since"),
        pl.col("started_at").max().alias("until"),
        pl.col("model").drop_nulls().first(),
        pl.len().alias("requests"),
        pl.col("is_taken").sum().alias("taken_n"),
        pl.col("kv_block_tokens").max().alias("block"),
        (pl.col("prompt_tokens") < pl.col("kv_block_tokens")).sum().alias("short"),
        pl.col("prompt_tokens").count().alias("prompt_n"),
        pl.col("prompt_tokens").sum().alias("prompt"),
        drafted.sum().alias("drafted_n"),
        pl.col("accepted_tokens").filter(drafted).sum().alias("own_accepted"),
        pl.col("draft_tokens").filter(drafted).sum().alias("own_drafted"),
        pl.col("accepted_tokens").filter(stepped).sum().alias("accepted"),
        pl.col("verify_steps").filter(stepped).sum().alias("steps"),
        pl.col("tpot_s").count().alias("timed_n"),
        pl.col("tpot_s").sum(),
        whole_s.count().alias("whole_n"),
        whole_s.sum().alias("whole_s"),
    ]


def _of_others() -> list[pl.Expr]:
    own = ("own_n", "own_cached", "own_prompt")
    period = [pl.col("began").min(), pl.col("began").max().alias("last")]
    return [pl.col("link_peak").max(), *period, *(pl.col(name).sum() for name in own)]


def _read(told: pl.DataFrame) -> pl.DataFrame:
    """What each request says of the cache of the replica that read its prompt.

    Of a pair all but the last token may be what its decode leg took over (vllm#43370), and is no word on the cache of the other leg.
    """
    doubtful = pl.col("is_taken") & (pl.col("cached_tokens") >= pl.col("prompt_tokens") - 1)
    own = told.filter(pl.col("own:cached_tokens") & (pl.col("prompt_tokens") > 0) & ~doubtful)
    return own.select(
        pl.coalesce("prefill_replica", "replica").alias("replica"),
        pl.col("started_at").alias("began"),
        pl.lit(1, pl.Int64).alias("own_n"),
        pl.col("cached_tokens").alias("own_cached"),
        pl.col("prompt_tokens").alias("own_prompt"),
    ).filter(pl.col("replica").is_not_null())


def _own(column: str) -> pl.Expr:
    """Whether a request said a column itself."""
    told = pl.element().struct.field("key").eq(column) & pl.element().struct.field("value").is_in(list(OWN))
    return pl.col("provenance").cast(PAIRS).list.eval(told).list.any().fill_null(value=False)


def _links(requests: pl.DataFrame, column: str) -> pl.DataFrame:
    named = requests.filter(pl.col(column).is_not_null() & (pl.col("link_peak_bytes_per_s") > 0))
    return named.select(
        pl.col(column).alias("replica"), pl.col("link_peak_bytes_per_s").alias("link_peak"), pl.col("started_at").alias("began")
    )
