"""Flips and cells in, lever debt over a period out: what was recommended off and went on, for how long, on what, at what loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from queries import files
from queries.store import Store

DEFAULT_PERIOD = timedelta(days=7)
LEAST_REQUESTS = 5
TIMES = ("tpot_s", "ttft_s")  # of all tokens after the first, and of the first
_TIME = pl.Datetime("us", "UTC")
SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("policy", "lever", "segment", "action", "severity"), pl.String()),
    "since": _TIME,
    "until": _TIME,
    "stood_s": pl.Float64(),
    "treated_s": pl.Float64(),
    "requests": pl.Int64(),
    "tokens": pl.Int64(),
    "lost_s": pl.Float64(),
    "compared_share": pl.Float64(),
}


class Debt(NamedTuple):
    """What treated traffic cost over some hours. `lost_s` is request time above what control's level gives, None without any control."""

    treated_s: float
    requests: int
    tokens: int | None
    lost_s: float | None
    compared_share: float | None


def debt(store: Store, since: datetime | None = None, until: datetime | None = None) -> pl.DataFrame:
    """One row per stream that stood recommended off in a period (SCHEMA), the one that lost most first; a week unless told otherwise.

    `stood_s` is for how long it stood so, `treated_s` for how long treated traffic went on all the same, with its `requests` and output
    `tokens`. `lost_s` are seconds of request time above control's level, over the `compared_share` of these requests; less than 0 is a
    gain. Times are of events: without `until` up to the newest closed block.
    """
    end = until or store.rows("select max(until) as until from closed_blocks")[0]["until"]
    if end is None:
        return pl.DataFrame(schema=SCHEMA)
    asked = {"since": since or end - DEFAULT_PERIOD, "until": end}
    stands = store.frame(files.question("debt_stands"), asked)
    if stands.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    streams = _streams(stands)
    sums = _sums(store, stands, streams)
    rows = [{**stream, **owed(sums.get(place, ()))._asdict()} for place, stream in enumerate(streams)]
    return pl.DataFrame(rows, schema=SCHEMA).sort(["lost_s", "requests"], descending=True, nulls_last=True)


def owed(rows: Iterable[Mapping[str, Any]]) -> Debt:
    """The debt in rows of `debt_cells`, hour by hour: treated's time against what its tokens and requests take at control's level."""
    hours: dict[datetime, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for row in rows:
        hours.setdefault(row["hour"], {})[row["arm"], row["metric"]] = row
    treated_s = sum(row["busy_s"] or 0.0 for cells in hours.values() for row in cells.values())
    requests = sum(_of(cells, "treated", "requests", "n") for cells in hours.values())
    tokens = [told["num"] for cells in hours.values() if (told := cells.get(("treated", "output_length")))]
    losses = [(_of(cells, "treated", "requests", "n"), lost) for cells in hours.values() if (lost := _lost(cells)) is not None]
    lost_s = sum(lost for _, lost in losses) if losses else None
    compared = sum(n for n, _ in losses) / requests if requests else None
    return Debt(treated_s, round(requests), round(sum(tokens)) if tokens else None, lost_s, compared)


def _lost(cells: Mapping[tuple[str, str], Mapping[str, Any]]) -> float | None:
    """Seconds of one hour; None where control says nothing."""
    told = [
        (mine, other)
        for metric in TIMES
        if (mine := cells.get(("treated", metric))) and (other := cells.get(("control", metric)))
        if other["n"] >= LEAST_REQUESTS and other["den"] > 0
    ]
    return sum(mine["num"] - mine["den"] * other["num"] / other["den"] for mine, other in told) if told else None


def _of(cells: Mapping[tuple[str, str], Mapping[str, Any]], arm: str, metric: str, name: str) -> float:
    row = cells.get((arm, metric))
    return float(row[name]) if row else 0.0


def _streams(stands: pl.DataFrame) -> list[dict[str, Any]]:
    """Each stream once: since when, up to when, for how long in all, and what was advised last."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in stands.iter_rows(named=True):
        key = (row["policy"], row["lever"], row["segment"])
        stream = found.setdefault(key, dict(zip(SCHEMA, (*key, None, None, row["since"], None, 0.0), strict=False)))
        stood_s = stream["stood_s"] + (row["until"] - row["since"]).total_seconds()
        stream |= {"action": row["action"], "severity": row["severity"], "until": row["until"], "stood_s": stood_s}
    return list(found.values())


def _sums(store: Store, stands: pl.DataFrame, streams: Sequence[Mapping[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    places = pl.DataFrame(
        [{**{name: one[name] for name in ("policy", "lever", "segment")}, "place": place} for place, one in enumerate(streams)]
    )
    incoming = stands.join(places, on=["policy", "lever", "segment"]).select("place", "lever", "segment", "since", "until")
    found: dict[int, list[dict[str, Any]]] = {}
    with store.snapshot() as seen:
        seen.using(incoming, "create temp table incoming_stands as select * from incoming")
        frame = seen.frame(files.question("debt_cells"))
    for row in frame.iter_rows(named=True):
        found.setdefault(row["place"], []).append(row)
    return found
