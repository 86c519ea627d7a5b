"""The routes around judging: what is to be judged again, whether switches helped, budget ledgers and lever debt, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from alerts import after_check, api_answers, debt, ledger, revalidation
from alerts.api_answers import Lever, Limit, Since, Until
from alerts.chain import Policy
from alerts.levers import LEVERS, unknown
from alerts.shown import shown
from pipeline.segments import canonical
from queries.report import moment
from queries.results import COLUMNS_HEADER
from queries.store import Store

MOST_SEGMENTS = 10  # that an error lists
Segment = Annotated[str, Query(description='keys of segments as JSON, such as {"model":"m"}: all that have them; {} is every one')]
Everything = Annotated[bool, Query(alias="all", description="also those that have been judged since")]


def router(store: Store, clock: Callable[[], datetime], policies: Sequence[Policy]) -> APIRouter:
    """`GET /api/revalidations`, `/api/after-checks`, `/api/budgets` and `/api/debt`."""
    routes = APIRouter(tags=["alerts"])

    @routes.get("/api/revalidations")
    def revalidations(lever: Lever = None, everything: Everything = False, limit: Limit = 1000) -> Any:
        """What is to be judged again since another lever that shares a budget was set otherwise, newest first."""
        return _answer(lambda: revalidation.listed(store, _known(lever), everything=everything, limit_rows=limit))

    @routes.get("/api/after-checks")
    def after_checks(lever: Lever = None, limit: Limit = 1000) -> Any:
        """Whether switching a lever helped, newest first: an hour after against an hour before. Shown, never acted on."""
        return _answer(lambda: after_check.listed(store, _known(lever), limit))

    @routes.get("/api/budgets")
    def budgets(lever: Lever = None, segment: Segment = "{}", until: Until = None, limit: Limit = 100) -> Any:
        """Per policy of a lever and segment with these keys its budget ledger: what was saved, which budget grew, what nothing explains."""
        try:
            asked, keys = _known(lever), _keys(segment)
            end = moment(until, clock()) if until else store.rows("select max(until) as until from effects")[0]["until"] or clock()
        except ValueError as wrong:
            return api_answers.error("invalid", str(wrong))
        if asked is None:
            return api_answers.error("invalid", "no lever came", "add ?lever=speculation")
        known = ledger.segments(store, asked, end)
        of = [one for one in known if keys.items() <= json.loads(one).items()][:limit]
        if not of:
            return _no_segment(asked, keys, known)
        pairs = [(policy, one) for one in of for policy in policies if policy.lever == asked]
        found = ledger.read_all(store, [(policy, one, end) for policy, one in pairs])
        told = zip(pairs, found, strict=True)
        return [shown({"policy": policy.name, "lever": asked, "segment": one, "until": end, **got.plain()}) for (policy, one), got in told]

    @routes.get("/api/debt")
    def lever_debt(since: Since = None, until: Until = None) -> Any:
        """Per stream what went on while it was recommended off: for how long, on how many requests and tokens, and the seconds lost."""
        now = clock()
        return _answer(lambda: debt.debt(store, moment(since, now) if since else None, moment(until, now) if until else None))

    return routes


def _answer(ask: Callable[[], pl.DataFrame]) -> Any:
    """One object a row; an answer without rows names its columns in a header."""
    try:
        frame = ask()
    except ValueError as wrong:
        return api_answers.error("invalid", str(wrong))
    rows = [_objects(shown(row)) for row in frame.iter_rows(named=True)]
    return JSONResponse(rows, headers=None if rows else {COLUMNS_HEADER: json.dumps(frame.columns)})


def _objects(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "scope": json.loads(row["scope"])} if "scope" in row else row


def _known(lever: str | None) -> str | None:
    if lever is not None and lever not in LEVERS:
        raise ValueError(unknown("lever", lever, LEVERS))
    return lever


def _no_segment(lever: str, keys: dict[str, str], known: Sequence[str]) -> JSONResponse:
    """That no segment of a lever has these keys, with those that there are."""
    if not known:
        msg = f"{lever} has no measured traffic in the two hours before that moment"
        return api_answers.error("segment_not_found", msg, "GET /api/verdicts lists what is judged", status=404)
    shown_ones = ", ".join(known[:MOST_SEGMENTS]) + (f" and {len(known) - MOST_SEGMENTS} more" if len(known) > MOST_SEGMENTS else "")
    return api_answers.error("segment_not_found", f"no segment of {lever} has {canonical(keys)}", f"known: {shown_ones}", status=404)


def _keys(segment: str) -> dict[str, str]:
    """The keys of a segment. Raises ValueError where it is no object of texts."""
    try:
        keys = json.loads(segment)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, dict) or not all(isinstance(value, str) for value in keys.values()):
        msg = f'segment {segment[:80]!r}: an object of keys and texts is taken, such as {{"model":"m"}}'
        raise ValueError(msg)
    return keys
