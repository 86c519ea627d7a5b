"""The page of data health: what became of everything that was sent, what is known of it, how new it is, and what is not as it should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from dashboards import health_coverage, health_problems, health_rows, templating, theme
from dashboards.arriving import is_loading
from dashboards.figure import Sql
from dashboards.page import Asked, Page
from queries import files

EXAMPLES = 3
SHOWN_SUSPICIONS = 30
FIRST_WRONG = 3
Told = Mapping[str, Any]


class NoServerError(ValueError):
    """The page was asked of what does not run as a server: nothing is known of its health."""


def draw(asked: Asked) -> str:
    """The page as HTML. Raises NoServerError."""
    if asked.house is None:
        msg = "data health is known of a running server alone: start leverwatch serve"
        raise NoServerError(msg)
    made_at, told = asked.house.diagnosis()
    stored_at, storage = asked.house.storage()
    state, now = asked.house.state(), asked.now
    newest_at = health_problems.moment(told["freshness"]["newest_event_at"])
    dialects = health_coverage.dialects(told)
    wrong = health_problems.problems(told, state, storage, dialects, newest_at, now)
    period = {"since": health_problems.moment(told["since"]), "until": health_problems.moment(told["until"])}
    aside = files.question("page_health_quarantine")
    examples = asked.reader.frame(aside, {**period, "examples": EXAMPLES}).to_dicts()
    return templating.render(
        "health.html",
        asked=asked,
        wrong=wrong[: health_problems.MOST_LISTED],
        wrong_n=len(wrong),
        worst=wrong[0].css if wrong else "good",
        told=told,
        made=f"{made_at:%H:%M:%S} UTC",
        stored=f"{stored_at:%H:%M:%S} UTC",
        is_loading=is_loading(newest_at, health_problems.seen_at(told), now),
        newest=theme.age((now - newest_at).total_seconds()) if newest_at else "no data",
        ledger=_halves(health_rows.ledger(told["ledger"]), _is_lost),
        sums=health_rows.sums(told["ledger"]),
        senders=_halves(health_rows.senders(told["senders"], now), lambda row: bool(row["said"])),
        scrapes=_halves(health_rows.scrapes(told["scrapes"], now), lambda row: bool(row["is_failing"])),
        suspicions=_halves(told["suspicions"][:SHOWN_SUSPICIONS], lambda row: row["severity"] != "noted"),
        sampling=_halves(told["sampling"], lambda row: row["state"] != "whole"),
        dialects=dialects,
        quarantine=health_rows.quarantine(told["quarantine"], examples, now),
        examples_sql=Sql(aside, {**period, "examples": EXAMPLES}),
        ledger_sql=Sql(files.question("page_health_ledger")),
        holdings=health_rows.holdings(storage["holdings"], asked.house.ages(), now),
        dropped=health_rows.dropped(storage["dropped"], now),
        storage=storage,
        state=state,
        deploys=_deploys(asked, now),
    )


def _is_lost(row: Told) -> bool:
    """Whether a row of the ledger needs a look; of scrapes that failed their target tells, in another table."""
    return bool(row["gap"] or (row["signal"] != "scrapes" and (row["rejected"] or row["dropped"])))


def _halves(rows: Sequence[Told], is_wrong: Callable[[Told], bool]) -> dict[str, Sequence[Told]]:
    """The rows, of those that need a look the first and the others, and those that need none: on a phone all but the first are folded."""
    wrong, fine = [row for row in rows if is_wrong(row)], [row for row in rows if not is_wrong(row)]
    return {"all": rows, "wrong": wrong[:FIRST_WRONG], "more": wrong[FIRST_WRONG:], "fine": fine}


def _deploys(asked: Asked, now: datetime) -> list[dict[str, Any]]:
    rows = asked.reader.frame(files.question("page_health_deploys")).to_dicts()
    return [row | {"when": theme.clock(row["since"], now)} for row in rows]


PAGE = Page("/health", "Data health", 70, draw)
