"""Effects at a block's end in, with what else there is to compare with; out the same, where there was no control arm the best of it.

Best first (docs/switchback.md): a switchback, a natural experiment that is good or fair, any other, before and after. There is one row per
lever, segment and metric as before.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from pipeline.inference import before_after, switchback

KEYS = ("lever", "segment", "metric")
_TIME = pl.Datetime("us", "UTC")
SCHEMA = pl.Schema(
    {
        "measured_at": _TIME, "lever": pl.String(), "segment": pl.String(), "metric": pl.String(), "arm_b": pl.String(), "since": _TIME,
        "until": _TIME, "blocks": pl.Int64(), "n_a": pl.Int64(), "n_b": pl.Int64(), "value_a": pl.Float64(), "value_b": pl.Float64(),
        "gain": pl.Float64(), "gain_low": pl.Float64(), "gain_high": pl.Float64(), "evidence": pl.Float64(), "method": pl.String(),
        "basis": pl.String(), "matched": pl.Float64(), "note": pl.String(), "grade": pl.String(), "says": pl.String(),
    }
)  # fmt: skip
_TAKEN = (
    "arm_b", "since", "blocks", "n_a", "n_b", "value_a", "value_b", "gain", "gain_low", "gain_high", "evidence", "method", "basis", "note",
)  # fmt: skip
_OF_CONTROL = ("evidence_below", "evidence_above", "turned_blocks", "turned_gain", "uncalibrated")


def gaps(effects: pl.DataFrame, scheduled: Collection[str]) -> pl.DataFrame:
    """The pairs (lever, segment) that have nothing to compare with in some metric; `scheduled` levers are switched by a schedule."""
    return effects.filter(_is_gap(scheduled)).select("lever", "segment").unique().sort("lever", "segment")


def completed(effects: pl.DataFrame, found: pl.DataFrame, scheduled: Collection[str]) -> pl.DataFrame:
    """The effects, gaps filled with the best of `found` (columns SCHEMA), with `grade`, `says` and `own_value`.

    Arms of a schedule may lie beside each other as control arms do: such a row is taken over by a switchback alone.
    """
    chosen = best(found).drop("measured_at", "until", "matched").rename({name: f"{name}_found" for name in (*_TAKEN, "grade", "says")})
    joined = effects.join(chosen, on=KEYS, how="left", maintain_order="left")
    suits = (pl.col("basis") == "none") | (pl.col("basis_found") == switchback.BASIS)
    is_filled = _is_gap(scheduled) & pl.col("basis_found").is_not_null() & suits
    taken = [pl.when(is_filled).then(f"{name}_found").otherwise(name).alias(name) for name in _TAKEN if name in effects.columns]
    new = [pl.when(is_filled).then(f"{name}_found").alias(name) for name in (*(set(_TAKEN) - set(effects.columns)), "grade", "says")]
    without = [pl.when(~is_filled).then(name).alias(name) for name in _OF_CONTROL if name in effects.columns]
    own = pl.when(is_filled).then("value_a").alias("own_value")
    return joined.with_columns(*taken, *new, *without, own).drop(name for name in chosen.columns if name.endswith("_found"))


def best(found: pl.DataFrame) -> pl.DataFrame:
    """One row per lever, segment and metric: the first in the order of trust; of equals one that says something, then the narrowest."""
    rank = (
        pl.when((pl.col("basis") == switchback.BASIS) & (pl.col("grade") != "too little")).then(0)
        .when(pl.col("basis") == before_after.BASIS).then(4)
        .when(pl.col("grade").is_in(["good", "fair"])).then(1)
        .when(pl.col("grade") == "poor").then(2)
        .otherwise(3)
    )  # fmt: skip
    order = [rank, pl.col("says").is_null(), (pl.col("gain_high") - pl.col("gain_low")).fill_null(float("inf")), pl.col("basis")]
    return found.sort(order).unique(KEYS, keep="first", maintain_order=True)


def _is_gap(scheduled: Collection[str]) -> pl.Expr:
    is_scheduled = pl.col("lever").is_in(list(scheduled)) & (pl.col("basis") == "control") & pl.col("gain").is_null()
    return (pl.col("basis") == "none") | is_scheduled
