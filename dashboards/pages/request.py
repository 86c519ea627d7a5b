"""The page of one request: its legs over time, every column with where it came from, its spans, beside what is usual in its segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from dashboards import filters, request_columns, request_found, request_spans, templating, theme, waterfall
from dashboards.arriving import newest
from dashboards.choice import Choice, choice, title
from dashboards.figure import Figure, Sql
from dashboards.page import Asked, Page
from dashboards.request_found import Found
from pipeline.segments import JUDGING_KEYS
from queries import files

KINDS = {"slowest": "Slowest", "failed": "Failed", "median": "Nearest to the median"}


def draw(asked: Asked) -> str:
    """The page as HTML. Raises ValueError for an id, time or choice that is none."""
    until = newest(asked.reader, asked.now)
    chosen = choice({**asked.query, "since": asked.query.get("since") or request_found.DEFAULT_SINCE}, until)
    text, at = request_found.looked_up(asked.query, until)
    found = request_found.found(asked.reader, text, at, until) if text else None
    shared = {
        "asked": asked,
        "chosen": chosen,
        "text": text,
        "bar": filters.bar(asked, chosen, levers=(), own=("id", "at")),
        "examples": {} if found else _examples(asked, chosen),
        "examples_sql": Sql(files.question("page_request_examples"), request_found.examples_of(chosen)),
        "where": title(chosen.keys),
        "is_longer": chosen.until - chosen.since > request_found.EXAMPLES_OF,
        "kinds": KINDS,
    }
    if found is None:
        kept = asked.house.ages() if asked.house else {}
        return templating.render("request.html", found=None, kept=_kept(kept), newest=theme.clock(until, asked.now), **shared)
    return templating.render("request.html", found=found, **_told(asked, found), **shared)


def figures(asked: Asked) -> Sequence[Figure]:
    """The legs of the request that the URL names; none where there is no such request."""
    until = newest(asked.reader, asked.now)
    text, at = request_found.looked_up(asked.query, until)
    found = request_found.found(asked.reader, text, at, until) if text else None
    return [replace(waterfall.figure(waterfall.waterfall(found.row, found.spans)), sql=_spans_sql(found), n=1)] if found else []


def _told(asked: Asked, found: Found) -> Mapping[str, Any]:
    row = found.row
    remedies = asked.house.remedies(row["engine"]) if asked.house else {}
    legs = waterfall.waterfall(row, found.spans)
    return {
        "legs": legs,
        "figure": Figure(
            waterfall.KEY, "Legs of the request", "", sql=_spans_sql(found)
        ),  # the page has its own bars; drawn when taken away
        "columns": request_columns.columns(row, found.company, remedies),
        "company_sql": Sql(files.question("page_request_segment"), request_found.company_of(row)),
        "columns_sql": Sql(files.question("page_request"), {"id": row["request_id"] or row["trace_id"], **_around(found)}),
        "spans": request_spans.spans(found.spans),
        "spans_kept": (asked.house.ages().get("spans") if asked.house else "") or "some days",
        "flags": row["flags"] or [],
        "when": theme.clock(row["started_at"], asked.now),
        "segment": title({key: row[key] for key in JUDGING_KEYS}),
        "segment_url": chosen_url(row),
        "others_url": f"request?{urlencode({key: row[key] or '' for key in JUDGING_KEYS})}",
        "others": [{"id": one["request_id"], "url": address(one)} for one in found.others],
    }


def _spans_sql(found: Found) -> Sql:
    params = {"trace_id": found.row["trace_id"], "request_id": found.row["request_id"], **_around(found)}
    return Sql(files.question("page_request_spans"), params)


def _around(found: Found) -> dict[str, Any]:
    row = found.row
    return {"since": row["started_at"] - request_found.AROUND, "until": (row["ended_at"] or row["started_at"]) + request_found.AROUND}


def chosen_url(row: Mapping[str, Any]) -> str:
    """The segment page of a request."""
    return f"segment?{urlencode({key: row[key] or '' for key in JUDGING_KEYS})}"


def address(row: Mapping[str, Any]) -> str:
    """The page of one request."""
    return f"request?{urlencode({'id': row['request_id'] or row['trace_id'], 'at': row['started_at'].isoformat()})}"


def _examples(asked: Asked, chosen: Choice) -> dict[str, list[dict[str, Any]]]:
    """Requests worth a look of the last hour of the choice."""
    params = request_found.examples_of(chosen)
    listed: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for row in asked.reader.frame(files.question("page_request_examples"), params).to_dicts():
        shown = {name: theme.shown(row[name], "s") for name in ("ttft_s", "e2e_s")}
        listed[row["kind"]].append(row | {"url": address(row), "when": theme.clock(row["started_at"], asked.now), "shown": shown})
    return listed


def _kept(ages: Mapping[str, str]) -> str:
    """How long requests and spans stay, in words."""
    said = [f"{name} stay {ages[name] or 'forever'}" for name in ("requests", "spans") if name in ages]
    return ", ".join(said) or "requests and spans stay as long as [retention] says"


PAGE = Page("/request", "Request", None, draw, figures)
