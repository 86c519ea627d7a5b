"""The ranked keys of a comparison in, rows for reading out: other levers first, then what differs most; and both charts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from dashboards import row_charts, theme
from dashboards.compared import Compared, Comparison
from dashboards.figure import Figure, Sql
from pipeline.metrics import by_name
from queries import explain, explain_shown

CHARTED = 14
NATURES = ("defines the sets", "what ")  # how the notes begin of what differs by what the sets are
BY_CHANCE = "no more than chance"
MIXED = 0.05  # the distance beyond chance from which on a difference of traffic is said first
MIX_KEYS = {"model": "models", "hardware": "hardware", "topology": "topologies", "input_bucket": "prompt lengths", "tenant": "tenants"}
MIX_KEYS |= {"route": "routes", "temperature_bucket": "temperatures"}
_UNITS = (("_bytes_per_s", "bytes/s"), ("_s", "s"), ("_bytes", "bytes"), ("_tokens", "tokens"))
_RATIOS = ("kv_usage", "communication_fraction")


@dataclass(frozen=True)
class Row:
    """One key: what differs most of it, both sets' shares and middles, by how much beyond chance, and the question behind it."""

    key: str
    is_lever: bool
    condition: str
    shares: str
    distance: str
    chance: str
    levels: str
    gap: str
    counted: str
    note: str
    difference: float
    told: Mapping[str, Any]
    sql: Sql

    @property
    def is_by_nature(self) -> bool:
        """Whether the sets differ in it by what they are: it defines them, or their lever does it by itself."""
        return self.note.startswith(NATURES)

    @property
    def tells(self) -> bool:
        """Whether it is an answer: more than chance, and not by what the sets are."""
        return not self.is_by_nature and not self.note.startswith(BY_CHANCE)


def rows(compared: Compared, asked: Comparison, statement: explain.Comparison) -> list[Row]:
    """The keys in the order of the page. `statement`: the comparison as `queries.explain.comparison` makes it."""
    if compared.rows is None:
        return []
    listed = [_row(told, asked, statement) for told in compared.rows.iter_rows(named=True)]
    return sorted(listed, key=lambda row: not row.is_lever)


def mixed(listed: Sequence[Row]) -> list[str]:
    """By which keys that were known before a request was treated the sets hold other traffic, in words, the most unlike first."""
    unlike = [row for row in listed if row.key in MIX_KEYS and row.tells and row.difference >= MIXED]
    return [f"{MIX_KEYS[row.key]} ({row.condition}: {row.shares})" for row in sorted(unlike, key=lambda row: -row.difference)]


def _row(told: Mapping[str, Any], asked: Comparison, statement: explain.Comparison) -> Row:
    key, unit = told["key"], unit_of(told["key"])
    is_number = told["median_a"] is not None or told["median_b"] is not None
    text = (explain_shown.of_numbers if is_number else explain_shown.of_values)(statement, key)
    known = [theme.percent(told[name]) for name in ("coverage_a", "coverage_b")]
    coverage = "" if min(told["coverage_a"], told["coverage_b"]) == 1.0 else f"; known {' and '.join(known)}"
    return Row(
        key,
        key.partition(".")[0] in ("lever", "arm"),
        said(told["condition"], unit),
        f"{theme.percent(told['share_a'])} of A, {theme.percent(told['share_b'])} of B",
        theme.percent(told["distance"]),
        f"by chance up to {theme.percent(told['chance'])}",
        f"median {theme.shown(told['median_a'], unit)} against {theme.shown(told['median_b'], unit)}" if is_number else "",
        gap_words(told, unit),
        f"n {theme.count(told['n_a'])} and {theme.count(told['n_b'])}{coverage}",
        told["note"] or "",
        told["difference"],
        told,
        Sql(f"-- {key}: how set A and set B differ\n{text}", {"since": asked.since, "until": asked.until}),
    )


def said(condition: str, unit: str) -> str:
    """A condition for reading: a number's threshold in display units."""
    found = re.fullmatch(r"(\w+) > (-?[\d.e+-]+)", condition)
    return f"{found[1]} > {theme.shown(float(found[2]), unit)}" if found else condition


def unit_of(key: str) -> str:
    """The unit of a column of `requests`: that of the metric of its name, else what its name ends in."""
    metric = by_name().get(key)
    if metric is not None:
        return metric.unit
    return "ratio" if key in _RATIOS else next((unit for end, unit in _UNITS if key.endswith(end)), "")


def gap_words(told: Mapping[str, Any], unit: str) -> str:
    """`mean 31 ms against 27 ms, +4 ms (+2.1 ms to +6 ms)`; empty where no mean is known."""
    a, b = told.get("mean_a"), told.get("mean_b")
    if a is None or b is None:
        return ""
    said = f"mean {theme.shown(a, unit)} against {theme.shown(b, unit)}, {_signed(a - b, unit)}"
    low, high = told["mean_gap_low"], told["mean_gap_high"]
    return f"{said} ({_signed(low, unit)} to {_signed(high, unit)})" if low is not None and high is not None else f"{said}, no interval yet"


def _signed(value: float, unit: str) -> str:
    return f"{'+' if value > 0 else ''}{theme.shown(value, unit)}"


def figures(compared: Compared, listed: Sequence[Row], waits: str) -> list[Figure]:
    """What differs most, as shares of the sets; and by how much the means of numbers differ, with intervals."""
    telling = [row for row in listed if row.tells]
    return [_distances(telling, compared, waits), _means(telling, compared, waits)]


def _distances(telling: Sequence[Row], compared: Compared, waits: str) -> Figure:
    title = "What differs most: share of requests that differ, %"
    if not telling:
        return Figure("differences", title, f"No data: {waits or 'nothing differs by more than chance'}.")
    shown = sorted(telling, key=lambda row: -row.difference)[:CHARTED]
    told = [row_charts.Row(row.condition, row.told["distance"], high=row.told["chance"]) for row in shown]
    numbers = [[row.key, row.condition, row.shares, row.distance, row.chance, row.counted] for row in shown]
    label = f"{title}: " + "; ".join(f"{row.key} {row.distance}" for row in shown[:5])
    note = "The tick is what equal sets of this size may differ by, in one comparison of a hundred."
    columns = ["key", "what differs most", "shares", "difference", "chance", "counted"]
    made = Figure("differences", title, note, label, row_charts.bars(told, "% of requests"), columns, numbers)
    return _counted(made, shown, compared)


def _means(telling: Sequence[Row], compared: Compared, waits: str) -> Figure:
    title = "Means: A less B, as a share of B, %"
    known = [(row, gap) for row in telling if (gap := _relative(row.told)) is not None]
    if not known:
        return Figure("means", title, f"No data: {waits or 'no number differs by more than chance'}.")
    shown = known[:CHARTED]
    told = [row_charts.Row(f"{row.key}: {_means_of(row)}", *gap) for row, gap in shown]
    numbers = [[row.key, row.gap, row.levels, row.counted] for row, _ in shown]
    label = f"{title}: " + "; ".join(f"{row.key} {theme.signed_percent(gap[0])}" for row, gap in shown[:5])
    note = "Line: 95 % interval that holds at any look, blocks of 5 min as the unit. It describes and judges nothing."
    columns = ["key", "means", "medians", "counted"]
    made = Figure("means", title, note, label, row_charts.whiskers(told, "difference of means, %"), columns, numbers)
    return _counted(made, [row for row, _ in shown], compared)


def _means_of(row: Row) -> str:
    unit = unit_of(row.key)
    return f"{theme.shown(row.told['mean_a'], unit)} against {theme.shown(row.told['mean_b'], unit)}"


def _relative(told: Mapping[str, Any]) -> tuple[float, float | None, float | None] | None:
    if told.get("mean_a") is None or not told.get("mean_b"):
        return None
    by = abs(told["mean_b"])
    low, high = (None if told[name] is None else told[name] / by for name in ("mean_gap_low", "mean_gap_high"))
    return (told["mean_a"] - told["mean_b"]) / by, low, high


def _counted(figure: Figure, shown: Sequence[Row], compared: Compared) -> Figure:
    """With its n, coverage, freshness, values and the first row's question."""
    n = shown[0].told["requests_a"] + shown[0].told["requests_b"]
    told = [row.told for row in shown if not row.condition.endswith("null")]  # of those that differ in having it, that is the answer
    coverage = min((min(one["coverage_a"], one["coverage_b"]) for one in told), default=None)
    values = pl.DataFrame([dict(row.told) for row in shown], infer_schema_length=None)
    newest_at = compared.of.until if compared.of else None
    return replace(figure, sql=shown[0].sql, n=n, coverage=coverage, newest_at=newest_at, values=values)
