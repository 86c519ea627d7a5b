"""The legs of requests in, what a response body said beside the span out: two tellings of one number, held against each other."""

from __future__ import annotations

import polars as pl

TOLD = ("prompt_tokens", "output_tokens")
BODIES = tuple(f"body_{column}" for column in TOLD)


def with_bodies(requests: pl.DataFrame, legs: pl.DataFrame) -> pl.DataFrame:
    """The requests with the columns of `BODIES`: tokens as the one body that was seen of each said; null where none was, or several."""
    said = legs.filter((pl.col("role") == "body") & pl.any_horizontal(pl.col(column).is_not_null() for column in TOLD))
    if said.is_empty():
        return requests.with_columns(pl.lit(None, pl.Int64).alias(name) for name in BODIES)
    one = said.filter(pl.len().over("group") == 1)
    one = one.select("group", *(pl.col(column).alias(name) for column, name in zip(TOLD, BODIES, strict=True)))
    return requests.join(one, on="group", how="left", maintain_order="left")
