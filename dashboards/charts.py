"""Rows of numbers in, figures out: what is to be drawn, and the same numbers as a table and in words."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import polars as pl

from dashboards import theme
from dashboards.figure import Figure

MOST_ROWS = 5000
CLIP = 0.6  # a gain or an interval beyond this is drawn up to here: one wide interval would flatten every other
GainPoint = tuple[datetime, float, float | None, float | None]  # time, gain, low, high
_TIME_LABEL = "utcFormat(datum.value, utchours(datum.value) + utcminutes(datum.value) == 0 ? '%b %d' : '%H:%M')"


@dataclass(frozen=True)
class Series:
    """One line of a chart: its name, its color, its points as (time, value, n), and whether its n are the other lines' requests too."""

    name: str
    color: str
    points: list[tuple[datetime, float, int]]
    is_shared: bool = False


@dataclass(frozen=True)
class Mark:
    """A moment on a chart with what was then; a decision is seen as such, what it dates from is muted."""

    at: datetime
    text: str
    is_decision: bool = True


@dataclass(frozen=True)
class Period:
    """What the time axis of every chart of a page covers."""

    since: datetime
    until: datetime

    @property
    def rows(self) -> list[dict[str, str]]:
        """The two ends as rows of a chart."""
        return [{"t": _iso(self.since)}, {"t": _iso(self.until)}]


@dataclass(frozen=True)
class Axis:
    """How values are shown: the factor from stored to display units, the axis title, the number format, where the axis begins."""

    factor: float
    title: str
    format: str = ",.2~f"
    start: float | None = None


MILLISECONDS_PER_TOKEN = Axis(1000.0, "ms/token")
MILLISECONDS_FROM_ZERO = Axis(1000.0, "ms", start=0.0)
PERCENT = Axis(100.0, "%")
PERCENT_FROM_ZERO = Axis(100.0, "%", start=0.0)
PLAIN = Axis(1.0, "")
PLAIN_FROM_ZERO = Axis(1.0, "", start=0.0)
PLAIN_FROM_ONE = Axis(1.0, "", start=1.0)


def lines(key: str, title: str, series: Sequence[Series], axis: Axis, note: str, period: Period, step: timedelta) -> Figure:
    """One line per series over time, broken where the next point is more than a step away."""
    values = [_row(line, axis, t, v) for line in series for t, v in _broken([(t, v) for t, v, _ in line.points], step)][-MOST_ROWS:]
    if not values:
        return Figure(key, title, note)
    colors = tuple((line.name, line.color) for line in series)
    drawing = filled(_lines_spec(colors, axis), json.dumps({"rows": values, "period": period.rows}))
    columns = ["from (UTC)", *(f"{line.name}{', ' + axis.title if axis.title else ''}" for line in series), "n"]
    label, newest = _label(title, series, axis), max(line.points[-1][0] for line in series if line.points) + step
    counted = _counted(series)
    return Figure(
        key,
        title,
        note,
        label,
        drawing,
        columns,
        _numbers(series, axis),
        n=counted(sum(n for _, _, n in line.points) for line in series),
        newest_at=newest,
        values=_values(series),
    )


def interval(key: str, title: str, band: Sequence[GainPoint], turns: Sequence[Mark], note: str, period: Period, step: timedelta) -> Figure:
    """A gain with its interval over time, the line of no gain, and a rule at each mark; clipped at `CLIP`, and saying so."""
    if not band:
        return Figure(key, title, note)
    held = {t: values for t, *values in band}
    times = _broken([(t, 0.0) for t in held], step)[-MOST_ROWS:]
    rows = [{"t": _iso(t), **_clipped(held[t] if known is not None else (None, None, None))} for t, known in times]
    cut = [t for t, values in held.items() if any(v is not None and abs(v) > CLIP for v in values)]
    names = {"decided": [one for one in turns if one.is_decision], "dated": [one for one in turns if not one.is_decision]}
    marks: dict[str, list[dict[str, Any]]] = {name: [_marked(one, period) for one in listed] for name, listed in names.items()}
    marks |= {"clipped": [{"t": _iso(at), "y": 100 * CLIP} for at in cut[:1]]}
    drawing = filled(_interval_spec(), json.dumps({"rows": rows, "zero": [{"y": 0}], "period": period.rows, **marks}))
    said = f"{note} Clipped at \N{PLUS-MINUS SIGN}{theme.percent(CLIP)} in {len(cut)} of {len(held)} points." if cut else note
    series = [Series("gain", theme.TREATED, [(t, v, 0) for t, v, _, _ in band])]
    columns = ["until (UTC)", "gain", "low", "high"]
    numbers = [[_minute(t), *(theme.signed_percent(v) if v is not None else "" for v in three)] for t, *three in band]
    values = pl.DataFrame(band, schema=["until", "gain", "gain_low", "gain_high"], orient="row", infer_schema_length=None)
    return Figure(key, title, said, _label(title, series, PERCENT), drawing, columns, numbers, newest_at=band[-1][0], values=values)


def _row(line: Series, axis: Axis, at: datetime, value: float | None) -> dict[str, Any]:
    return {"t": _iso(at), "y": None if value is None else _short(axis.factor * value), "series": line.name}


def _broken(points: Sequence[tuple[datetime, float]], step: timedelta) -> list[tuple[datetime, float | None]]:
    """The points, with one without a value where the next is more than a step away: no line is drawn over it."""
    found: list[tuple[datetime, float | None]] = []
    for at, value in points:
        if found and at - found[-1][0] > step:
            found.append((found[-1][0] + step, None))
        found.append((at, value))
    return found


def _clipped(values: Sequence[float | None]) -> dict[str, float | None]:
    cut = [None if value is None else _short(100 * max(-CLIP, min(CLIP, value))) for value in values]
    return dict(zip(("y", "low", "high"), cut, strict=True))


@functools.cache
def _lines_spec(colors: tuple[tuple[str, str], ...], axis: Axis) -> str:
    """The chart without its rows: Altair checks a specification against its whole schema, 30 ms each, so each form is made once."""
    scale = alt.Scale(domain=[name for name, _ in colors], range=[color for _, color in colors])
    legend = None if len(colors) == 1 else alt.Legend(symbolType="stroke", columnPadding=28)
    base = _chart("rows").encode(x=_time(), y=_y(axis), color=alt.Color("series:N", sort=None, scale=scale, legend=legend))
    return _spec(_whole_period() + base.mark_line() + base.mark_point(filled=True, size=24))


@functools.cache
def _interval_spec() -> str:
    base = _chart("rows").encode(x=_time())
    drawn = _whole_period() + base.mark_area(color=theme.TREATED, opacity=0.18).encode(y=_y(PERCENT, column="low"), y2="high:Q")
    drawn += _chart("zero").mark_rule(color=theme.INK, strokeWidth=1.2).encode(y="y:Q")
    drawn += base.mark_line(color=theme.TREATED).encode(y="y:Q")
    drawn += base.mark_point(filled=True, size=14, color=theme.TREATED).encode(y="y:Q")
    drawn += _chart("clipped").mark_text(align="left", dx=4, dy=6, text="clipped").encode(x=_time(), y="y:Q")
    return _spec(drawn + _marks("dated", theme.MUTED, theme.CHART_HEIGHT_PX - 8) + _marks("decided", theme.BAD, 8))


def _marks(name: str, color: str, y_px: int) -> Any:
    """A rule at each mark, and beside it what was then."""
    marks = _chart(name).encode(x=_time())
    shown = marks.mark_rule(color=color, strokeDash=[4, 3], strokeWidth=1.5)
    shown += marks.mark_text(color=color, align="right", dx=-4, y=y_px, fontWeight="bold").encode(text="left:N")
    return shown + marks.mark_text(color=color, align="left", dx=4, y=y_px, fontWeight="bold").encode(text="right:N")


def _marked(one: Mark, period: Period) -> dict[str, str]:
    """A mark's row: its words stand behind a decision and before what it dates from, unless the chart ends there."""
    place = (one.at - period.since) / (period.until - period.since)
    side = "right" if place < (0.7 if one.is_decision else 0.3) else "left"
    return {"t": _iso(one.at), "left": "", "right": "", side: one.text}


def _whole_period() -> Any:
    """Nothing to see, at both ends of the period: the time axis covers it."""
    return _chart("period").mark_point(opacity=0).encode(x=_time())


def _counted(series: Sequence[Series]) -> Callable[[Iterable[int]], int]:
    """How the n of lines become one: of lines over the same requests it is theirs, that of arms is added up."""
    return max if any(line.is_shared for line in series) else sum


def _values(series: Sequence[Series]) -> pl.DataFrame:
    """A row per time, a column per line, in stored units."""
    times = sorted({point[0] for line in series for point in line.points})
    lines = {line.name: {t: v for t, v, _ in line.points} for line in series}
    counts = [{t: n for t, _, n in line.points} for line in series]
    total = [_counted(series)(count[t] for count in counts if t in count) for t in times]
    return pl.DataFrame({"from": times, **{name: [held.get(t) for t in times] for name, held in lines.items()}, "n": total}, strict=False)


def _numbers(series: Sequence[Series], axis: Axis) -> list[list[str]]:
    """A row per time, in display units."""
    counted = _counted(series)
    times = sorted({point[0] for line in series for point in line.points})
    held = [{point[0]: point for point in line.points} for line in series]
    return [
        [
            _minute(t),
            *(f"{axis.factor * line[t][1]:.3g}" if t in line else "" for line in held),
            str(counted(line[t][2] for line in held if t in line)),
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
    return alt.X("t:T", scale=alt.Scale(type="utc"), title="UTC", axis=alt.Axis(labelExpr=_TIME_LABEL, titleAnchor="end", titlePadding=0))


def _y(axis: Axis, column: str = "y") -> alt.Y:
    title: Any = axis.title or None
    scale = alt.Scale(domainMin=axis.start, zero=False) if axis.start else alt.Scale(zero=axis.start is not None)
    return alt.Y(f"{column}:Q", title=title, scale=scale, axis=alt.Axis(format=axis.format))


def _spec(drawn: Any) -> str:
    chart = drawn.properties(width=theme.CHART_WIDTH_PX, height=theme.CHART_HEIGHT_PX)
    return json.dumps({**chart.to_dict(), "config": theme.CONFIG})


def filled(spec: str, rows: str) -> str:
    """A specification, a JSON object as text, with its rows, another: what is drawn."""
    return f'{spec[:-1]}, "datasets": {rows}}}'


def _iso(at: datetime) -> str:
    return at.isoformat()


def _minute(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M")


def _short(value: float) -> float:
    """Four digits: what a chart can show, and the same whichever order a sum was taken in."""
    return float(f"{value:.4g}")
