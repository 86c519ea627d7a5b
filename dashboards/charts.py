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
    values = [{"t": _iso(t), "y": _short(axis.factor * v), "series": line.name} for line in series for t, v, _ in line.points][-MOST_ROWS:]
    if not values:
        return Figure(key, title, note)
    colors = tuple((line.name, line.color) for line in series)
    svg = _drawn(_lines_spec(colors, axis, zero), json.dumps({"rows": values}))
    columns = ["from (UTC)", *(f"{line.name}{', ' + axis.title if axis.title else ''}" for line in series), "n"]
    return Figure(key, title, note, _label(title, series, axis), svg, columns, _numbers(series, axis))


def interval(
    key: str, title: str, band: Sequence[tuple[datetime, float, float | None, float | None]], flips: Sequence[datetime], note: str
) -> Figure:
    """A gain with its interval over time, the line of no gain, and a rule at each flip."""
    rows = [{"t": _iso(t), "y": _times100(v), "low": _times100(low), "high": _times100(high)} for t, v, low, high in band][-MOST_ROWS:]
    if not rows:
        return Figure(key, title, note)
    marks = [{"t": _iso(at)} for at in flips]
    svg = _drawn(_interval_spec(), json.dumps({"rows": rows, "flips": marks, "zero": [{"y": 0}]}))
    series = [Series("gain", theme.TREATED, [(t, v, 0) for t, v, _, _ in band])]
    columns = ["until (UTC)", "gain", "low", "high"]
    numbers = [[_minute(t), *(theme.signed_percent(v) if v is not None else "" for v in three)] for t, *three in band]
    return Figure(key, title, note, _label(title, series, PERCENT), svg, columns, numbers)


@functools.cache
def _lines_spec(colors: tuple[tuple[str, str], ...], axis: Axis, zero: bool) -> str:
    """The chart without its rows: Altair checks a specification against its whole schema, 30 ms each, so each form is made once."""
    scale = alt.Scale(domain=[name for name, _ in colors], range=[color for _, color in colors])
    legend = None if len(colors) == 1 else alt.Legend(symbolType="stroke", columnPadding=28)
    base = _chart("rows").encode(x=_time(), y=_y(axis, zero), color=alt.Color("series:N", sort=None, scale=scale, legend=legend))
    return _spec(base.mark_line() + base.mark_point(filled=True, size=24))


@functools.cache
def _interval_spec() -> str:
    base = _chart("rows").encode(x=_time())
    drawn = base.mark_area(color=theme.TREATED, opacity=0.18).encode(y=_y(PERCENT, zero=False, column="low"), y2="high:Q")
    drawn += _chart("zero").mark_rule(color=theme.INK, strokeWidth=1.2).encode(y="y:Q")
    drawn += base.mark_line(color=theme.TREATED).encode(y="y:Q")
    drawn += base.mark_point(filled=True, size=24, color=theme.TREATED).encode(y="y:Q")
    marks = _chart("flips").encode(x=_time())
    drawn += marks.mark_rule(color=theme.BAD, strokeDash=[4, 3], strokeWidth=1.5)
    return _spec(drawn + marks.mark_text(color=theme.BAD, align="right", dx=-4, y=8, fontWeight="bold", text="flip"))


def _numbers(series: Sequence[Series], axis: Axis) -> list[list[str]]:
    times = sorted({point[0] for line in series for point in line.points})
    held = [{point[0]: point for point in line.points} for line in series]
    return [
        [
            _minute(t),
            *(f"{axis.factor * line[t][1]:.3g}" if t in line else "" for line in held),
            str(sum(line[t][2] for line in held if t in line)),
        ]
        for t in times
    ]


def _label(title: str, series: Sequence[Series], axis: Axis) -> str:
    """What a chart shows, for those who do not see it: where each line began and where it is."""
    said = [
        f"{line.name} went from {axis.factor * line.points[0][1]:.3g} to {axis.factor * line.points[-1][1]:.3g} {axis.title}".rstrip()
        for line in series
        if line.points
    ]
    return f"{title}: {'; '.join(said)}"


def _chart(rows: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=rows))


def _time() -> alt.X:
    return alt.X("t:T", scale=alt.Scale(type="utc"), title=None, axis=alt.Axis(labelExpr=_TIME_LABEL))


def _y(axis: Axis, zero: bool, column: str = "y") -> alt.Y:
    title: Any = axis.title or None
    return alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=zero), axis=alt.Axis(format=axis.format))


def _spec(drawn: Any) -> str:
    chart = drawn.properties(width=theme.CHART_WIDTH_PX, height=theme.CHART_HEIGHT_PX)
    return json.dumps({**chart.to_dict(), "config": theme.CONFIG})


@functools.lru_cache(maxsize=256)
def _drawn(spec: str, rows: str) -> Markup:
    """The SVG of a specification over rows; the same numbers are drawn once. Vega escapes every text and may load nothing."""
    filled = {**json.loads(spec), "datasets": json.loads(rows)}
    return Markup(vl_convert.vegalite_to_svg(filled, allowed_base_urls=[]))  # noqa: S704


def _iso(at: datetime) -> str:
    return at.isoformat()


def _minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M")


def _times100(value: float | None) -> float | None:
    return None if value is None else _short(100 * value)


def _short(value: float) -> float:
    """Four digits: what a chart can show, and the same whichever order a sum was taken in."""
    return float(f"{value:.4g}")
