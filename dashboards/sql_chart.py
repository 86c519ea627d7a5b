"""The answer to a statement and the columns that a URL chooses in, a figure out, to be drawn on the server as all are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import altair as alt
import polars as pl

from dashboards import charts, theme
from dashboards.figure import Figure
from queries.results import SqlResult

KINDS = ("line", "bar", "point")
MOST_ROWS = 5_000
MOST_SERIES = 12
MOST_NAMES, MOST_NAME = 200, 60  # places that have a name each, and characters of one
SHOWN_NUMBERS = 500
WIDTH_PX = 480
HEIGHT_PX = 220
COLORS = (theme.TREATED, theme.CONTROL, theme.SECOND, theme.GOOD, theme.BAD, theme.MUTED)
ARM_COLORS = {"treated": theme.TREATED, "control": theme.CONTROL, "disabled_in_place": theme.SECOND}
KEY = "result"


class ChartError(ValueError):
    """A URL asks for a chart that this answer has not; says which columns there are."""


@dataclass(frozen=True)
class Drawing:
    """What is to be drawn: one of KINDS over the columns `x` and `y`, a line or color for each value of `series`."""

    kind: str
    x: str
    y: str
    series: str = ""


def drawing(query: Mapping[str, str], result: SqlResult) -> Drawing | None:
    """What a URL chooses to draw; None where it chooses nothing. Raises ChartError."""
    kind = query.get("chart", "")
    if not kind:
        return None
    if kind not in KINDS:
        msg = f"chart {kind[:40]!r} is unknown; known: {', '.join(KINDS)}"
        raise ChartError(msg)
    names = [name for name, _ in result.columns]
    numbers = numeric(result)
    if not numbers:
        msg = "the answer has no column of numbers to draw"
        raise ChartError(msg)
    x = query.get("x") or next((name for name, told in result.frame().schema.items() if told.is_temporal()), names[0])
    y = query.get("y") or next((name for name in numbers if name != x), numbers[0])
    series = query["series"] if "series" in query else _series(result.frame(), x, y)
    chosen = Drawing(kind, x, y, series)
    for what, name, known in (("x", chosen.x, names), ("y", chosen.y, numbers), ("series", chosen.series, [*names, ""])):
        if name not in known:
            msg = f"{what} {name[:60]!r}; taken: {', '.join(filter(None, known))}"
            raise ChartError(msg)
    return chosen


def offered(query: Mapping[str, str], result: SqlResult | None) -> Mapping[str, str]:
    """What a form of the chart shows as chosen: what the URL says, and for what it leaves open what would be drawn."""
    try:
        chosen = drawing({**query, "chart": query.get("chart") or KINDS[0]}, result) if result else None
    except ChartError:
        return query
    return {**query, "x": chosen.x, "y": chosen.y, "series": chosen.series} if chosen else query


def _series(frame: pl.DataFrame, x: str, y: str) -> str:
    """What the rows of one place are told apart by: the first column of few texts, where a place has several rows; none else."""
    if x not in frame.columns or frame[x].n_unique() == len(frame):
        return ""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String and name not in (x, y)]
    return next((name for name in texts if 1 < frame[name].n_unique() <= MOST_SERIES), "")


def numeric(result: SqlResult) -> list[str]:
    """The names of an answer's columns of numbers."""
    return [name for name, kind in result.frame().schema.items() if kind.is_numeric()]


def figure(result: SqlResult, chosen: Drawing, title: str, unit: str = "") -> Figure:
    """The figure; without rows that have both values it has no drawing and says so."""
    frame = result.frame()
    shown = frame.select(list(dict.fromkeys([chosen.x, chosen.y, *([chosen.series] if chosen.series else [])])))
    held = shown.drop_nulls([chosen.x, chosen.y])
    for name in dict.fromkeys(_places(chosen)):
        held = held.filter(_in_time(held[name]))
    drawn = held.head(MOST_ROWS)
    if drawn.is_empty():
        return Figure(KEY, title, "No data: no row has both a value to draw and a place for it.")
    rows = [_row(*values) for values in zip(*(drawn[name].to_list() for name in _places(chosen)), strict=True)]
    notes = [
        f"{len(shown) - len(held):,} rows without a value, or beyond the years that can be drawn, are not drawn."
        if len(shown) > len(held)
        else ""
    ]
    notes += [f"The first {MOST_ROWS:,} rows are drawn." if len(held) > MOST_ROWS else ""]
    notes += [_fewer(rows, chosen), _fold(rows) if chosen.series else ""]
    axis = f"{chosen.y} ({unit})" if unit else chosen.y
    lowest, highest = drawn[chosen.y].min(), drawn[chosen.y].max()
    label = f"{title}: {chosen.kind} chart of {axis} by {chosen.x}, {len(drawn):,} values from {lowest!s} to {highest!s}"
    numbers = [["" if value is None else str(value) for value in row] for row in drawn.head(SHOWN_NUMBERS).iter_rows()]
    return Figure(KEY, title, " ".join(filter(None, notes)), label, _drawing(chosen, rows, axis), drawn.columns, numbers, values=drawn)


def _in_time(column: pl.Series) -> pl.Series:
    """Where a column's times are such as Python has: DuckDB knows infinity, and years beyond 9999."""
    if isinstance(column.dtype, pl.Date):
        return column.is_between(date.min, date.max)
    if isinstance(column.dtype, pl.Datetime):
        zone = UTC if column.dtype.time_zone else None
        return column.is_between(datetime(1, 1, 2, tzinfo=zone), datetime(9999, 12, 30, tzinfo=zone))
    return pl.Series([True]).new_from_index(0, len(column))


def _places(chosen: Drawing) -> tuple[str, str, str]:
    return chosen.x, chosen.y, chosen.series or chosen.x


def _row(x: Any, y: Any, series: Any) -> dict[str, Any]:
    return {"x": x.isoformat() if isinstance(x, date | datetime) else _plain(x), "y": float(y), "series": _plain(str(series))}


def _plain(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    text = str(value)
    return text if len(text) <= MOST_NAME else f"{text[: MOST_NAME - 1]}…"


def _fewer(rows: list[dict[str, Any]], chosen: Drawing) -> str:
    """Leaves out what stands beyond so many places with a name each: drawing thousands takes minutes, and nobody reads them."""
    if chosen.kind != "bar" and not isinstance(rows[0]["x"], str):
        return ""
    names = list(dict.fromkeys(row["x"] for row in rows))
    if len(names) <= MOST_NAMES or (chosen.kind != "bar" and _is_time(rows[0]["x"])):
        return ""
    kept = set(names[:MOST_NAMES])
    rows[:] = [row for row in rows if row["x"] in kept]
    return f"Of {len(names):,} places, the first {MOST_NAMES} are drawn."


def _fold(rows: list[dict[str, Any]]) -> str:
    """Names the smaller series `other`, beyond so many."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row["series"]] = sizes.get(row["series"], 0) + 1
    kept = set(sorted(sizes, key=lambda name: -sizes[name])[:MOST_SERIES])
    if len(sizes) <= MOST_SERIES:
        return ""
    rows[:] = [row for row in rows if row["series"] in kept]
    return f"Of {len(sizes):,} series, the {MOST_SERIES} with most rows are drawn."


def _drawing(chosen: Drawing, rows: list[dict[str, Any]], axis: str) -> str:
    x, kind = rows[0]["x"], "N"
    if isinstance(x, int | float):
        kind = "Q" if chosen.kind != "bar" else "O"
    elif _is_time(x):
        kind = "T"
    names = sorted({row["series"] for row in rows})
    scale = alt.Scale(domain=names, range=_colors(names))
    color: Any = (
        alt.Color("series:N", scale=scale, legend=alt.Legend(title=None, labelLimit=220)) if chosen.series else alt.value(theme.TREATED)
    )
    title = f"{chosen.x} (UTC)" if kind == "T" and isinstance(x, str) and "T" in x else chosen.x
    placed = {"x": alt.X(f"x:{kind}", title=title, **_x_options(kind)), "y": alt.Y("y:Q", title=axis), "color": color}
    marks = alt.Chart(alt.NamedData(name="rows")).encode(**placed)
    drawn = {
        "line": lambda: marks.mark_line(point={"aria": False}, aria=False),
        "bar": lambda: marks.mark_bar(aria=False),
        "point": lambda: marks.mark_point(filled=True, aria=False),
    }[chosen.kind]()
    spec = {**drawn.properties(width=WIDTH_PX, height=HEIGHT_PX).to_dict(), "config": theme.CONFIG}
    return charts.filled(json.dumps(spec), json.dumps({"rows": rows}))


def _colors(names: Sequence[str]) -> list[str]:
    """A color a name; arms have those that they have everywhere, and nothing else has these beside them."""
    free = [color for color in COLORS if color not in {ARM_COLORS[name] for name in names if name in ARM_COLORS}]
    others = iter(free * (len(names) // max(len(free), 1) + 1))
    return [ARM_COLORS.get(name) or next(others) for name in names]


def _is_time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _x_options(kind: str) -> dict[str, Any]:
    if kind == "T":
        return {"scale": alt.Scale(type="utc")}
    return {} if kind == "Q" else {"sort": None, "axis": alt.Axis(labelLimit=140)}
