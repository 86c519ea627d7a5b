"""Rows of numbers in, figures with a row for each out: its name above, its value and interval, or its bar, below."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from dashboards import theme
from dashboards.charts import filled
from dashboards.short_names import told_apart

MOST_ROWS = 30
ROW_PX = 38
NAME_CHARACTERS = 62  # what the width of a chart has room for
CLIPPED = " (clipped)"
WHISKER_CHARACTERS = NAME_CHARACTERS - len(CLIPPED)
CLIP = 1.0  # beyond this a ratio is drawn up to here: one wide interval would flatten every other


@dataclass(frozen=True)
class Row:
    """A name with its value and the ends of its interval (ratios; None: not known), and how it is seen: good, bad, quiet."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    css: str = "quiet"


_COLORS = {"good": theme.GOOD, "bad": theme.BAD, "warn": theme.CONTROL, "quiet": theme.TREATED}


def whiskers(rows: Sequence[Row], axis_title: str) -> str | None:
    """A dot and its interval a row, in percent, beside the line of 0; None where no row has a value."""
    known = [row for row in rows if row.value is not None][:MOST_ROWS]
    if not known:
        return None
    names = told_apart([row.name for row in known], WHISKER_CHARACTERS)
    told = [_whisker(place, row, name) for place, (row, name) in enumerate(zip(known, names, strict=True))]
    return filled(_whisker_spec(axis_title), json.dumps({"rows": told}))


def bars(rows: Sequence[Row], axis_title: str, factor: float = 100.0) -> str | None:
    """A bar a row from 0 to its value; `high`, where it is known, is a mark to hold it against. None where no row has a value."""
    known = [row for row in rows if row.value is not None][:MOST_ROWS]
    if not known:
        return None
    names = told_apart([row.name for row in known], NAME_CHARACTERS)
    told = [
        {"row": place, "name": name, "x": _of(row.value, factor), "mark": _of(row.high, factor), "color": _COLORS[row.css], "zero": 0}
        for place, (row, name) in enumerate(zip(known, names, strict=True))
    ]
    return filled(_bar_spec(axis_title), json.dumps({"rows": told}))


def css(low: float | None, high: float | None) -> str:
    """How a gain is seen by its interval: good or bad where it lies on one side of 0."""
    if low is not None and low > 0:
        return "good"
    return "bad" if high is not None and high < 0 else "quiet"


def _whisker(place: int, row: Row, name: str) -> dict[str, Any]:
    ends = (row.value, row.low, row.high)
    x, low, high = (None if one is None else _of(max(-CLIP, min(CLIP, one)), 100.0) for one in ends)
    is_cut = any(one is not None and abs(one) > CLIP for one in ends)
    shown = name + CLIPPED if is_cut else name
    return {"row": place, "name": shown, "x": x, "low": low, "high": high, "color": _COLORS[row.css], "zero": 0}


def _of(value: float | None, factor: float) -> float | None:
    return None if value is None else float(f"{factor * value:.4g}")


@functools.cache
def _whisker_spec(axis_title: str) -> str:
    base = _rows("rows").encode(color=_color())
    shown = _zero() + base.mark_rule(strokeWidth=3, opacity=0.45, yOffset=8).encode(x=_x(axis_title, "low"), x2="high:Q", y=_y())
    shown += base.mark_point(filled=True, size=70, opacity=1, yOffset=8).encode(x=_x(axis_title), y=_y())
    return _spec(shown + _names())


@functools.cache
def _bar_spec(axis_title: str) -> str:
    base = _rows("rows").encode(y=_y())
    shown = base.mark_bar(height=10, yOffset=8, opacity=0.85).encode(x=_x(axis_title), color=_color())
    shown += base.mark_tick(height=16, thickness=2, yOffset=8, color=theme.INK).encode(x=_x(axis_title, "mark"))
    return _spec(shown + _zero() + _names())


def _names() -> Any:
    return (
        _rows("rows").mark_text(align="left", baseline="middle", yOffset=-8, color=theme.INK).encode(x=alt.value(2), y=_y(), text="name:N")
    )


def _zero() -> Any:
    """The line of 0, beside each row's mark alone: it does not run through the names."""
    return _rows("rows").mark_tick(height=18, thickness=1.2, yOffset=8, color=theme.INK).encode(x="zero:Q", y=_y())


def _rows(name: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=name))


def _color() -> alt.Color:
    return alt.Color("color:N", scale=None, legend=None)


def _x(title: str, column: str = "x") -> alt.X:
    return alt.X(f"{column}:Q", title=title, axis=alt.Axis(format=",.3~f", grid=True, tickCount=5), scale=alt.Scale(zero=True))


def _y() -> alt.Y:
    return alt.Y("row:O", title=None, axis=None, sort="ascending")


def _spec(shown: Any) -> str:
    chart = shown.properties(width=theme.CHART_WIDTH_PX, height=alt.Step(ROW_PX))
    return json.dumps({**chart.to_dict(), "config": theme.CONFIG})
