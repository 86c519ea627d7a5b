"""Requests by segment and where streams stand in, the overview's rows out: a segment each, a cell per lever, the most urgent first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from dashboards import standing
from dashboards.choice import Choice, details
from dashboards.standing import Stream
from pipeline.segments import JUDGING_KEYS, LEVERS, TOPOLOGY_LEVERS, canonical

PAGE_ROWS = 50
_BROAD_KEYS = [key for key in JUDGING_KEYS if key != "topology"]


@dataclass(frozen=True)
class Cell:
    """A lever in a segment: its worst stream, how many more there are (by temperature, by policy), and where it is shown whole."""

    stream: Stream
    more: int
    url: str


@dataclass(frozen=True)
class Row:
    """One segment, the requests of the period, and what each lever's verdict is."""

    keys: dict[str, str | None]
    requests: int
    url: str
    cells: Mapping[str, Cell]
    css: str = "quiet"
    waits: str = ""

    @property
    def name(self) -> str:
        """The model."""
        return self.keys.get("model") or "model unknown"

    @property
    def details(self) -> list[str]:
        """The other keys that are known, in words."""
        return details(self.keys)


@dataclass(frozen=True)
class Matrix:
    """The rows of one page, the levers that have a column, how many rows there are in all, and the segments that no policy has judged."""

    levers: list[str]
    total: int
    places: pl.DataFrame = field(repr=False)
    placed: pl.DataFrame = field(repr=False)

    @property
    def unjudged(self) -> list[str]:
        """The segments without a stream, as canonical text."""
        alone = self.places.filter(pl.col("urgency").is_null() & (pl.col("requests") > 0))
        return [canonical({key: row[key] for key in JUDGING_KEYS}) for row in alone.iter_rows(named=True)]

    def rows(self, after: int, chosen: Choice, now: datetime, waits: Mapping[str, str]) -> list[Row]:
        """The rows from one on; `waits` says what those without a stream wait for."""
        page = self.places.slice(after, PAGE_ROWS)
        placed: dict[int, list[dict[str, Any]]] = {}
        for told in self.placed.join(page.select("place"), on="place", how="semi").iter_rows(named=True):
            placed.setdefault(told["place"], []).append(told)
        return [_row(row, placed.get(row["place"], []), chosen, now, waits) for row in page.iter_rows(named=True)]


def matrix(traffic: pl.DataFrame, streams: pl.DataFrame) -> Matrix:
    """Places each stream in its segment's row. A lever that changes the topology stands in the row of every topology."""
    ranked = streams.with_columns(standing.urgency())
    is_broad = pl.col("lever").is_in(TOPOLOGY_LEVERS)
    fine, broad = ranked.filter(~is_broad), ranked.filter(is_broad)
    seen = traffic.select(*(pl.col(key).cast(pl.String) for key in JUDGING_KEYS), pl.col("requests").cast(pl.Int64))
    known = pl.concat([seen, fine.select(*JUDGING_KEYS, pl.lit(0, pl.Int64).alias("requests"))])
    alone = broad.join(known, on=_BROAD_KEYS, how="anti", nulls_equal=True).with_columns(pl.lit(None, pl.String).alias("topology"))
    known = pl.concat([known, alone.select(*JUDGING_KEYS, pl.lit(0, pl.Int64).alias("requests"))])
    places = known.group_by(JUDGING_KEYS).agg(pl.col("requests").sum()).sort("requests", *JUDGING_KEYS).with_row_index("place")
    keyed = places.select("place", *JUDGING_KEYS)
    placed = pl.concat(
        [
            fine.join(keyed, on=list(JUDGING_KEYS), nulls_equal=True),
            broad.drop("topology").join(keyed, on=_BROAD_KEYS, nulls_equal=True).select(*fine.columns, "place"),
        ]
    )
    worst = placed.group_by("place").agg(pl.col("urgency").min())
    places = places.join(worst, on="place", how="left").sort(pl.col("urgency").fill_null(3), -pl.col("requests"), *JUDGING_KEYS)
    found = set(streams["lever"].unique())
    return Matrix([lever for lever in LEVERS if lever in found], len(places), places, placed)


def _row(row: Mapping[str, Any], placed: Sequence[Mapping[str, Any]], chosen: Choice, now: datetime, waits: Mapping[str, str]) -> Row:
    keys = {key: row[key] for key in JUDGING_KEYS}
    by_lever: dict[str, list[Mapping[str, Any]]] = {}
    for told in sorted(placed, key=lambda told: (told["shadow"], told["urgency"], _gain_of(told))):
        by_lever.setdefault(told["lever"], []).append(told)
    cells = {lever: _cell(listed, chosen, now) for lever, listed in by_lever.items()}
    css = {0: "bad", 1: "warn", 2: "warn"}.get(row["urgency"], "")
    said = waits.get(canonical(keys), "") if not cells else ""
    return Row(keys, row["requests"], chosen.url(keys=keys, lever=None), cells, css or ("good" if _pays(cells) else "quiet"), said)


def _cell(listed: Sequence[Mapping[str, Any]], chosen: Choice, now: datetime) -> Cell:
    first = standing.stream(listed[0], now)
    return Cell(first, len(listed) - 1, chosen.url(keys=dict(first.keys), lever=first.lever))


def _pays(cells: Mapping[str, Cell]) -> bool:
    return any(cell.stream.verdict.name == "keep" and not cell.stream.is_shadow for cell in cells.values())


def _gain_of(told: Mapping[str, Any]) -> float:
    return 9.0 if told["gain"] is None else float(told["gain"])
