"""The first page: levers by segments with the verdict in each cell, what changed since yesterday, and what arrives."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce

import polars as pl

from dashboards import changes, doubts, filters, flips, matrix, standing, templating, theme, unjudged
from dashboards.arriving import Arriving, arriving
from dashboards.changes import DAY
from dashboards.choice import Choice, ChoiceError, choice
from dashboards.headline import headline
from dashboards.matrix import PAGE_ROWS
from dashboards.page import Asked, Page
from dashboards.reader import Reader
from pipeline.segments import JUDGING_KEYS, LEVERS, TOPOLOGY_LEVERS

RECENT = timedelta(minutes=15)


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a choice that is none."""
    reader, now = asked.reader, asked.now
    here = arriving(reader, now)
    chosen, after = choice(asked.query, here.until), _after(asked)
    yesterday, today = (narrowed(_report(reader, at - DAY, at), chosen) for at in (here.until - DAY, here.until))
    is_day = chosen.until - chosen.since == DAY and chosen.until == here.until
    traffic = today if is_day else narrowed(_report(reader, chosen.since, chosen.until, ()), chosen)
    streams = narrowed(standing.standing(reader, chosen.judged_until, chosen.lever), chosen)
    placed = matrix.matrix(traffic if len(traffic) else narrowed(_fresh(reader, chosen), chosen), streams)
    whys = unjudged.whys(reader, placed.unjudged, chosen.since, chosen.until) if placed.unjudged else {}
    rows = placed.rows(after, chosen, now, {segment: why.text for segment, why in whys.items()})
    return templating.render(
        "overview.html",
        asked=asked,
        bar=filters.bar(asked, chosen, JUDGING_KEYS),
        chosen=chosen,
        arriving=here,
        headline=headline(streams, [why.short for why in whys.values()], now),
        link=lambda stream: chosen.url(keys=dict(stream.keys), lever=stream.lever),
        rows=rows,
        levers=[(lever, standing.words(lever), chosen.url("lever", lever=lever)) for lever in placed.levers],
        silent=[standing.words(lever) for lever in LEVERS if lever not in placed.levers] if chosen.lever is None else [],
        pages=_pages(chosen, after, placed.total),
        total=placed.total,
        after=after,
        period=period_words(here, chosen, now),
        shows_after=unjudged.SHOWS_AFTER,
        doubts=doubts.told(reader, chosen.since, chosen.until),
        changes=changes.changes(today, yesterday, chosen, here.until),
        flips=flips.newest(reader, now, since=here.until - DAY),
    )


def narrowed(frame: pl.DataFrame, chosen: Choice) -> pl.DataFrame:
    """The rows of the chosen keys; those of levers that change the topology are there for any topology."""
    told = [(key, value) for key, value in chosen.keys.items() if key in frame.columns]
    wanted = [pl.col(key).is_null() if value == "" else pl.col(key) == value for key, value in told]
    if "lever" in frame.columns:
        any_topology = pl.col("lever").is_in(TOPOLOGY_LEVERS)
        wanted = [one | any_topology if key == "topology" else one for (key, _), one in zip(told, wanted, strict=True)]
    return frame.filter(reduce(lambda one, other: one & other, wanted)) if wanted else frame


def period_words(here: Arriving, chosen: Choice, now: datetime) -> str:
    """A period in words; it ends at the newest data, which may be long ago."""
    return theme.between(chosen.since, chosen.until, now) + (
        ", where the newest data ends" if here.css in ("bad", "quiet") and chosen.until == here.until else ""
    )


def _report(reader: Reader, since: datetime, until: datetime, metrics: Sequence[str] = changes.COVERED) -> pl.DataFrame:
    return reader.report(by=JUDGING_KEYS, metrics=metrics, since=since, until=until, source="cells")


def _fresh(reader: Reader, chosen: Choice) -> pl.DataFrame:
    """The requests of the newest minutes, which are in no cell yet."""
    since = max(chosen.since, chosen.until - RECENT)
    return reader.report(by=JUDGING_KEYS, metrics=(), since=since, until=chosen.until, source="requests")


def _after(asked: Asked) -> int:
    text = asked.query.get("after") or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > 6:
        msg = f"after {text[:20]!r}: the number of rows to pass over is taken, such as {PAGE_ROWS}"
        raise ChoiceError(msg)
    return int(text)


def _pages(chosen: Choice, after: int, total: int) -> list[tuple[str, str]]:
    """Links to the rows before and after those shown."""
    steps = [("before", after - PAGE_ROWS, after > 0), ("next", after + PAGE_ROWS, after + PAGE_ROWS < total)]
    return [(words, chosen.url("/", after=str(max(0, at)))) for words, at, is_there in steps if is_there]


PAGE = Page("/", "Overview", 10, draw)
