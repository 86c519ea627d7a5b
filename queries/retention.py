"""Rules and a moment in; rows too old or too many out of the store, oldest first, each drop written down in `retention_log`.

Age counts from when a row happened or was stored, whichever is later: history that is loaded today stays as long as what happened today.
Where no one knows when a row was stored, it counts back from the newest row of its table. Hot rows of a sealed relation are sealed first.
A round is one transaction and bounded: so many part files, or one hour or day of a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queries import files, sealing
from queries.parts import SEALED
from queries.store import Store, Transaction

PARTS_A_ROUND = 24
SPANS_STAY = timedelta(hours=24)  # a span that is sent again within it is told from a new one
REQUESTS_STAY = timedelta(days=7)  # what little free space takes no part of
LARGE_ROWS = 1_000_000
BLOCK_BYTES = 262_144


@dataclass(frozen=True, slots=True)
class Rule:
    """How long a relation's rows stay, and how many bytes of them; None is no bound. Younger than `stays` none goes for its size."""

    relation: str
    max_age: timedelta | None = None
    max_bytes: int | None = None
    stays: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    time: str
    stored: str | None = None  # the column that says when a row was stored, where there is one
    only: str = "true"  # which rows may go at all


_SUMMED_UP = "date_trunc('{0}', started_at) in (select started_at from cell_periods where tier = '{0}' and state <> 'open')"

# What goes with a relation, in this order: an effect without its cells is history, cells without it would be compared again.
TABLES: dict[str, tuple[_Table, ...]] = {
    "spans": (_Table("spans_hot", "started_at", "received_at"),),
    "samples": (_Table("samples_hot", "observed_at", "received_at"),),
    "requests": (
        _Table("requests_hot", "started_at"),
        _Table("imported_requests", "started_at", "received_at"),
        _Table("suspicions", "until", "suspected_at"),
    ),
    "block_cells": tuple(_Table(name, "started_at", only=_SUMMED_UP.format("hour")) for name in ("block_cells", "block_histograms")),
    "hour_cells": tuple(_Table(name, "started_at", only=_SUMMED_UP.format("day")) for name in ("hour_cells", "hour_histograms")),
    "cells": (
        *(_Table(f"{tier}_{kind}", "started_at") for tier in ("day", "fleet", "week") for kind in ("cells", "histograms")),
        _Table("effects", "until"),
        _Table("uncontrolled_effects", "measured_at"),
        _Table("uncontrolled_hours", "measured_at"),
        _Table("break_even", "until"),
        _Table("break_even_kept", "until"),
        _Table("closed_blocks", "until"),
        _Table("sampling", "window_started_at"),
    ),
    "evaluations": (_Table("evaluations", "evaluated_at", "received_at"),),
    "verdicts": (_Table("verdicts", "decided_at"),),
    "flips": (
        _Table("flips", "decided_at"),
        _Table("after_checks", "switched_at"),
        _Table("revalidations", "changed_at", only="done_at is not null"),
    ),
    "deliveries": (_Table("deliveries", "started_at"),),
}


def drop_next(store: Store, rule: Rule, now: datetime, *, is_short: bool = False) -> int:
    """Drops the oldest of what a relation holds too much of; gives how many rows, 0 when nothing is to go.

    `is_short` says that the disk is nearly full: sealed rows then go, down to what `stays`.
    """
    tables, dropped = TABLES[rule.relation], 0
    if rule.relation in SEALED:  # its hot rows, the first of its tables, go once they are sealed
        tables, dropped = tables[1:], _drop_parts(store, rule, now, is_short)
    for table in tables:
        dropped = dropped or _drop_old(store, table, rule, now)
    return dropped


def leave_settled(store: Store) -> int:
    """Takes off what waits for assembly the late spans whose request was made of spans that are gone; gives how many traces."""
    found = store.rows("select min(since) as since, max(until) as until from dirty_traces")[0]
    return _leave(store, "spans", found, "retention_settled", {})


def _leave(store: Store, relation: str, period: dict[str, Any], question: str, params: dict[str, Any]) -> int:
    if period["since"] is None or not store.rows(files.question("retention_touched"), period | {"relation": relation})[0]["was_dropped"]:
        return 0
    with store.write() as transaction:
        return transaction.execute(files.question(question), params)


def _drop_parts(store: Store, rule: Rule, now: datetime, is_short: bool) -> int:
    parts = store.rows('select * from parts where relation = $relation order by since, "file"', {"relation": rule.relation})
    chosen, reason = list(_aged(store, rule, parts, now)), "age"
    if not chosen:
        movable = list(_older(store, parts, now - rule.stays))
        chosen, reason = list(_beyond(movable, sum(part["bytes"] for part in parts), rule.max_bytes)), "size"
        if not chosen and is_short:
            chosen, reason = [part for part in movable if _is_alone(store, part)][:1], "disk"
    if not chosen:
        return 0
    chosen = chosen[:PARTS_A_ROUND]
    with store.write() as transaction:
        sealing.unlist(store, transaction, rule.relation, [part["file"] for part in chosen])
        if rule.relation == "requests":
            span = {"since": min(part["since"] for part in chosen), "until": max(part["until"] for part in chosen)}
            transaction.execute("delete from quarantine where started_at >= $since and started_at < $until", span)
        for part in chosen:
            _note(transaction, rule.relation, part["since"], part["until"], part["rows"], part["bytes"], reason, now)
    return sum(part["rows"] for part in chosen)


def _aged(store: Store, rule: Rule, parts: list[dict[str, Any]], now: datetime) -> Iterable[dict[str, Any]]:
    return _older(store, parts, now - rule.max_age) if rule.max_age else ()


def _older(store: Store, parts: list[dict[str, Any]], before: datetime) -> Iterable[dict[str, Any]]:
    """The parts whose rows all happened, and were sealed, before a moment."""
    for part in parts:
        if part["until"] > before:
            return
        if _stat(store, part).st_mtime < before.timestamp():
            yield part


def _beyond(movable: list[dict[str, Any]], total_bytes: int, max_bytes: int | None) -> Iterable[dict[str, Any]]:
    """The oldest parts, as many as bring the total down to the bound."""
    for part in movable:
        if not max_bytes or total_bytes <= max_bytes:
            return
        total_bytes -= part["bytes"]
        yield part


def _is_alone(store: Store, part: dict[str, Any]) -> bool:
    """Whether deleting the file frees anything: a snapshot beside it may share its blocks."""
    return bool(_stat(store, part).st_nlink == 1)


def _stat(store: Store, part: dict[str, Any]) -> Any:
    return (store.parts / part["relation"] / part["file"]).stat()


def _drop_old(store: Store, table: _Table, rule: Rule, now: datetime) -> int:
    """Drops the oldest hour or day of a table, where it is too old or the table too large."""
    seen = store.rows(f'select min("{table.time}") as oldest, max("{table.time}") as newest, count(*) as held from {table.name}')[0]
    if not seen["held"]:
        return 0
    newest = min(now, seen["newest"])
    before, reason = (newest - rule.max_age if rule.max_age else None), "age"
    if (before is None or seen["oldest"] >= before) and rule.max_bytes and table_bytes(store, table.name, seen["held"]) > rule.max_bytes:
        before, reason = newest - rule.stays, "size"
    if before is None or seen["oldest"] >= before:
        return 0
    return _drop_bucket(store, table, before, reason, now, "hour" if seen["held"] > LARGE_ROWS else "day")


def _drop_bucket(store: Store, table: _Table, before: datetime, reason: str, now: datetime, bucket: str) -> int:
    old = f'{table.only} and "{table.time}" < $before' + (f" and {table.stored} < $before" if table.stored else "")
    oldest = store.rows(f'select min("{table.time}") as oldest from {table.name} where {old}', {"before": before})[0]["oldest"]
    if oldest is None:
        return 0
    inside = f"{old} and \"{table.time}\" < date_trunc('{bucket}', $oldest::timestamptz) + interval 1 {bucket}"
    with store.write() as transaction:
        span = transaction.frame(
            f'select max("{table.time}") + interval 1 microsecond as until from {table.name} where {inside}',
            {"before": before, "oldest": oldest},
        )
        count = transaction.execute(f"delete from {table.name} where {inside}", {"before": before, "oldest": oldest})
        _note(transaction, table.name.removesuffix("_hot"), oldest, span["until"].item(), count, None, reason, now)
    return count


def table_bytes(store: Store, table: str, held: int) -> int:
    """About what a table's rows take on disk. Deleted rows take their space until the database reuses it: they are left out."""
    stored = store.rows(
        "select count(distinct block_id) filter (where persistent) as blocks, "
        "coalesce(sum(count) filter (where column_id = 0 and segment_type <> 'VALIDITY'), 0) as stored "
        f"from pragma_storage_info('{table}')"
    )[0]
    return int(stored["blocks"] * BLOCK_BYTES * min(1.0, held / max(1, stored["stored"])))


def _note(
    transaction: Transaction, relation: str, since: datetime, until: datetime, rows: int, size_bytes: int | None, reason: str, now: datetime
) -> None:
    row = {"relation": relation, "since": since, "until": until, "rows": rows, "bytes": size_bytes, "reason": reason, "now": now}
    transaction.execute("insert into retention_log values ($relation, $since, $until, $rows, $bytes, $reason, $now)", row)
