"""Sums of both sides by segment, metric, stratum and block in; how alike the matched requests of each segment and metric were, out."""

from __future__ import annotations

import polars as pl

from pipeline.inference import natural
from pipeline.inference.contrast import LEAST_REQUESTS

COVARIATES = ("prompt", "batch", "queue")  # known when a request is admitted
KEYS = ("segment", "metric")
_VALUES = tuple(f"{name}_{part}" for name in COVARIATES for part in ("n", "s", "ss"))
_CELL = (*KEYS, "stratum", "block_started_at")


def balanced(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per segment and metric with matched requests: their numbers `n_treated` and `n_without`, and `distances`.

    Distances are of COVARIATES, in standard deviations, NaN = unknown. Each stratum and block weighs as in `inference.matching`:
    n_T n_C / (n_T + n_C) on both sides.
    """
    treated, without = (_side(rows, side) for side in ("treated", "without"))
    both = treated.join(without, on=_CELL, suffix="_without").filter(pl.min_horizontal("n", "n_without") >= LEAST_REQUESTS)
    share = pl.col("n") / (pl.col("n") + pl.col("n_without"))
    ours = [(pl.col(name) * (1 - share)).sum().alias(name) for name in _VALUES]
    others = [(pl.col(f"{name}_without") * share).sum().alias(f"{name}_without") for name in _VALUES]
    counts = [pl.col("n").sum().cast(pl.Int64).alias("n_treated"), pl.col("n_without").sum().cast(pl.Int64)]
    summed = both.group_by(KEYS, maintain_order=True).agg(*ours, *others, *counts)
    groups = [tuple(_parts(summed, part, suffix) for part in ("n", "s", "ss")) for suffix in ("", "_without")]
    distances = natural.distance((groups[0][0], groups[0][1], groups[0][2]), (groups[1][0], groups[1][1], groups[1][2]))
    kind = pl.Array(pl.Float64, len(COVARIATES))
    return summed.select(*KEYS, "n_treated", "n_without", pl.Series("distances", distances, kind))


def _side(rows: pl.DataFrame, side: str) -> pl.DataFrame:
    return rows.filter(pl.col("side") == side).group_by(_CELL, maintain_order=True).agg(pl.col("n", *_VALUES).sum())


def _parts(summed: pl.DataFrame, part: str, suffix: str) -> natural.Reals:
    return summed.select(f"{name}_{part}{suffix}" for name in COVARIATES).to_numpy()
