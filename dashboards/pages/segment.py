"""The segment page: whether a lever pays there and why, metrics by arm with intervals, their history, the replicas that serve it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl

from dashboards import doubts, filters, flips, segment_charts, segment_shown, segment_table, standing, templating, theme, unjudged
from dashboards.arriving import arriving
from dashboards.charts import Period
from dashboards.choice import choice
from dashboards.figure import Figure, Sql
from dashboards.page import Asked, Page
from dashboards.pages.overview import period_words
from dashboards.reader import Reader
from dashboards.segment_shown import Shown
from dashboards.segment_table import Line
from pipeline.segments import JUDGING_KEYS, canonical
from queries import files

REPLICAS_OF = timedelta(hours=2)
REQUESTS_SQL = """select started_at, request_id, replica, outcome, prompt_tokens, cached_tokens, output_tokens, ttft_s, tpot_s, e2e_s, arms
from requests
where started_at >= $since::timestamptz and started_at < $until::timestamptz{}
order by started_at desc
limit 200"""


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a choice that is none."""
    reader, now = asked.reader, asked.now
    arrives = arriving(reader, now)
    chosen = choice(asked.query, arrives.until)
    here = segment_shown.shown(reader, chosen, now)
    turned = flips.newest(reader, now, here.lever, here.segment)
    drawn, is_any_temperature = _figures(reader, here, [flip.decided_at for flip in turned])
    lines = _lines(reader, here, now)
    return templating.render(
        "segment.html",
        asked=asked,
        bar=filters.bar(asked, chosen),
        arriving=arrives,
        here=here,
        chosen=here.choice,
        period=period_words(arrives, chosen, now),
        length=theme.age((chosen.until - chosen.since).total_seconds()),
        judged=next((line.window for line in lines if line.window), ""),
        lever=standing.words(here.lever),
        waits=None if here.stream else _waits(reader, here),
        shows_after=unjudged.SHOWS_AFTER,
        why=turned[0] if turned else None,
        lines=lines,
        is_any_temperature=is_any_temperature,
        figures=asked.drawn(drawn),
        replicas=_replicas(reader, here),
        replicas_sql=Sql(files.question("page_replicas"), _of_replicas(here)),
        requests_sql=_requests_sql(here),
        doubts=doubts.told(reader, chosen.since, chosen.until),
        flips=turned,
        link=lambda stream: here.choice.url(keys=dict(stream.keys), lever=stream.lever),
    )


def figures(asked: Asked) -> Sequence[Figure]:
    """The page's charts."""
    chosen = choice(asked.query, arriving(asked.reader, asked.now).until)
    here = segment_shown.shown(asked.reader, chosen, asked.now)
    turned = flips.newest(asked.reader, asked.now, here.lever, here.segment)
    return _figures(asked.reader, here, [flip.decided_at for flip in turned])[0]


def _figures(reader: Reader, here: Shown, turned: Sequence[datetime]) -> tuple[list[Figure], bool]:
    """The charts, none where no request began and nothing was compared; and whether requests are of any temperature."""
    chosen, benefit = here.choice, here.stream.benefit if here.stream else "net_itl_s"
    buckets, asked, is_any = segment_shown.history(reader, here)
    wanted = here.effects(benefit)
    effects = reader.frame(files.question("page_effects"), wanted).to_dicts()
    if not buckets and not effects:
        return [], is_any
    marks = [at for at in turned if chosen.since <= at <= chosen.until]
    width, period = timedelta(seconds=chosen.width_s), Period(chosen.since, chosen.until)
    turned_at = effects[-1]["turned_at"] if effects and here.stream and here.stream.stopped else None
    drawn = segment_charts.figures(buckets, effects, marks, width, period, here.lever, benefit, turned_at)
    questions = {"gain": Sql(files.question("page_effects"), wanted)}
    cells = Sql(files.question("page_buckets"), asked)
    return [replace(figure, sql=questions.get(figure.key, cells)) for figure in drawn], is_any


def _lines(reader: Reader, here: Shown, now: datetime) -> list[Line]:
    """The table's lines; the cost in money where there is a price of the hardware."""
    until = here.choice.judged_until
    asked = {"lever": here.lever, "segment": here.segment, "since": until - standing.NOW_IS, "until": until}
    effects = reader.frame(files.question("page_effects_now"), asked)
    arms = segment_shown.arms(reader, here, segment_table.METRICS)
    whole = segment_shown.everything(reader, here, segment_table.METRICS)
    lines = segment_table.lines(whole, arms, {row["metric"]: row for row in effects.iter_rows(named=True)}, now)
    hardware = {"hardware": here.choice.keys.get("hardware"), "until": here.choice.until}
    prices = reader.frame(files.question("page_price"), hardware) if hardware["hardware"] else pl.DataFrame()
    return [*lines, segment_table.priced(lines[-1], prices.item())] if len(prices) else lines


def _waits(reader: Reader, here: Shown) -> str:
    """What a segment without a verdict waits for."""
    segment = canonical({key: here.choice.keys.get(key) or None for key in JUDGING_KEYS})
    return unjudged.whys(reader, [segment], here.choice.since, here.choice.until, here.lever)[segment].text


def _replicas(reader: Reader, here: Shown) -> list[dict[str, object]]:
    """The replicas of the newest two hours by arm; those of all requests where no arm is marked."""
    rows = reader.frame(files.question("page_replicas"), _of_replicas(here)).to_dicts()
    return [row for row in rows if row["arm"] is not None] or rows


def _of_replicas(here: Shown) -> dict[str, object]:
    return {**here.asked, "since": max(here.choice.since, here.choice.until - REPLICAS_OF)}


def _requests_sql(here: Shown) -> Sql:
    """The newest requests of the segment, to be looked at one by one."""
    keys = here.choice.keys
    wanted = [f"\n    and {key} = ${key}" if value else f"\n    and {key} is null" for key, value in keys.items()]
    params = {key: value for key, value in keys.items() if value}
    recent = max(here.choice.since, here.choice.until - REPLICAS_OF)
    return Sql(REQUESTS_SQL.format("".join(wanted)), {"since": recent, "until": here.choice.until, **params})


PAGE = Page("/segment", "Segment", 20, draw, figures)
