"""A rollout's sums by replica and block in; out the same, each replica measured by its own level before the first one changed."""

from __future__ import annotations

import polars as pl

from pipeline.inference.matching import LEAST_BLOCKS_BEFORE
from pipeline.natural_balance import KEYS

_BLOCK = (*KEYS, "block_started_at")
_REPLICA = (*KEYS, "replica")


def leveled(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(the rows from the first change on, leveled; one row per segment and metric with `error`).

    `error` is what uncertain levels add to the mean gain at most, a standard error: the mean over blocks that compare, as if one replica
    erred alike in all; infinite where none has a level. Rows of replicas without a level are left out.
    """
    began = rows.filter(pl.col("side") == "treated").group_by(KEYS).agg(pl.col("block_started_at").min().alias("began"))
    placed = rows.join(began, on=KEYS)
    levels = _levels(placed.filter(pl.col("block_started_at") < pl.col("began")))
    during = placed.filter(pl.col("block_started_at") >= pl.col("began")).drop("began").join(levels, on=_REPLICA)
    by = pl.col("level")
    scaled = during.with_columns(pl.col("num") / by, pl.col("num_sq") / by**2, pl.col("num_den") / by)
    return scaled.drop("level", "error"), _errors(during, began)


def _levels(before: pl.DataFrame) -> pl.DataFrame:
    """Each replica's level relative to all of them, with its standard error; those seen in 12 blocks and more."""
    each = before.filter(pl.col("den") > 0).group_by(*_REPLICA, "block_started_at", maintain_order=True).agg(pl.col("num", "den").sum())
    whole = (pl.col("num").sum() / pl.col("den").sum()).over(_BLOCK)
    relative = each.with_columns((pl.col("num") / pl.col("den") / whole).alias("relative")).filter(pl.col("relative").is_finite())
    error = pl.col("relative").std() / pl.len().sqrt()
    levels = relative.group_by(_REPLICA, maintain_order=True).agg(pl.col("relative").mean().alias("level"), error.alias("error"), pl.len())
    return levels.filter((pl.col("len") >= LEAST_BLOCKS_BEFORE) & (pl.col("level") > 0)).drop("len")


def _errors(during: pl.DataFrame, began: pl.DataFrame) -> pl.DataFrame:
    """A replica that has both settings in a block counts as new there."""
    replicas = during.group_by(*_BLOCK, "replica").agg((pl.col("side") == "treated").any().alias("is_new"), pl.col("error").first())
    groups = replicas.group_by(*_BLOCK, "is_new").agg((pl.col("error").pow(2).sum() / pl.len() ** 2).alias("square"))
    blocks = groups.group_by(_BLOCK).agg(pl.col("square").sum().sqrt().alias("error"), pl.len()).filter(pl.col("len") == 2)
    known = blocks.group_by(KEYS).agg(pl.col("error").mean())
    return began.select(KEYS).join(known, on=KEYS, how="left").with_columns(pl.col("error").fill_null(float("inf")))
