"""A lever's budget ledger in, its figure out: what was saved, which budget grew, and the rest that nothing explains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import polars as pl

from dashboards import row_charts, theme
from dashboards.figure import Figure, Sql
from dashboards.lever_rows import Row
from pipeline.metrics import by_name
from queries import files

TITLE = "Budget ledger: ms a request, treated less control"
WINDOW = timedelta(hours=2)


def figure(book: Mapping[str, Any] | None, lever: str, row: Row) -> Figure:
    """The change of each phase, of the rest and of the whole, in the segment of a row."""
    if book is None:
        return Figure("budget", TITLE, "No data: no policy of this lever has judged anything yet.")
    asked = {"lever": lever, "metric": "e2e_s", "segment": row.segment, "since": book["until"] - WINDOW, "until": book["until"]}
    sql = Sql(files.question("page_lever_sums"), asked)
    rows = [one for one in book["rows"] if _is_seconds(one)]
    if not rows:
        return Figure("budget", TITLE, f"No data: {book['said']}.", sql=sql)
    told = [row_charts.Row(_named(one), one["change"], css=_css(one)) for one in rows]
    label, effect = f"{TITLE} in {row.title}: {book['said']}", row.effect
    return Figure(
        "budget",
        TITLE,
        f"{book['said'][0].upper()}{book['said'][1:]}. Left of 0 was saved, right of it was spent.",
        label,
        row_charts.bars(told, "ms a request", 1000.0),
        ["of", "budget", "treated", "control", "change", "share"],
        [_numbers(one) for one in book["rows"]],
        sql,
        effect["n_a"] + effect["n_b"] if effect else None,
        effect["coverage"] if effect else None,
        book["until"],
        values=pl.DataFrame(book["rows"], infer_schema_length=None),
    )


def _is_seconds(row: Mapping[str, Any]) -> bool:
    return row["change"] is not None and bool(row["phase"] or row["metric"] in ("unexplained", "e2e_s"))


def _named(row: Mapping[str, Any]) -> str:
    if row["metric"] == "e2e_s":
        return "whole request"
    budget = f", paid in {row['budget'].replace('_', ' ')}" if row["budget"] else ""
    return f"{row['phase'] or row['metric']}{budget}"


def _css(row: Mapping[str, Any]) -> str:
    if row["metric"] == "unexplained":
        return "quiet"
    return "good" if row["change"] < 0 else "bad"


def _numbers(row: Mapping[str, Any]) -> list[str]:
    unit = "s" if _is_seconds(row) else by_name()[row["metric"]].unit
    of = row["phase"] or (by_name()[row["metric"]].title if row["metric"] in by_name() else row["metric"])
    levels = [theme.shown(row[name], unit) if row[name] is not None else "no data" for name in ("treated", "control", "change")]
    share = theme.signed_percent(row["share"]) if row["share"] is not None else "no data"
    return [of, (row["budget"] or "").replace("_", " "), *levels, share]
