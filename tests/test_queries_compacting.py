"""The parts of a closed day become few: nobody who asks can tell, and what changes meanwhile wins."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from queries import compacting, sealing
from queries.compacting import Compactor
from queries.store import Store

DAY = datetime(2026, 11, 27, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATER = DAY + timedelta(days=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    sealing.restore(opened)
    yield opened
    opened.close()


@pytest.fixture
def compactor(store: Store) -> Iterator[Compactor]:
    made = Compactor(store)
    yield made
    made.close()


def insert(store: Store, trace: str, hours: float, tokens: int = 1) -> None:
    """A request, in place of the one its trace had, as assembly does it."""
    at = DAY + hours * HOUR
    row = {"request_id": trace, "trace_id": trace, "started_at": at, "ended_at": at, "outcome": "ok", "prompt_tokens": tokens}
    frame = pl.DataFrame([row])
    with store.write() as transaction:
        near = "min(started_at) - interval 30 minute as replaced_since, max(started_at) + interval 30 minute as replaced_until"
        transaction.using(frame, f"create or replace temp table working_traces as select trace_id, {near} from incoming group by trace_id")
        sealing.withdraw(store, transaction)
        transaction.using(frame, "delete from requests_hot where trace_id in (select trace_id from incoming)")
        transaction.insert("requests_hot", frame)


def day(store: Store) -> None:
    """Three requests of one day and one of the next, each sealed in an hour of its own."""
    for trace, hours in (("a", 1), ("b", 2), ("c", 23.5), ("d", 24)):
        insert(store, trace, hours)
    while sealing.seal_next(store, LATER):
        pass


def names(store: Store) -> list[str]:
    """The parts, each as its hour or day and its number."""
    return ["-".join(path.stem.split("-")[::2]) for path in sealing.part_files_of(store, "requests")]


def seen(store: Store) -> list[tuple[Any, ...]]:
    return store.frame("select trace_id, prompt_tokens from requests order by trace_id").rows()


def compact(compactor: Compactor, watermark: datetime = LATER) -> int:
    """One day, waited for."""
    assert compactor.step(watermark) == 0
    if compactor._work:
        compactor._work[2].exception(30)
    return compactor.step(watermark)


def test_the_parts_of_a_closed_day_become_one_and_read_the_same(store: Store, compactor: Compactor) -> None:
    day(store)
    before = seen(store)
    for path in sealing.part_files_of(store, "requests"):
        os.utime(path, (1e9, 1e9))
    assert compact(compactor) == 3
    assert names(store) == ["20261127-0000", "20261128T00-0000"]
    assert seen(store) == before
    part = store.rows("select * from parts order by since")[0]
    assert (part["since"], part["until"], part["rows"]) == (DAY + HOUR, DAY + 24 * HOUR, 3)
    assert sealing.part_files_of(store, "requests")[0].stat().st_mtime == 1e9
    assert compact(compactor) == 0


def test_a_day_is_closed_a_day_and_two_hours_after_its_end(store: Store, compactor: Compactor) -> None:
    day(store)
    assert compact(compactor, DAY + 50 * HOUR - timedelta(seconds=1)) == 0
    assert compact(compactor, DAY + 50 * HOUR) == 3


def test_a_late_version_of_a_request_in_a_compacted_day_takes_the_older_one_out(store: Store, compactor: Compactor) -> None:
    day(store)
    compact(compactor)
    insert(store, "c", 23.5, tokens=99)
    insert(store, "a", 1, tokens=77)
    assert seen(store) == [("a", 77), ("b", 1), ("c", 99), ("d", 1)]
    assert sealing.seal_next(store, LATER) == 0  # late rows of a day that has a part wait
    (part,) = store.rows("select * from parts where since < $next", {"next": DAY + 24 * HOUR})
    assert (part["until"], part["rows"]) == (DAY + 24 * HOUR, 1)


def test_what_is_replaced_while_a_day_is_written_wins(store: Store, compactor: Compactor) -> None:
    day(store)
    assert compactor.step(LATER) == 0
    assert compactor._work is not None
    compactor._work[2].result(30)
    insert(store, "b", 2, tokens=99)
    assert compactor.step(LATER) == 0
    assert seen(store) == [("a", 1), ("b", 99), ("c", 1), ("d", 1)]
    assert compact(compactor) == 2
    assert seen(store) == [("a", 1), ("b", 99), ("c", 1), ("d", 1)]


def test_a_part_grows_no_larger_than_its_bound(store: Store, compactor: Compactor, monkeypatch: pytest.MonkeyPatch) -> None:
    day(store)
    part_bytes = store.rows("select max(bytes) as size from parts")[0]["size"]
    monkeypatch.setattr(compacting, "LIMIT_BYTES", 2 * part_bytes)
    assert compact(compactor) == 2
    ranges = [(row["since"] - DAY, row["until"] - DAY) for row in store.rows("select since, until from parts order by since")]
    assert ranges == [(HOUR, 3 * HOUR), (23 * HOUR, 24 * HOUR), (24 * HOUR, 25 * HOUR)]
    monkeypatch.setattr(compacting, "LIMIT_BYTES", part_bytes)
    assert compact(compactor) == 0


def test_a_day_that_is_being_written_is_given_up_at_the_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    day(store)
    begun, real = threading.Event(), compacting._merge

    def slow(*what: Any) -> Path:
        begun.set()
        return real(*what)

    monkeypatch.setattr(compacting, "_merge", slow)
    compactor = Compactor(store)
    compactor.step(LATER)
    assert begun.wait(30)
    compactor.close()
    assert len(names(store)) == 4
    assert not list((store.parts / "requests").glob("20261127-*"))
