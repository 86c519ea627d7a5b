"""Folding leaves fewer rows in the ledger, and every sum as it was."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from queries.folding import fold_next
from queries.store import Store

NOW = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def put(store: Store, minute: datetime, sender: str = "a", reasons: str = "map {}") -> None:
    columns = "(sender, signal, minute, received, stored, duplicate, rejected, dropped, pending, late, reasons)"
    values = f"('{sender}', 'traces', $minute, 10, 6, 1, 2, 1, 0, 3, {reasons})"
    with store.write() as transaction:
        transaction.execute(f"insert into ingest_entries {columns} values {values}", {"minute": minute})


def fold_all(store: Store) -> int:
    total, folded = 0, fold_next(store, NOW)
    while folded:
        total, folded = total + folded, fold_next(store, NOW)
    return total


def ledger(store: Store) -> list[dict[str, Any]]:
    return store.rows("select * from ingest_ledger order by all")


def entries(store: Store) -> int:
    return int(store.rows("select count(*) as n from ingest_entries")[0]["n"])


def test_batches_of_a_minute_become_one_row_and_the_ledger_says_the_same(store: Store) -> None:
    for sender in ("a", "a", "a", "b"):
        put(store, NOW - 60 * MINUTE, sender, "map {'too deep': 2}")
    put(store, NOW - 59 * MINUTE, "a")
    put(store, NOW)
    put(store, NOW)
    before = ledger(store)
    assert fold_all(store) == 2
    assert ledger(store) == before
    assert entries(store) == 5


def test_after_a_week_there_is_one_row_a_day_and_every_sum_stays(store: Store) -> None:
    sums = "select sum(received)::bigint as r, sum(stored)::bigint as s, sum(late)::bigint as l from ingest_ledger"
    for minutes in (0, 1, 2):
        put(store, NOW - 8 * DAY + minutes * MINUTE, reasons="map {'too deep': 1}")
    put(store, NOW - 9 * DAY)
    put(store, NOW)
    before = store.rows(sums)
    assert fold_all(store) == 2
    assert store.rows(sums) == before
    assert [(row["minute"], row["received"], row["reasons"]) for row in ledger(store)] == [
        (NOW - 9 * DAY, 10, {}),
        ((NOW - 8 * DAY).replace(hour=0, minute=0), 30, {"too deep": 3}),
        (NOW, 10, {}),
    ]
    assert fold_all(store) == 0


def test_a_round_folds_one_hour(store: Store) -> None:
    for hours in (2, 3):
        put(store, NOW - hours * 60 * MINUTE)
        put(store, NOW - hours * 60 * MINUTE)
    put(store, NOW)
    assert [fold_next(store, NOW) for _ in range(3)] == [1, 1, 0]
    assert fold_next(store, NOW - 30 * DAY) == 0


def test_an_empty_ledger_has_nothing_to_fold(store: Store) -> None:
    assert fold_next(store, NOW) == 0
