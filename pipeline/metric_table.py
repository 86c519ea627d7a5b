"""Metric rows in, rows of the table `metrics` out: for people who ask by SQL."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pipeline.metrics import CORE, METRICS, Metric, in_cells
from queries.store import Store


def describe(store: Store, metrics: Sequence[Metric] = METRICS) -> None:
    """Writes the metric rows into the table `metrics`, in the place of those it holds."""
    with store.write() as transaction:
        transaction.execute("delete from metrics")
        transaction.insert("metrics", rows(metrics))


def rows(metrics: Sequence[Metric]) -> pl.DataFrame:
    """One row per metric, columns of the table `metrics`."""
    return pl.DataFrame([_row(metric) for metric in metrics])


def _row(metric: Metric) -> dict[str, object]:
    texts = ("name", "title", "kind", "unit", "better", "numerator", "denominator", "times", "known_when", "across", "percentiles_of")
    said = {name: getattr(metric, name) or None for name in (*texts, "formula", "source", "missing")}
    return {**said, "traps": list(metric.traps), "from_cells": in_cells(metric), "core": metric.name in CORE}
