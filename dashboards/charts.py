"""Rows of numbers in, figures out: an SVG drawn on the server, and the same numbers as a table and in words."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from dashboards import theme

MOST_ROWS = 5000
_TIME_LABEL = "utcFormat(datum.value, utchours(datum.value) + utcminutes(datum.value) == 0 ? '%b %d' : '%H:%M')"


@dataclass(frozen=True)
class Series:
    """One line of a chart: its name, its color and its points as (time, value, n)."""

    name: str
    color: str
    points: list[tuple[datetime, float, int]]


@dataclass(frozen=True)
class Figure:
    """One chart of a page. Without `svg` there is nothing to draw and `note` says why."""

    key: str
    title: str
    note: str
    label: str = ""
    svg: Markup | None = None
    columns: list[str] = field(default_factory=list)
    numbers: list[list[str]] = field(default_factory=list)


@dataclass(frozen=True)
class Axis:
    """How values are shown: the factor from stored to display units, the axis title, the number format."""

    factor: float
    title: str
    format: str = ",.2~f"


MILLISECONDS = Axis(1000.0, "ms")
PERCENT = Axis(100.0, "%")
PLAIN = Axis(1.0, "")


def lines(key: str, title: str, series: Sequence[Series], axis: Axis, note: str, zero: bool = False) -> Figure:
    """One line per series over time."""
    values = [_value(line.name, point, axis) for line in series for point in line.points][-MOST_ROWS:]
    if not values:
        return Figure(key, title, note)
    color = alt.Color("series:N", sort=None, scale=_colors(series), legend=None if len(series) == 1 else alt.Legend(symbolType="stroke"))
    base = _chart(values).encode(x=_time(), y=_y(axis, zero), color=color)
    return _figure(key, title, note, base.mark_line() + base.mark_point(filled=True, size=24), series, axis)


def interval(
    key: str, title: str, band: Sequence[tuple[datetime, float, float | None, float | None]], flips: Sequence[datetime], note: str
) -> Figure:
    """A gain with its interval over time, the line of no gain, and a rule at each flip."""
    rows = [{"t": _iso(t), "y": 100 * v, "low": _times100(low), "high": _times100(high)} for t, v, low, high in band][-MOST_ROWS:]
    if not rows:
        return Figure(key, title, note)
    base = _chart(rows).encode(x=_time())
    drawn = base.mark_area(color=theme.TREATED, opacity=0.18).encode(y=_y(PERCENT, zero=False, column="low"), y2="high:Q")
    drawn += _chart([{"y": 0}]).mark_rule(color=theme.INK, strokeWidth=1.2).encode(y="y:Q")
    drawn += base.mark_line(color=theme.TREATED).encode(y="y:Q")
    drawn += base.mark_point(filled=True, size=24, color=theme.TREATED).encode(y="y:Q")
    if flips:
        marks = _chart([{"t": _iso(at), "said": "flip"} for at in flips]).encode(x=_time())
        drawn += marks.mark_rule(color=theme.BAD, strokeDash=[4, 3], strokeWidth=1.5)
        drawn += marks.mark_text(color=theme.BAD, align="right", dx=-4, y=8, fontWeight="bold").encode(text="said:N")
    series = [Series("gain", theme.TREATED, [(t, v, 0) for t, v, _, _ in band])]
    columns = ["until (UTC)", "gain", "low", "high"]
    numbers = [[_minute(t), *(theme.signed_percent(v) if v is not None else "" for v in three)] for t, *three in band]
    return Figure(key, title, note, _label(title, series, PERCENT), _svg(drawn), columns, numbers)


def _figure(key: str, title: str, note: str, drawn: Any, series: Sequence[Series], axis: Axis) -> Figure:
    columns = ["from (UTC)", *(f"{line.name}{', ' + axis.title if axis.title else ''}" for line in series), "n"]
    times = sorted({point[0] for line in series for point in line.points})
    held = [{point[0]: point for point in line.points} for line in series]
    numbers = [
        [
            _minute(t),
            *(f"{axis.factor * line[t][1]:.3g}" if t in line else "" for line in held),
            str(sum(line[t][2] for line in held if t in line)),
        ]
        for t in times
    ]
    return Figure(key, title, note, _label(title, series, axis), _svg(drawn), columns, numbers)


def _label(title: str, series: Sequence[Series], axis: Axis) -> str:
    """What a chart shows, for those who do not see it: where each line began and where it is."""
    said = [
        f"{line.name} went from {axis.factor * line.points[0][1]:.3g} to {axis.factor * line.points[-1][1]:.3g} {axis.title}".rstrip()
        for line in series
        if line.points
    ]
    return f"{title}: {'; '.join(said)}"


def _chart(values: list[dict[str, Any]]) -> alt.Chart:
    return alt.Chart({"values": values})


def _value(name: str, point: tuple[datetime, float, int], axis: Axis) -> dict[str, Any]:
    return {"t": _iso(point[0]), "y": axis.factor * point[1], "series": name}


def _colors(series: Sequence[Series]) -> alt.Scale:
    return alt.Scale(domain=[line.name for line in series], range=[line.color for line in series])


def _time() -> alt.X:
    return alt.X("t:T", scale=alt.Scale(type="utc"), title=None, axis=alt.Axis(labelExpr=_TIME_LABEL))


def _y(axis: Axis, zero: bool, column: str = "y") -> alt.Y:
    title: Any = axis.title or None
    return alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=zero), axis=alt.Axis(format=axis.format))


def _svg(drawn: Any) -> Markup:
    chart = drawn.properties(width=theme.CHART_WIDTH_PX, height=theme.CHART_HEIGHT_PX)
    return _drawn(json.dumps({**chart.to_dict(), "config": theme.CONFIG}, sort_keys=True))


@functools.lru_cache(maxsize=256)
def _drawn(spec: str) -> Markup:
    """The SVG of a specification; the same numbers are drawn once. Vega escapes every text in it; nothing may be loaded from elsewhere."""
    return Markup(vl_convert.vegalite_to_svg(json.loads(spec), allowed_base_urls=[]))  # noqa: S704


def _iso(at: datetime) -> str:
    return at.isoformat()


def _minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M")


def _times100(value: float | None) -> float | None:
    return None if value is None else 100 * value
