"""A request and its spans in, its legs as bars over time out: what the request says of its phases, then span by span."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import altair as alt
import polars as pl

from dashboards import charts, theme
from dashboards.figure import Figure

KEY = "waterfall"
ODD_S = 0.002  # by how much a span may reach out of its caller before it is said
ROW_PX, WIDTH_PX = 34, 640
MOST_BARS = 80
COLORS = {
    "request": theme.INK,
    "queue": theme.MUTED,
    "prefill": theme.TREATED,
    "transfer": theme.SECOND,
    "decode": theme.CONTROL,
    "span": theme.GOOD,
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """One bar: what it is, where it ran, from when to when in seconds of the request's start, how deep it lies, and what is odd of it."""

    name: str
    kind: str
    where: str
    start_s: float
    length_s: float
    depth: int = 0
    odd: str = ""
    span_id: str = ""

    @property
    def words(self) -> str:
        """Its length for reading."""
        return theme.shown(self.length_s, "s")

    @property
    def begins(self) -> str:
        """Its start for reading."""
        return theme.shown(self.start_s, "s")


@dataclass(frozen=True)
class Waterfall:
    """The bars of a request, and what they cover in seconds of its start."""

    bars: list[Bar]
    since_s: float
    until_s: float

    def left(self, bar: Bar) -> float:
        """Where a bar begins, in percent of the width."""
        return 100 * (bar.start_s - self.since_s) / self._length_s

    def width(self, bar: Bar) -> float:
        """A bar's width in percent; never so little that it is not seen."""
        return min(100 - self.left(bar), max(0.4, 100 * bar.length_s / self._length_s))

    @property
    def _length_s(self) -> float:
        return max(self.until_s - self.since_s, 1e-9)


def waterfall(request: Row, spans: Sequence[Row]) -> Waterfall:
    """The bars of a request and its spans."""
    bars = [*_phases(request), *_spans(request["started_at"], spans)][:MOST_BARS]
    return Waterfall(bars, min(bar.start_s for bar in bars), max(bar.start_s + bar.length_s for bar in bars))


def figure(told: Waterfall) -> Figure:
    """The same as a figure to take away."""
    kinds = list(dict.fromkeys(bar.kind for bar in told.bars))
    rows = [
        {"row": n, "a": 1000 * bar.start_s, "b": 1000 * (bar.start_s + bar.length_s), "kind": bar.kind, "text": f"{bar.name}, {bar.words}"}
        for n, bar in enumerate(told.bars)
    ]
    y = alt.Y("row:O", axis=None, scale=alt.Scale(paddingInner=0.1))
    base = alt.Chart(alt.NamedData(name="rows"))
    color = alt.Color("kind:N", sort=None, scale=alt.Scale(domain=kinds, range=[COLORS[kind] for kind in kinds]))
    bars = base.mark_bar(height=10, yOffset=6).encode(x=alt.X("a:Q", title="ms"), x2="b:Q", y=y, color=color)
    texts = base.mark_text(align="left", dy=-7).encode(x="a:Q", y=y, text="text:N")
    chart = (bars + texts).properties(width=WIDTH_PX, height=ROW_PX * len(rows))
    drawing = charts.filled(json.dumps({**chart.to_dict(), "config": theme.CONFIG}), json.dumps({"rows": rows}))
    values = pl.DataFrame([{"leg": bar.name, "where": bar.where, "start_s": bar.start_s, "length_s": bar.length_s} for bar in told.bars])
    numbers = [[bar.name, bar.where, bar.begins, bar.words] for bar in told.bars]
    return Figure(KEY, "Legs of the request", "", "", drawing, ["leg", "where", "begins", "takes"], numbers, values=values)


def _phases(request: Row) -> Iterator[Bar]:
    """The whole, and the phases that the request's columns tell: one behind the other, decoding up to the end."""
    whole_s = request["e2e_s"] if request["e2e_s"] is not None else _seconds(request["started_at"], request["ended_at"])
    served = request["replica"] or ""
    reads, writes = request["prefill_replica"] or served, request["decode_replica"] or served
    yield Bar("whole request", "request", served, 0.0, max(whole_s or 0.0, 0.0))
    at_s = 0.0
    for name, column, where in (
        ("queue", "queue_s", reads),
        ("prefill", "prefill_s", reads),
        ("transfer", "kv_transfer_s", f"{reads} → {writes}"),
    ):
        if request[column] is not None:
            yield Bar("KV transfer" if name == "transfer" else name, name, where, at_s, request[column], 1)
            at_s += request[column]
    if request["decode_s"] is not None:
        first_s = request["ttft_s"] if request["ttft_s"] is not None else at_s
        yield Bar("decode", "decode", writes, max(first_s, (whole_s or 0.0) - request["decode_s"]), request["decode_s"], 1)


def _spans(start: datetime, spans: Sequence[Row]) -> Iterator[Bar]:
    """Every span below its caller, in the order of time."""
    by_id = {span["span_id"]: span for span in spans}
    below: dict[str | None, list[Row]] = {}
    for span in spans:
        parent = span["parent_span_id"]
        below.setdefault(parent if parent in by_id and parent != span["span_id"] else None, []).append(span)
    waiting = [(span, 0) for span in reversed([*below.get(None, []), *spans])]  # all of them: those that call each other have no first
    told = set()
    while waiting:
        span, depth = waiting.pop()
        if span["span_id"] in told:
            continue
        told.add(span["span_id"])
        yield _span(span, by_id.get(span["parent_span_id"]), start, depth)
        waiting.extend((child, depth + 1) for child in reversed(below.get(span["span_id"], [])))


def _span(span: Row, caller: Row | None, start: datetime, depth: int) -> Bar:
    where = span["replica"] or span["service"] or span["sender"]
    begins_s, name = _seconds(start, span["started_at"]) or 0.0, span["name"]
    role = f"{span['role'] or 'role unknown'}{', ' + span['dialect'] if span['dialect'] else ''}"
    return Bar(
        f"{name} ({role})", "span", where, begins_s, max(span["duration_s"], 0.0), min(depth, 6), _odd(span, caller), span["span_id"]
    )


def _odd(span: Row, caller: Row | None) -> str:
    """Where its clock and its caller's disagree."""
    if span["duration_s"] < 0:
        return "it ends before it begins: its clock was set meanwhile"
    if caller is None or caller is span:
        return ""
    early, late = _seconds(span["started_at"], caller["started_at"]) or 0.0, _seconds(caller["ended_at"], span["ended_at"]) or 0.0
    if early > ODD_S:
        return f"begins {theme.shown(early, 's')} before its caller: another clock"
    return f"ends {theme.shown(late, 's')} after its caller: another clock, or work behind the answer" if late > ODD_S else ""


def _seconds(since: datetime, until: datetime | None) -> float | None:
    return None if until is None else (until - since).total_seconds()
