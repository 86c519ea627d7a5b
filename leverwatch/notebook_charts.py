"""A connection and a chart's name in, an Altair chart out, to be shown and restyled in a notebook; the numbers are those of the pages.

Each chart asks the questions that pages ask, carries units, n and intervals in its titles and tooltips, and holds at most `MOST_ROWS` rows.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt
import polars as pl

from leverwatch import notebook_drawing as drawing
from leverwatch.connection import Connection
from pipeline.metrics import chosen
from pipeline.segments import canonical
from queries import files
from queries.report import moment

MOST_ROWS = 5000
SEVERAL_DAYS = timedelta(days=3)


class UnknownChartError(KeyError):
    """No chart has this name; says which are meant."""

    def __str__(self) -> str:
        return str(self.args[0])


class NothingToDrawError(LookupError):
    """There are no numbers to draw; says of what."""


@dataclass(frozen=True)
class Asked:
    """What a chart is asked for: a lever, a segment's keys (None: all), a metric, keys to tell apart, and a period of UTC times."""

    lever: str
    segment: Mapping[str, str] | None
    metric: str
    by: str | None
    since: datetime
    until: datetime

    @property
    def where(self) -> str | None:
        """The segment as a condition over columns of requests."""
        if not self.segment:
            return None
        return " and ".join(f"{name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in self.segment.items())


def chart(connection: Connection, name: str, asked: Mapping[str, Any]) -> alt.LayerChart | alt.Chart:
    """The chart of a name; `asked` has every argument of `Connection.chart`, which says what it takes.

    Raises:
        UnknownChartError: there is none of that name.
        NothingToDrawError: there are no numbers.
    """
    if name not in CHARTS:
        near = difflib.get_close_matches(name, CHARTS, 1)
        msg = f"chart {name!r} is unknown; {f'did you mean {near[0]!r}? ' if near else ''}known: {', '.join(CHARTS)}"
        raise UnknownChartError(msg)
    return CHARTS[name].draw(connection, _asked(connection, asked))


def listed() -> pl.DataFrame:
    """One row per chart: its name, what it shows, and what it takes beside since and until."""
    return pl.DataFrame([{"name": name, "shows": one.shows, "takes": one.takes} for name, one in CHARTS.items()])


def _asked(connection: Connection, asked: Mapping[str, Any]) -> Asked:
    """What `Connection.chart` was asked, with a segment's text read and times in UTC."""
    segment, until = asked["segment"], asked["until"]
    end = _moment(until, datetime.now(UTC)) if until else _newest(connection)
    keys = json.loads(segment) if isinstance(segment, str) else segment
    return Asked(asked["lever"], keys, asked["metric"] or "net_itl_s", asked["by"], _moment(asked["since"], end), end)


def _moment(when: str | datetime, now: datetime) -> datetime:
    return moment(when, now) if isinstance(when, str) else when


def _newest(connection: Connection) -> datetime:
    """A second behind the newest span that was seen, as the pages end; the clock where nothing was."""
    found = connection.sql("select max(ended_at) as newest from watermarks")["newest"][0]
    return min(datetime.now(UTC), found + timedelta(seconds=1)) if found else datetime.now(UTC)


def _gain(connection: Connection, asked: Asked) -> alt.LayerChart:
    """One segment's gain over time with its interval: the given one, else the one with the most requests in both arms."""
    segment = canonical(asked.segment) if asked.segment is not None else _most_requests(connection, asked)
    step_s = 1800 if asked.until - asked.since > SEVERAL_DAYS else 300
    params = {"lever": asked.lever, "segment": segment, "metrics": [asked.metric], "step_s": step_s, **_period(asked)}
    rows = connection.sql(files.question("page_effects"), params).filter(pl.col("gain").is_not_null())
    return drawing.gain(_held(rows, asked, f"gain of {asked.lever} in {asked.metric} in {segment}"), asked.lever, asked.metric, segment)


def _most_requests(connection: Connection, asked: Asked) -> str:
    rows = _effects(connection, asked)
    best = _held(rows, asked, f"gain of {asked.lever} in {asked.metric}").with_columns((pl.col("n_a") + pl.col("n_b")).alias("n"))
    return str(best.sort("n", descending=True)["segment"][0])


def _gains(connection: Connection, asked: Asked) -> alt.LayerChart:
    """Every judging segment's newest gain with its interval, the worst on top."""
    rows = _held(_effects(connection, asked), asked, f"gain of {asked.lever} in {asked.metric}")
    return drawing.gains(rows.with_columns(drawing.segment_names(rows["segment"])).sort("gain"), asked.lever, asked.metric)


def _effects(connection: Connection, asked: Asked) -> pl.DataFrame:
    rows = connection.effects(asked.lever)
    return rows.filter((pl.col("metric") == asked.metric) & pl.col("gain").is_not_null()) if "gain" in rows.columns else rows


def _metric(connection: Connection, asked: Asked) -> alt.LayerChart:
    """A metric by the hour, or the day, one line per value of a key."""
    chosen((asked.metric,))
    time = "day" if asked.until - asked.since > 10 * SEVERAL_DAYS else "hour"
    keys = [time, *([asked.by] if asked.by else [])]
    rows = connection.report(by=keys, metrics=[asked.metric], where=asked.where, since=asked.since, until=asked.until)
    column = asked.metric if asked.metric in rows.columns else f"{asked.metric}_p95"
    known = rows.rename({time: "from", column: "value", f"{asked.metric}_n": "n"}).filter(pl.col("value").is_not_null())
    timed = known.with_columns(pl.col("from").str.to_datetime(time_zone="UTC")) if known.schema["from"] == pl.String else known
    return drawing.metric(_held(timed, asked, asked.metric), column, asked.metric, asked.by)


def _break_even(connection: Connection, asked: Asked) -> alt.LayerChart:
    """A segment's gain along the key at which the lever stops paying, with the edges of the band that is not resolved."""
    rows = connection.break_even(asked.lever)
    if asked.segment is not None:
        rows = rows.filter(pl.col("segment") == canonical(asked.segment))
    if asked.by:
        rows = rows.filter(pl.col("key") == asked.by)
    row = _held(rows, asked, f"break-even of {asked.lever}").row(0, named=True)
    return drawing.break_even(row)


def _verdicts(connection: Connection, asked: Asked) -> alt.Chart:
    """What each policy says now: segments by levers."""
    rows = connection.sql(files.question("page_streams"), {"lever": None, "segment": None, **_period(asked)})
    told = _held(rows, asked, "verdict")
    return drawing.verdicts(told.with_columns(drawing.segment_names(told["segment"])))


def _period(asked: Asked) -> dict[str, datetime]:
    return {"since": asked.since, "until": asked.until}


def _held(rows: pl.DataFrame, asked: Asked, what: str) -> pl.DataFrame:
    """The newest rows that a chart may hold. Raises NothingToDrawError where there is none."""
    if rows.is_empty():
        msg = f"no {what} is known between {asked.since:%Y-%m-%d %H:%M} and {asked.until:%Y-%m-%d %H:%M} UTC"
        raise NothingToDrawError(msg)
    return rows.tail(MOST_ROWS)


@dataclass(frozen=True)
class Named:
    """A chart that has a name."""

    shows: str
    takes: str
    draw: Callable[[Connection, Asked], alt.LayerChart | alt.Chart]


CHARTS: dict[str, Named] = {
    "gain": Named("one segment's gain over time, in %, with its interval; above 0 the lever helps", "lever, segment, metric", _gain),
    "gains": Named("every segment's newest gain, in %, with its interval, the worst on top", "lever, metric", _gains),
    "metric": Named("a metric by the hour in its unit, one line per value of a key", "metric, by, segment", _metric),
    "break_even": Named("the gain along a key, in %, and where the lever stops paying", "lever, segment, by (the key)", _break_even),
    "verdicts": Named("what each policy says now: segments by levers", "", _verdicts),
}
