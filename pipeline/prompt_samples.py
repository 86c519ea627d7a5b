"""The legs of each request in; which of them answer together, as samples of one prompt or for several prompts of one call, out.

An engine that answers n > 1 may send a span for each sample that says n = 1 (vLLM does), and one for each prompt of a list.
"""

from __future__ import annotations

import polars as pl

LISTED = r"^(cmpl-.+)-[0-9]+$"  # the id of a prompt of a list: that of the call, and the prompt's place
OF_PROMPT = ("prompt_tokens", "cached_tokens")


def with_samples(legs: pl.DataFrame) -> pl.DataFrame:
    """The legs with `samples_n` raised to how many answer together where none says so (`is_told_alone` then), and the `prompt` of each.

    Samples of a prompt have its id, their arrival to the microsecond and their replica in common; what is told twice ends at one time with
    one count too. Prompts of a call have one id but for their place: `prompt` tells them apart, and is null where there is but one.
    """
    says_one = (pl.col("role") == "engine") & pl.col("join_key").is_not_null() & (pl.col("samples_n") == 1)
    alone = legs.filter(says_one)
    if alone["group"].n_unique() == len(alone):
        return legs.with_columns(pl.lit(False).alias("is_told_alone"), pl.lit(None, pl.String).alias("prompt"))
    call = pl.col("join_key").str.extract(LISTED)
    is_listed = call.is_not_null() & (pl.col("join_key").n_unique().over("group", "replica", call) > 1)
    of_prompt = pl.struct("ended_at", "output_tokens").n_unique().over("group", "join_key", "replica", "started_at", "prompt_tokens")
    told = alone.select(
        "row",
        pl.when(is_listed).then(pl.len().over("group", "replica", call)).otherwise(of_prompt).cast(pl.Int64).alias("told"),
        pl.when(is_listed).then(pl.col("join_key")).alias("prompt"),
    )
    legs = legs.join(told, on="row", how="left", maintain_order="left")
    is_told_alone = (pl.col("told") > 1).fill_null(value=False)
    return legs.with_columns(pl.max_horizontal("samples_n", "told").alias("samples_n"), is_told_alone.alias("is_told_alone")).drop("told")


def by_prompt(known: pl.DataFrame, column: str) -> pl.DataFrame:
    """The legs that state a prompt's tokens; of a call's several prompts one leg each, with the sum of all prompts' tokens."""
    if known["prompt"].null_count() == len(known):
        return known
    listed = known.filter(pl.col("prompt").is_not_null())
    listed = listed.sort("row").with_columns(pl.col(column).max().over("group", "prompt")).unique(["group", "prompt"], keep="first")
    return pl.concat([known.filter(pl.col("prompt").is_null()), listed.with_columns(pl.col(column).sum().over("group"))])
