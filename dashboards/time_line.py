"""Settings in use, flips and deploys in, one figure over time out: what was set when, and what was said of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt
import polars as pl

from dashboards import theme
from dashboards.charts import Period, filled
from dashboards.choice import title
from dashboards.figure import Figure
from dashboards.row_charts import NAME_CHARACTERS, ROW_PX

TITLE = "Settings in use, flips and deploys"
MOST_SCOPES = 8
_MARKS = {"off_recommended": theme.BAD, "on": theme.GOOD}


def figure(marks: Sequence[Mapping[str, Any]], within: Period) -> Figure:
    """A row of settings per scope, in it a mark at each flip and deploy there; `marks` are rows of `page_lever_marks`, the oldest first."""
    if not marks:
        return Figure("time-line", TITLE, "No data: no setting, flip or deploy is known of this lever in this period.")
    scopes = list(dict.fromkeys(mark["scope"] for mark in marks if mark["kind"] == "setting"))[:MOST_SCOPES]
    settings = _settings(marks, within)
    turns = [turn for mark in marks if mark["kind"] != "setting" and mark["noted_at"] >= within.since for turn in _turns(mark, scopes)]
    split = {"turns": [one for one in turns if "row" in one], "elsewhere": [one for one in turns if "row" not in one]}
    rows = {"settings": settings, **split, "period": within.rows}
    drawing = filled(_spec(), json.dumps(rows))
    known = [mark for mark in marks if mark["noted_at"] >= within.since or mark["kind"] == "setting"]
    numbers = [[f"{mark['noted_at'].astimezone(UTC):%Y-%m-%d %H:%M}", mark["kind"], _place(mark), _said(mark)] for mark in known]
    counted = {kind: sum(mark["kind"] == kind for mark in known) for kind in ("setting", "flip", "deploy")}
    said = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counted.items() if count)
    note = "Red: off recommended. Green: on again. Orange: another engine version. A bar is what most treated requests stated."
    note += " Dashed: of a segment without a bar." if split["elsewhere"] else ""
    left = len({mark["scope"] for mark in marks if mark["kind"] == "setting"}) - MOST_SCOPES
    note += f" {left} more scopes are among the numbers." if left > 0 else ""
    values = pl.DataFrame([dict(mark) for mark in known], infer_schema_length=None)
    columns = ["at (UTC)", "what", "where", "said"]
    return Figure("time-line", TITLE, note, f"{TITLE}: {said}", drawing, columns, numbers, values=values)


def _settings(marks: Sequence[Mapping[str, Any]], within: Period) -> list[dict[str, Any]]:
    """Each setting from where it was noted to where the next one of its scope was."""
    found: list[dict[str, Any]] = []
    scopes: dict[str, list[Mapping[str, Any]]] = {}
    for mark in marks:
        if mark["kind"] == "setting":
            scopes.setdefault(mark["scope"], []).append(mark)
    for place, listed in enumerate(list(scopes.values())[:MOST_SCOPES]):
        ends = [*(mark["noted_at"] for mark in listed[1:]), within.until]
        for number, (mark, until) in enumerate(zip(listed, ends, strict=True)):
            since = max(mark["noted_at"], within.since)
            if since < until:
                name = f"{_place(mark)}: {mark['setting']}" if not found or found[-1]["row"] != place else f"→ {mark['setting']}"
                color = theme.MUTED if mark["setting"] == "off" else theme.SECOND if number % 2 else theme.TREATED
                told = {"row": place, "name": name[:NAME_CHARACTERS], "t": _iso(since), "until": _iso(until), "color": color}
                found.append(told)
    return found


def _turns(mark: Mapping[str, Any], scopes: Sequence[str]) -> list[dict[str, Any]]:
    """A flip or deploy in the row of each scope that it lies in; in none where no setting of its segment is known."""
    color = theme.CONTROL if mark["kind"] == "deploy" else _MARKS.get(mark["setting"], theme.MUTED)
    told = {"t": _iso(mark["noted_at"]), "color": color}
    rows = [{**told, "row": row} for row, scope in enumerate(scopes) if _meets(json.loads(scope), json.loads(mark["scope"]))]
    return rows or [told]


def _meets(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two scopes have the same values of the keys that both of them have."""
    return all(one[key] == other[key] for key in one.keys() & other.keys())


def _place(mark: Mapping[str, Any]) -> str:
    return title(json.loads(mark["scope"]))


def _said(mark: Mapping[str, Any]) -> str:
    if mark["kind"] == "setting":
        return f"{mark['before']} → {mark['setting']}" if mark["before"] else f"{mark['setting']}, the first seen"
    return f"{mark['before']} → {mark['setting']}".replace("_", " ") if mark["before"] else str(mark["setting"])


@functools.cache
def _spec() -> str:
    settings, turns, elsewhere, period = (alt.Chart(alt.NamedData(name=name)) for name in ("settings", "turns", "elsewhere", "period"))
    axis = alt.Axis(format="%b %d %H:%M", labelOverlap=True, tickCount=4, titleAnchor="end", titlePadding=0)
    x = alt.X("t:T", scale=alt.Scale(type="utc"), title="UTC", axis=axis)
    y, color = alt.Y("row:O", axis=None, title=None, sort="ascending"), alt.Color("color:N", scale=None, legend=None)
    shown = period.mark_point(opacity=0).encode(x=x)
    shown += settings.mark_bar(height=10, yOffset=8, opacity=0.8).encode(x=x, x2="until:T", y=y, color=color)
    shown += settings.mark_text(align="left", baseline="middle", yOffset=-8, color=theme.INK).encode(x=x, y=y, text="name:N")
    shown += turns.mark_tick(height=20, thickness=3, yOffset=8).encode(x=x, y=y, color=color)
    shown += elsewhere.mark_rule(strokeWidth=1.5, strokeDash=[4, 3]).encode(x=x, color=color)
    chart: Any = shown.properties(width=theme.CHART_WIDTH_PX, height=alt.Step(ROW_PX))
    return json.dumps({**chart.to_dict(), "config": theme.CONFIG})


def _iso(at: datetime) -> str:
    return at.isoformat()
