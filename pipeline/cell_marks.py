"""Requests in, the arms of their levers out: from `arms`, else from the settings in `levers`."""

from __future__ import annotations

import polars as pl

from pipeline import segments

OFF_SETTINGS = ("off", "none", "0", "disabled", "false")
_PAIR = pl.Struct({"key": pl.String, "value": pl.String})


def with_marks(requests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The requests with a number `marks` for what their two maps hold, and one row per such number and lever: `marks`, `lever`, `arm`.

    Names of levers and arms that senders made up are left out. Few different maps are in use, so few are taken apart.
    """
    places = requests.select("arms", "levers").with_row_index("place")
    distinct = places.group_by("arms", "levers").agg("place").with_row_index("marks")
    marks = distinct.select("marks", "place").explode("place").sort("place")["marks"]
    return requests.with_columns(marks), _arms(distinct)


def _arms(distinct: pl.DataFrame) -> pl.DataFrame:
    arm_of = _pairs(distinct, "arms").rename({"value": "arm"})
    both = _pairs(distinct, "levers").join(arm_of, on=["marks", "lever"], how="full", coalesce=True)
    off = pl.col("value").str.to_lowercase().is_in(list(OFF_SETTINGS))
    by_setting = pl.when(off).then(pl.lit("disabled_in_place")).when(pl.col("value").is_not_null()).then(pl.lit("treated"))
    both = both.with_columns(pl.coalesce("arm", by_setting).alias("arm"))
    return both.filter(pl.col("arm").is_in(segments.ARMS)).select("marks", "lever", "arm")


def _pairs(distinct: pl.DataFrame, column: str) -> pl.DataFrame:
    pairs = distinct.select("marks", pl.col(column).cast(pl.List(_PAIR))).explode(column).drop_nulls().unnest(column)
    return pairs.rename({"key": "lever"}).filter(pl.col("lever").is_in(segments.LEVERS))
