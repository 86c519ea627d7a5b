"""Samples in, those that count out: no twin, no part beside its total, one sender of a series, one engine of a replica's signal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import polars as pl

GATEWAYS = ("dynamo", "genai", "llm-d")  # what a frontend counts its workers count too
DELTA = "leverwatch.temporality=delta"
_OF = ("replica", "signal", "engine", "name", "kind", "sender", "labels")


def counted(samples: pl.DataFrame) -> pl.DataFrame:
    """The levels and counts that make a signal's value: one row per sample, in order of time within its series.

    Columns: replica, signal, engine, name, kind, sender, observed_at, value, `series` (its number), `told` (its labels, a line each).
    """
    samples = samples.filter(pl.col("kind").is_in(["gauge", "counter"]) & pl.col("signal").is_not_null() & pl.col("value").is_finite())
    series = samples.sort("observed_at").group_by(*_OF, maintain_order=True).agg("observed_at", "value")
    told = pl.col("labels").list.eval(pl.concat_str(pl.element().struct.field("key"), pl.element().struct.field("value"), separator="="))
    series = series.with_columns(told.list.sort().list.join("\n").fill_null("").alias("told")).drop("labels").with_row_index("series")
    series = _of_one_sender(_without_parts(_of_one_engine(series)))
    return _of_one_name(series.explode("observed_at", "value"), series)


def _of_one_engine(series: pl.DataFrame) -> pl.DataFrame:
    """Of a replica's signal an engine's own word before a gateway's, else of the one that said most."""
    of = ["replica", "signal"]
    if (series["engine"].fill_null("").n_unique()) == 1:
        return series
    counts = series.group_by(*of, "engine").agg(pl.col("value").list.len().sum().alias("said"))
    counts = counts.with_columns(pl.col("engine").is_in(GATEWAYS).alias("is_gateway"))
    best = counts.sort("is_gateway", "said", "engine", descending=[False, True, False]).unique(of, keep="first", maintain_order=True)
    return series.join(best, on=[*of, "engine"], how="semi", nulls_equal=True, maintain_order="left")


def _without_parts(series: pl.DataFrame) -> pl.DataFrame:
    """Without series whose labels are those of another of the same name and time and more: that one is their total."""
    of = ["replica", "name", "sender"]
    width = pl.col("told").str.count_matches("\n") + (pl.col("told") != "")
    odd = series.filter(width.min().over(of) != width.max().over(of))
    time = pl.col("observed_at").list
    odd = odd.with_columns(time.first().alias("first"), time.last().alias("last")).select(*of, "series", "told", "first", "last")
    parts = [number for _, rows in odd.group_by(of) for number in _parts(rows.select("series", "told", "first", "last").rows())]
    return series.filter(~pl.col("series").is_in(parts)) if parts else series


def _parts(rows: list[tuple[int, str, datetime, datetime]]) -> Iterator[int]:
    labels = [frozenset(filter(None, told.split("\n"))) for _, told, _, _ in rows]
    spans = dict(zip(labels, ((first, last) for _, _, first, last in rows), strict=True))
    shapes = {_keys(mine) for mine in labels}
    for (number, _, first, last), mine in zip(rows, labels, strict=True):
        narrower = (shape for shape in shapes if shape < _keys(mine))
        totals = (spans.get(frozenset(label for label in mine if label.split("=", 1)[0] in shape)) for shape in narrower)
        if any(total is not None and total[0] <= last and total[1] >= first for total in totals):
            yield number


def _keys(labels: frozenset[str]) -> frozenset[str]:
    return frozenset(label.split("=", 1)[0] for label in labels)


def _of_one_sender(series: pl.DataFrame) -> pl.DataFrame:
    """What comes on two ways is taken once: scraped before pushed, and the same series from the sender that sent most of it."""
    of = ["replica", "name", "told"]
    if series["sender"].n_unique() == 1:
        return series
    said = series.with_columns(pl.col("sender").str.starts_with("scrape:").alias("is_scraped"), pl.col("value").list.len().alias("said"))
    said = said.filter(pl.col("is_scraped") | ~pl.col("is_scraped").any().over("replica", "signal"))
    said = said.sort("said", "sender", descending=[True, False]).unique(of, keep="first", maintain_order=True)
    return said.drop("said", "is_scraped").sort("series")


def _of_one_name(samples: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """At any time one name of a signal: where a twin under another name is sent beside it, the one that is sent most."""
    of = ["replica", "signal", "sender"]
    if (series.group_by(of).agg(pl.col("name").n_unique())["name"] < 2).all():
        return samples
    time = pl.col("observed_at")
    names = samples.group_by(*of, "name").agg(time.min().alias("first"), time.max().alias("last"), pl.len().alias("said"))
    names = names.sort("said", "name", descending=True).with_columns(pl.int_range(pl.len()).over(of).alias("place"))
    other = names.select(*of, pl.col("place").alias("better"), "first", "last")
    numbered = samples.with_row_index("row").join(names.select(*of, "name", "place"), on=[*of, "name"])
    twins = numbered.join(other, on=of).filter((pl.col("better") < pl.col("place")) & time.is_between("first", "last"))
    return numbered.join(twins, on="row", how="anti").sort("row").drop("row", "place")
