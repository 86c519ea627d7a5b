"""The lever page: what a lever gives in each segment, up to where it pays, what it costs, why, and what was set when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dashboards import (
    break_even_chart,
    filters,
    lever_beside,
    lever_budget,
    lever_read,
    lever_rows,
    lever_total,
    standing,
    templating,
    time_line,
)
from dashboards.charts import Period
from dashboards.figure import Figure, Sql
from dashboards.lever_read import Lever
from dashboards.lever_rows import SHOWN_ROWS, Row
from dashboards.page import Asked, Page
from pipeline.metrics import judged
from pipeline.segments import keys_for
from queries import files

Total = tuple[Mapping[str, Any] | None, str]


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a choice that is none."""
    lever = lever_read.read(asked)
    total = lever.total()
    drawn = asked.drawn(_figures(lever, total))
    return templating.render(
        "lever.html",
        asked=asked,
        bar=filters.bar(asked, lever.chosen, keys_for(lever.name), own=("metric",)),
        chosen=lever.chosen,
        lever=standing.words(lever.name),
        metric=lever.metric,
        metrics=_metrics(lever),
        rows=lever.rows[:SHOWN_ROWS],
        left_out=max(0, len(lever.rows) - SHOWN_ROWS),
        shown=lever.shown,
        figures={figure.key: figure for figure in drawn},
        break_evens=[figure for figure in drawn if figure.key.startswith("break-even")],
        elsewhere=lever_beside.elsewhere(lever),
        warning=lever_total.warning(total[0]),
        chains=lever.chains,
        debts=lever_beside.debts(lever),
        headline=_headline(lever),
    )


def figures(asked: Asked) -> list[Figure]:
    """The charts of the page."""
    lever = lever_read.read(asked)
    return _figures(lever, lever.total())


def _figures(lever: Lever, total: Total) -> list[Figure]:
    shown, reader = lever.shown, lever.asked.reader
    found = [lever_rows.figure(lever.rows, lever.name, lever.metric), lever_total.figure(*total, lever.metric)]
    if shown is not None:
        books = reader.budgets(lever.name, shown.segment)
        found += [lever_budget.figure(books[0] if books else None, lever.name, shown), *_break_evens(lever, shown)]
    return [*found, _time_line(lever)]


def _time_line(lever: Lever) -> Figure:
    chosen, sql = lever.chosen, files.question("page_lever_marks")
    asked = {"lever": lever.name, "since": chosen.since, "until": chosen.until}
    asked |= {key: chosen.keys.get(key) for key in ("model", "hardware")}
    marks = lever.asked.reader.frame(sql, asked).to_dicts()
    figure = time_line.figure(marks, Period(chosen.since, chosen.until))
    return replace(figure, sql=Sql(sql, asked), newest_at=chosen.until if marks else None)


def _break_evens(lever: Lever, shown: Row) -> list[Figure]:
    """Of the shown segment, each key's newest epoch."""
    sql = Sql(files.question("page_lever_break_even"), {"lever": lever.name, "segment": shown.segment})
    newest_of = {row["key"]: row for row in reversed(lever.break_even) if row["segment"] == shown.segment}
    return [replace(break_even_chart.figure(row, shown.title), sql=sql, metric=judged().get(row["metric"])) for row in newest_of.values()]


def _metrics(lever: Lever) -> list[tuple[str, str, bool]]:
    """The metrics that there are effects on, as links; the chosen one first."""
    names = sorted(set(lever.effects["metric"].to_list()) & set(judged())) if len(lever.effects) else []
    names = [lever.metric.name, *(name for name in names if name != lever.metric.name)]
    return [(_named(name), lever.chosen.url("lever", metric=name), name == lever.metric.name) for name in names]


def _named(metric: str) -> str:
    """A metric's title; of a percentile with the percentile."""
    row, tail = judged()[metric], metric.rpartition("_p")[2]
    return f"{row.title}, p{tail}" if tail.isdecimal() else row.title


def _headline(lever: Lever) -> tuple[str, str, str]:
    """(css, title, what stands below it)."""
    name = standing.words(lever.name).capitalize()
    live = [row for row in lever.rows if row.verdict and not row.is_shadow]
    stopped = [row for row in live if row.css == "bad"]
    pays = sum(row.verdict is not None and row.verdict.name == "keep" for row in live)
    counted = f"{len(lever.rows)} segment{'' if len(lever.rows) == 1 else 's'}"
    if stopped:
        worst = f"Worst: {stopped[0].title}" + (f", {stopped[0].gain.text}" if stopped[0].gain else "") + "."
        return "bad", f"{name} stopped paying in {len(stopped)} of {counted}", worst
    if pays:
        return "good", f"{name} pays in {pays} of {counted}", "No segment is recommended off."
    if lever.rows:
        return "quiet", f"{name} is in {counted}, and none is judged to pay yet", next((row.lacks for row in lever.rows if row.lacks), "")
    return "quiet", f"{name} is not in use", "No request of this period carries its setting or arm, and no policy has judged it."


PAGE = Page("/lever", "Lever", 30, draw, figures)
