"""The fleet page: what each replica is, what it carries beside its peers, who stands out of these, and one metric of each over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import polars as pl

from dashboards import filters, fleet_history, fleet_rows, fleet_spread, templating, theme
from dashboards.arriving import newest
from dashboards.choice import Choice, choice
from dashboards.figure import Figure, Sql
from dashboards.fleet_peers import POOL
from dashboards.fleet_rows import Replica
from dashboards.page import Asked, Page
from dashboards.pages.overview import narrowed
from dashboards.reader import Reader
from pipeline.metrics import by_name
from pipeline.segments import JUDGING_KEYS
from queries import files

NOW_IS, SAMPLES_OF = timedelta(minutes=10), timedelta(minutes=5)
FRESH = timedelta(minutes=15)
SHOWN = 60


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for a choice that is none."""
    reader, now = asked.reader, asked.now
    chosen = choice(asked.query, newest(reader, now))
    listed = _replicas(reader, chosen)
    shown = listed[:SHOWN]
    told = _history(reader, chosen, shown, asked)
    groups = {id(one.group): one.group for one in listed if one.group}.values()
    impossible = files.question("page_fleet_impossible")
    period = {"since": chosen.since, "until": chosen.until}
    return templating.render(
        "fleet.html",
        asked=asked,
        bar=filters.bar(asked, chosen, JUDGING_KEYS, levers=(), own=("replica",)),
        chosen=chosen,
        period=theme.between(chosen.since, chosen.until, now),
        odd=[one for one in shown if one.odd],
        replicas=shown,
        total=len(listed),
        pools=fleet_spread.pools(groups),
        spreads=[by_name()[name].title for name in fleet_spread.SPREADS],
        alone=sum(not one.group.peers for one in listed if one.group),
        columns=_titles(fleet_rows.COLUMNS),
        linked=[one for one in shown if any(value.value is not None for value in one.link)],
        link_columns=_titles(fleet_rows.LINK),
        impossible=_named(reader.frame(impossible, period), {one.name for one in listed}),
        impossible_sql=Sql(impossible, period),
        now_sql=Sql(files.question("page_fleet_now"), _now(chosen)),
        figure=asked.drawn([fleet_history.figure(told, _names(shown, asked))])[0],
        sparks={one.name: fleet_history.spark(told, one.name) for one in shown},
        metric=told.metric,
        metrics=fleet_history.choices(chosen),
        replica=asked.query.get("replica", ""),
        hidden=[(name, value) for name, value in chosen.query.items() if name != "metric"],
        link_missing=by_name()["interconnect_efficiency"].missing or "no engine says it",
        minutes=theme.age(NOW_IS.total_seconds()),
    )


def figures(asked: Asked) -> Sequence[Figure]:
    """The page's chart."""
    chosen = choice(asked.query, newest(asked.reader, asked.now))
    shown = _replicas(asked.reader, chosen)[:SHOWN]
    return [fleet_history.figure(_history(asked.reader, chosen, shown, asked), _names(shown, asked))]


def _replicas(reader: Reader, chosen: Choice) -> list[Replica]:
    by = ("replica", *POOL)
    report, by_prompt = _report(reader, chosen, by, fleet_rows.METRICS), _report(reader, chosen, (*by, "input_bucket"), ())
    now = reader.frame(files.question("page_fleet_now"), _now(chosen))
    return fleet_rows.replicas(report.to_dicts(), by_prompt.to_dicts(), now.to_dicts(), chosen)


def _report(reader: Reader, chosen: Choice, by: Sequence[str], metrics: Sequence[str]) -> pl.DataFrame:
    """The report of the choice from cells; where nothing is in them yet, of the newest minutes from requests."""
    by = (*by, *(key for key in JUDGING_KEYS if key in chosen.keys and key not in by))
    found = reader.report(by=by, metrics=metrics, since=chosen.since, until=chosen.until, source="cells")
    if not len(found):
        since = max(chosen.since, chosen.until - FRESH)
        found = reader.report(by=by, metrics=metrics, since=since, until=chosen.until, source="requests")
    return narrowed(found, chosen)


def _now(chosen: Choice) -> dict[str, Any]:
    until = chosen.until
    return {"since": max(chosen.since, until - NOW_IS), "samples_since": max(chosen.since, until - SAMPLES_OF), "until": until}


def _history(reader: Reader, chosen: Choice, shown: Sequence[Replica], asked: Asked) -> fleet_history.History:
    wanted = asked.query.get("replica")
    return fleet_history.history(reader, chosen, [*([wanted] if wanted else []), *(one.name for one in shown)])


def _names(shown: Sequence[Replica], asked: Asked) -> list[str]:
    """The replicas in the order in which the chart takes them: the one that was asked for, then as the table has them."""
    wanted = asked.query.get("replica")
    return list(dict.fromkeys([*([wanted] if wanted else []), *(one.name for one in shown)]))


def _titles(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [by_name()[name].title + (", p95" if column.endswith("_p95") else "") for name, column in pairs]


def _named(frame: pl.DataFrame, names: set[str]) -> list[dict[str, Any]]:
    return [row for row in frame.to_dicts() if row["replica"] in names][:20]


PAGE = Page("/fleet", "Fleet", 60, draw, figures)
