"""A lever's standardized effect of a group in, its figure out: beside it the pooled gain and the strata that both are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from dashboards import row_charts, theme
from dashboards.choice import details, title
from dashboards.figure import Figure, Sql
from dashboards.short_names import told_apart
from pipeline.metrics import Metric
from queries import files

TITLE = "{}: gain of all segments together and of each alone, %"
MISLEADS = "Do not read the pooled gain"
STANDARDIZED, POOLED = "standardized: each segment by its usual share", "pooled: all requests thrown together"


def figure(row: Mapping[str, Any] | None, why: str, metric: Metric) -> Figure:
    """The standardized gain with its interval, the pooled one, each segment's; `why` says why there is no such row."""
    named = TITLE.format(metric.title)
    if row is None:
        return Figure("total", named, f"No data: {why}.", metric=metric)
    asked = {"lever": row["lever"], "metric": _summed(metric.name), "since": row["since"], "until": row["until"], "segment": None}
    sql = Sql(files.question("page_lever_sums"), asked)
    strata = [(name, gain) for name, gain in zip(row["strata_segments"], row["strata_gains"], strict=True) if gain is not None]
    if row["gain"] is None and not strata:
        return Figure("total", named, f"No data: {row['note'] or 'no stratum has both arms'}.", sql=sql, metric=metric)
    strata.sort(key=lambda one: one[1])
    told = [
        row_charts.Row(STANDARDIZED, row["gain"], row["gain_low"], row["gain_high"], row_charts.css(row["gain_low"], row["gain_high"])),
        row_charts.Row(POOLED, row["pooled_gain"], css="warn"),
        *(row_charts.Row(_named(name), gain) for name, gain in strata),
    ]
    shown = [one for one in told if one.value is not None]
    numbers = [[one.name, theme.signed_percent(one.value or 0.0), _interval(one)] for one in shown]
    label = f"{named}: " + "; ".join(f"{one.name} {theme.signed_percent(one.value or 0.0)}" for one in shown[:6])
    ends = [{"what": one.name, "gain": one.value, "gain_low": one.low, "gain_high": one.high} for one in shown]
    values = pl.DataFrame(ends, infer_schema_length=None)
    return Figure(
        "total",
        named,
        _note(row),
        label,
        row_charts.whiskers(_short(told), "gain, %"),
        ["what", "gain", "95 % interval"],
        numbers,
        sql,
        row["n_a"] + row["n_b"],
        row["coverage"],
        row["until"],
        metric,
        values,
    )


def _short(told: Sequence[row_charts.Row]) -> list[row_charts.Row]:
    """The rows as they are drawn: segments are told apart among themselves."""
    names = told_apart([one.name for one in told[2:]], row_charts.WHISKER_CHARACTERS)
    return [*told[:2], *(replace(one, name=name) for one, name in zip(told[2:], names, strict=True))]


def warning(row: Mapping[str, Any] | None) -> str:
    """Why the pooled gain is not to be read (Simpson); empty where it may be."""
    return f"{MISLEADS}: {row['note']}." if row and row["is_misleading"] else ""


def _note(row: Mapping[str, Any]) -> str:
    keys = ", ".join(row["strata_keys"]) or "nothing"
    window = theme.between(row["since"], row["until"], row["until"])
    said = f"{row['strata']} segments by {keys}, {window}. Standardized: each counts by its share of the requests before that time."
    return f"{said} {row['note'][0].upper()}{row['note'][1:]}." if row["note"] and not row["is_misleading"] else said


def _named(segment: str) -> str:
    """A stratum in a line, or its key's value where it is no segment."""
    try:
        keys = json.loads(segment)
    except ValueError:
        return segment
    if not isinstance(keys, dict):
        return segment
    return title(keys) if "model" in keys else " · ".join(details(keys)) or "all"


def _summed(metric: str) -> str:
    """Whose sums in cells stand for a metric: net ITL's are those of TPOT."""
    return "tpot_s" if metric == "net_itl_s" else metric


def _interval(one: row_charts.Row) -> str:
    if one.low is None or one.high is None:
        return "none"
    return f"{theme.signed_percent(one.low)} to {theme.signed_percent(one.high)}"
