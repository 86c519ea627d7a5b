"""Frames in, Altair charts out: units in titles, n and intervals in tooltips, every text escaped by Vega. Nothing here asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair as alt
import polars as pl

from dashboards import theme
from dashboards.choice import title
from pipeline.metrics import by_name

TREATED, BAD, INK, MUTED = (theme.LIGHT[name] for name in ("treated", "bad", "ink", "muted"))
_UNITS = {"ratio": (100.0, "%"), "s": (1000.0, "ms"), "s/token": (1000.0, "ms/token"), "bytes/s": (1e-9, "GB/s")}
_GAIN_TIPS = [
    alt.Tooltip("gain_pct:Q", title="gain, %", format="+.1f"),
    alt.Tooltip("low_pct:Q", title="low, %", format="+.1f"),
    alt.Tooltip("high_pct:Q", title="high, %", format="+.1f"),
    alt.Tooltip("n_a:Q", title="n treated", format=","),
    alt.Tooltip("n_b:Q", title="n control", format=","),
]


def segment_names(segments: pl.Series) -> pl.Series:
    """A column `place`: each segment for reading."""
    return pl.Series("place", [title(json.loads(text)) for text in segments], dtype=pl.String)


def gain(rows: pl.DataFrame, lever: str, metric: str, segment: str) -> alt.LayerChart:
    """A line with its interval as a band, and the line of no gain."""
    drawn, last = _percents(rows), rows.row(-1, named=True)
    base = alt.Chart(_values(drawn)).encode(x=_time("until"))
    band = base.mark_area(color=TREATED, opacity=0.18).encode(y=alt.Y("low_pct:Q", title="gain, %"), y2="high_pct:Q")
    line = base.mark_line(color=TREATED, point=True).encode(
        y=alt.Y("gain_pct:Q", title="gain, %"), tooltip=[alt.Tooltip("until:T", title="until"), *_GAIN_TIPS]
    )
    said = f"{title(json.loads(segment))}; newest n {last['n_a']:,} treated, {last['n_b']:,} control"
    return _titled(_zero() + band + line, f"Gain of {lever} in {metric}, with its 95 % interval", said)


def gains(rows: pl.DataFrame, lever: str, metric: str) -> alt.LayerChart:
    """A point and its interval per segment."""
    drawn = _percents(rows)
    base = alt.Chart(_values(drawn)).encode(y=alt.Y("place:N", title=None, sort=drawn["place"].to_list(), axis=alt.Axis(labelLimit=400)))
    bars = base.mark_rule(color=TREATED, strokeWidth=2).encode(x=alt.X("low_pct:Q", title="gain, %"), x2="high_pct:Q")
    points = base.mark_point(filled=True, size=60, color=TREATED).encode(x="gain_pct:Q", tooltip=["place:N", *_GAIN_TIPS])
    none = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(color=INK).encode(x="x:Q")
    said = f"{len(rows)} segments, n {rows.select(pl.col('n_a').sum() + pl.col('n_b').sum()).item():,}"
    return _titled(none + bars + points, f"Newest gain of {lever} in {metric}, with its 95 % interval", said)


def metric(rows: pl.DataFrame, column: str, name: str, by: str | None) -> alt.LayerChart:
    """A line per value of a key, in the metric's display unit."""
    of = by_name()[name]
    factor, unit = _UNITS.get(of.unit, (1.0, of.unit))
    drawn = rows.with_columns((pl.col("value") * factor).alias("shown"), pl.col(f"{name}_coverage").alias("coverage"))
    kept = ["from", "shown", "n", "coverage", "requests", *([by] if by else [])]
    axis = alt.Y("shown:Q", title=f"{of.title}, {unit}" if unit else of.title, scale=alt.Scale(zero=False))
    tips = [alt.Tooltip("from:T"), alt.Tooltip("shown:Q", title=column, format=".4~g"), alt.Tooltip("n:Q", format=",")]
    tips += [alt.Tooltip("coverage:Q", format=".0%"), *([alt.Tooltip(f"{_field(by)}:N", title=by)] if by else [])]
    base = alt.Chart(_values(drawn.select(kept).rename({by: _field(by)} if by else {})))
    base = base.encode(x=_time("from"), y=axis, tooltip=tips)
    color = alt.Color(f"{_field(by)}:N", title=by) if by else alt.value(TREATED)
    said = f"{column}; n {rows['n'].sum():,} of {rows['requests'].sum():,} requests"
    return _titled(base.mark_line().encode(color=color) + base.mark_point(filled=True).encode(color=color), of.title, said)


def break_even(row: Mapping[str, Any]) -> alt.LayerChart:
    """The gain in each bucket of a key, and a rule at each edge that is known."""
    found = zip(row["buckets"], row["gains"], row["gains_low"], row["gains_high"], row["signs"], strict=True)
    values = [
        {"bucket": bucket, "place": number, "gain_pct": 100 * gain, "low_pct": _pct(low), "high_pct": _pct(high), "says": sign}
        for number, (bucket, gain, low, high, sign) in enumerate(found)
        if gain is not None
    ]
    order = [one["bucket"] for one in values]
    base = alt.Chart(alt.InlineData(values=values)).encode(x=alt.X("bucket:O", title=row["key"].replace("_", " "), sort=order))
    tips = ["bucket:N", alt.Tooltip("gain_pct:Q", title="gain, %", format="+.1f"), "low_pct:Q", "high_pct:Q", "says:N"]
    bars = base.mark_rule(strokeWidth=2, color=TREATED).encode(y=alt.Y("low_pct:Q", title="gain, %"), y2="high_pct:Q")
    points = base.mark_point(filled=True, size=60).encode(y="gain_pct:Q", color=alt.Color("says:N", title=None), tooltip=tips)
    edges = f"pays up to {row['pays_edge']}, loses from {row['loses_edge']}" if row["pays_edge"] is not None else row["state"]
    said = f"{title(json.loads(row['segment']))}; {edges}; {sum(row['blocks'])} blocks"
    return _titled(_zero() + bars + points, f"Gain of {row['lever']} in {row['metric']} along {row['key'].replace('_', ' ')}", said)


def verdicts(rows: pl.DataFrame) -> alt.Chart:
    """A cell per segment and lever, with the verdict's own color and words."""
    told = [theme.badge(row["verdict"], row["reason_code"]) for row in rows.to_dicts()]
    drawn = rows.with_columns(pl.Series("says", [f"{mark} {words}" for words, mark, _ in told]))
    kinds = {row["says"]: theme.LIGHT.get(css, MUTED) for row, (_, _, css) in zip(drawn.to_dicts(), told, strict=True)}
    columns = ["place", "lever", "policy", "verdict", "says", "reason", "gain", "gain_low", "gain_high", "n_a", "n_b"]
    base = alt.Chart(_values(drawn.select(columns))).encode(
        x=alt.X("lever:N", title=None), y=alt.Y("place:N", title=None, axis=alt.Axis(labelLimit=400))
    )
    tips = ["policy:N", "says:N", "reason:N", alt.Tooltip("gain:Q", format="+.1%"), alt.Tooltip("gain_low:Q", format="+.1%")]
    tips += [alt.Tooltip("gain_high:Q", format="+.1%"), alt.Tooltip("n_a:Q", format=","), alt.Tooltip("n_b:Q", format=",")]
    colors = alt.Color("says:N", title=None, scale=alt.Scale(domain=list(kinds), range=list(kinds.values())))
    drawn_by_place: alt.Chart = base.mark_rect(stroke="white").encode(color=colors, tooltip=tips)
    return drawn_by_place.properties(title="What each policy says now")


def _percents(rows: pl.DataFrame) -> pl.DataFrame:
    columns = ["place", "until", "gain", "gain_low", "gain_high", "n_a", "n_b"]
    parts = {"gain_pct": "gain", "low_pct": "gain_low", "high_pct": "gain_high"}
    kept = rows.select([name for name in columns if name in rows.columns])
    return kept.with_columns((100 * pl.col(of)).alias(name) for name, of in parts.items())


def _time(name: str) -> alt.X:
    return alt.X(f"{name}:T", title=f"{name} (UTC)", scale=alt.Scale(type="utc"), axis=alt.Axis(format="%b %d %H:%M", labelAngle=-30))


def _pct(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


def _values(rows: pl.DataFrame) -> alt.InlineData:
    """The rows inside the chart, times as ISO 8601: it shows the same wherever it is opened."""
    times = [pl.col(name).dt.strftime("%Y-%m-%dT%H:%M:%SZ") for name, kind in rows.schema.items() if isinstance(kind, pl.Datetime)]
    return alt.InlineData(values=rows.with_columns(times).to_dicts())


def _field(name: str | None) -> str:
    """A key's name as Vega reads it: dots and brackets would lead into objects."""
    return (name or "").replace(".", "_").replace("[", "_").replace("]", "_")


def _zero() -> alt.Chart:
    line: alt.Chart = alt.Chart(alt.InlineData(values=[{"y": 0}])).mark_rule(color=INK).encode(y="y:Q")
    return line


def _titled(chart: alt.LayerChart, text: str, said: str) -> alt.LayerChart:
    drawn: alt.LayerChart = chart.properties(width=560, title=alt.TitleParams(text, subtitle=said, anchor="start"))
    return drawn
