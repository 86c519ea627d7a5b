"""A row of `break_even` in, its figure out: the gain along a key, with the band in which it is not resolved."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from dashboards import theme
from dashboards.charts import filled
from dashboards.figure import Figure
from dashboards.row_charts import CLIP

KEYS = {"batch": "batch at admission", "input_tokens": "prompt tokens", "context_tokens": "context length in tokens"}
_SIGNS = {"pays": theme.GOOD, "loses": theme.BAD, "open": theme.MUTED}


def named(key: str) -> str:
    """A break-even's key for reading."""
    return KEYS.get(key, key.replace("_", " "))


def figure(row: Mapping[str, Any], place: str) -> Figure:
    """The gain in each bucket with its interval; `place` names the segment. Nothing to draw where no bucket has a gain."""
    key, title = f"break-even-{row['key'].replace('_', '-')}", f"Gain along {named(row['key'])}, %"
    seen = [n for n, gain in enumerate(row["gains"] or []) if gain is not None]
    if not seen:
        return Figure(key, title, f"No data: no bucket has enough blocks in both arms yet ({row['note']}).")
    told = [_bucket(row, n) for n in range(seen[0], seen[-1] + 1)]
    drawing = filled(_spec(named(row["key"])), json.dumps({"rows": [_shown(one) for one in told], "zero": [{"y": 0}]}))
    numbers = [
        [one["bucket"], *(_percent(one[name]) for name in ("gain", "gain_low", "gain_high")), str(one["blocks"]), one["sign"]]
        for one in told
    ]
    label = f"{title} in {place}: " + "; ".join(f"{one['bucket']} {_percent(one['gain'])}, {one['sign']}" for one in told)
    columns = [named(row["key"]), "gain", "low", "high", "blocks", "what it says"]
    values = pl.DataFrame(told, infer_schema_length=None)
    return Figure(key, title, words(row), label, drawing, columns, numbers, newest_at=row["until"], values=values)


def words(row: Mapping[str, Any]) -> str:
    """What a break-even says: its state first, then up to where the lever pays, from where it loses, and the note."""
    said = [f"{row['state'].capitalize()}: {row['note']}."]
    if row["point"] is not None:
        said.append(
            f"The gain is 0 at about {row['point']:.0f}"
            + (f", by a straight line {row['line_point']:.0f}." if row["line_point"] is not None else ".")
        )
    if row["basis"] == "descriptive":
        said.append("Descriptive: this key is known only after a request was treated, so it is shown and not judged.")
    return " ".join([*said, f"95 % intervals that hold at any look; {sum(row['blocks'])} blocks since {row['since']:%Y-%m-%d %H:%M} UTC."])


def _bucket(row: Mapping[str, Any], n: int) -> dict[str, Any]:
    gains: dict[str, Any] = {
        name: _at(row[f"{name}s" if name == "gain" else name.replace("gain", "gains")], n) for name in ("gain", "gain_low", "gain_high")
    }
    return {"bucket": row["buckets"][n], **gains, "blocks": row["blocks"][n], "sign": row["signs"][n]}


def _at(values: Sequence[float | None] | None, n: int) -> float | None:
    return None if values is None else values[n]


def _shown(one: Mapping[str, Any]) -> dict[str, Any]:
    cut = {
        name: None if one[of] is None else float(f"{100 * max(-CLIP, min(CLIP, one[of])):.4g}")
        for name, of in (("y", "gain"), ("low", "gain_low"), ("high", "gain_high"))
    }
    return {"bucket": one["bucket"], "color": _SIGNS.get(one["sign"], theme.MUTED), **cut}


def _percent(value: float | None) -> str:
    return "no data" if value is None else theme.signed_percent(value)


@functools.cache
def _spec(axis_title: str) -> str:
    rows = alt.Chart(alt.NamedData(name="rows"))
    x = alt.X("bucket:O", sort=None, title=axis_title, axis=alt.Axis(labelAngle=0, labelOverlap=True))
    color = alt.Color("color:N", scale=None, legend=None)
    shown = rows.mark_bar(opacity=0.12, width={"band": 1}).encode(x=x, y=alt.value(0), y2=alt.value(theme.CHART_HEIGHT_PX), color=color)
    shown += alt.Chart(alt.NamedData(name="zero")).mark_rule(color=theme.INK, strokeWidth=1.2).encode(y="y:Q")
    y = alt.Y("low:Q", title="%", axis=alt.Axis(format=",.2~f"), scale=alt.Scale(zero=True))
    shown += rows.mark_line(color=theme.TREATED, strokeWidth=1.6).encode(x=x, y="y:Q")
    shown += rows.mark_rule(strokeWidth=3, opacity=0.5).encode(x=x, y=y, y2="high:Q", color=color)
    shown += rows.mark_point(filled=True, size=60, opacity=1).encode(x=x, y="y:Q", color=color)
    chart: Any = shown.properties(width=theme.CHART_WIDTH_PX, height=theme.CHART_HEIGHT_PX)
    return json.dumps({**chart.to_dict(), "config": theme.CONFIG})
