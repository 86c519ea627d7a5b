"""A report's question in, the statement over cells that answers it out, where it is one for cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pipeline.metrics import Metric
from queries import cells_plan, cells_report, files
from queries.report import Question, ReportError
from queries.store import Store

SOURCES = ("auto", "requests", "cells")
MANY_ROWS = 20_000_000  # requests that a report over rows takes seconds for


def from_cells(
    store: Store,
    source: str,
    metrics: Sequence[Metric],
    by: Sequence[str],
    since: datetime | None,
    until: datetime | None,
    where: str | None,
    *,
    has_tenant: bool = False,
) -> Question | None:
    """The statement over cells; None where requests are to be read.

    `auto` takes cells where they have what is asked for and the period reaches back to requests that are gone, or holds very many of them.

    Raises:
        ReportError: no such source, or cells were asked for and do not have it.
    """
    if source not in SOURCES:
        msg = f"from {source!r} is unknown; known: {', '.join(SOURCES)}"
        raise ReportError(msg)
    why = "a condition needs the requests: cells take no `where`" if where else cells_report.refusal(metrics, by)
    if "tenant" in by and not has_tenant and not why:
        why = "key 'tenant' is in cells where [segments] judge_by_tenant is set"
    if why and source == "cells":
        raise ReportError(why)
    if why or source == "requests" or (source == "auto" and not _is_long(store, by, since, until)):
        return None
    by_replica = cells_report.is_by_replica(metrics, by)
    return cells_report.report(metrics, by, cells_plan.plan(held(store), since, until, cells_report.time_of(by), by_replica=by_replica))


def held(store: Store) -> cells_plan.Held:
    """Which hours, days and weeks were summed up, and from when on blocks and hours are there."""
    periods = store.rows(files.question("cell_periods"))
    found = {(row["tier"], row["is_open"]): row["begins"] for row in periods}
    gone = {row["relation"]: row["until"] for row in store.rows(files.question("cell_dropped"))}
    return cells_plan.Held(
        found.get(("hour", False), []),
        found.get(("hour", True), []),
        found.get(("day", False), []),
        found.get(("week", False), []),
        gone.get("block_cells"),
        gone.get("hour_cells"),
    )


def _is_long(store: Store, by: Sequence[str], since: datetime | None, until: datetime | None) -> bool:
    """Whether requests do not answer, or slowly. Under `arm.<lever>` they do answer otherwise: an arm is then what was marked as one."""
    if any(name.startswith("arm.") for name in by):
        return False
    found = store.rows(files.question("cell_or_requests"), {"since": since, "until": until})[0]
    return bool(found["is_gone"] or found["held"] > MANY_ROWS)
