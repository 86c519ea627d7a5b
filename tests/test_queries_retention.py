"""Retention drops the oldest first, in bounded rounds, writes down what went, and takes no file from under a reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from queries import retention, sealing
from queries.retention import Rule
from queries.sandbox import Sandbox
from queries.storage import holdings
from queries.store import Store
from queries.sweep import Sweep

NOW = datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
THREE_DAYS = Rule("requests", 3 * DAY)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    sealing.restore(opened)
    yield opened
    opened.close()


def put(store: Store, age: timedelta, stored: timedelta | None = None) -> None:
    """One request of an age, sealed; its part is as old as the request, or as `stored`."""
    row = {"request_id": str(age), "trace_id": str(age), "started_at": NOW - age, "ended_at": NOW - age, "outcome": "ok"}
    before = set(sealing.part_files_of(store, "requests"))
    with store.write() as transaction:
        transaction.insert("requests_hot", pl.DataFrame([row]))
    assert sealing.seal_next(store, NOW - age + 3 * HOUR) == 1
    (path,) = set(sealing.part_files_of(store, "requests")) - before
    at = (NOW - (age if stored is None else stored)).timestamp()
    os.utime(path, (at, at))


def ages(store: Store) -> list[timedelta]:
    return [NOW - row["started_at"] for row in store.rows("select started_at from requests order by started_at desc")]


def drop_all(store: Store, rule: Rule, **how: Any) -> int:
    total, dropped = 0, retention.drop_next(store, rule, NOW, **how)
    while dropped:
        total, dropped = total + dropped, retention.drop_next(store, rule, NOW, **how)
    return total


def test_sealed_hours_older_than_their_age_go_and_are_written_down(store: Store) -> None:
    put(store, 100 * HOUR)
    put(store, 90 * HOUR)
    put(store, 10 * HOUR)
    assert drop_all(store, THREE_DAYS) == 2
    assert ages(store) == [10 * HOUR]
    log = store.rows("select * exclude (bytes) from retention_log order by since")
    first = (NOW - 100 * HOUR).replace(minute=0)
    assert log[0] == {"relation": "requests", "since": first, "until": first + HOUR, "rows": 1, "reason": "age", "dropped_at": NOW}
    assert len(log) == 2


def test_history_that_was_loaded_today_stays_as_long_as_what_happened_today(store: Store) -> None:
    put(store, 100 * DAY, stored=HOUR)
    assert drop_all(store, THREE_DAYS) == 0
    put(store, 100 * DAY + HOUR, stored=4 * DAY)
    assert drop_all(store, THREE_DAYS) == 1
    assert ages(store) == [100 * DAY]


def test_the_oldest_parts_go_until_the_size_fits_and_none_that_stays(store: Store) -> None:
    for hours in (60, 50, 40, 1):
        put(store, hours * HOUR)
    part_bytes = store.rows("select max(bytes) as size from parts")[0]["size"]
    assert drop_all(store, Rule("requests", max_bytes=2 * part_bytes, stays=DAY)) == 2
    assert ages(store) == [HOUR, 40 * HOUR]
    assert drop_all(store, Rule("requests", max_bytes=1, stays=DAY)) == 1
    assert ages(store) == [HOUR]
    assert {row["reason"] for row in store.rows("select reason from retention_log")} == {"size"}


def test_a_full_disk_takes_one_part_a_round_down_to_what_stays_and_none_that_a_snapshot_shares(store: Store, tmp_path: Path) -> None:
    for hours in (60, 50, 1):
        put(store, hours * HOUR)
    rule = Rule("requests", stays=DAY)
    assert retention.drop_next(store, rule, NOW) == 0
    (tmp_path / "shared").hardlink_to(sealing.part_files_of(store, "requests")[0])
    assert retention.drop_next(store, rule, NOW, is_short=True) == 1
    assert ages(store) == [HOUR, 60 * HOUR]
    assert retention.drop_next(store, rule, NOW, is_short=True) == 0


def test_a_round_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PARTS_A_ROUND", 2)
    for hours in (100, 99, 98, 97, 96):
        put(store, hours * HOUR)
    assert [retention.drop_next(store, THREE_DAYS, NOW) for _ in range(4)] == [2, 2, 1, 0]


def cells(store: Store, *ages: timedelta) -> None:
    rows = [
        {"series_id": 1, "metric_id": 1, "started_at": NOW - age, "n": 1, "known": 1}
        | dict.fromkeys(("num", "den", "num_sq", "den_sq", "num_den", "times"), 1.0)
        for age in ages
    ]
    with store.write() as transaction:
        transaction.insert("block_cells", pl.DataFrame(rows))
        transaction.execute("insert into cell_periods select distinct 'hour', date_trunc('hour', started_at), 'summed' from block_cells")


def test_a_table_goes_day_by_day_counted_back_from_its_newest_row(store: Store) -> None:
    cells(store, 500 * DAY, 500 * DAY - HOUR, 499 * DAY, 100 * DAY)
    assert drop_all(store, Rule("block_cells", 400 * DAY)) == 0
    cells(store, timedelta(0))
    assert [retention.drop_next(store, Rule("block_cells", 400 * DAY), NOW) for _ in range(3)] == [2, 1, 0]
    assert store.rows("select count(*) as n from block_cells") == [{"n": 2}]


def test_an_old_score_that_came_late_stays(store: Store) -> None:
    row = {"suite": "s", "kind": "product", "score": 1.0, "better": "higher", "sender": "s"}
    came = [(NOW - 2000 * DAY, NOW), (NOW - 2000 * DAY, NOW - 1500 * DAY), (NOW, NOW)]
    rows = [row | {"evaluation_id": str(n), "evaluated_at": at, "received_at": got} for n, (at, got) in enumerate(came)]
    with store.write() as transaction:
        transaction.insert("evaluations", pl.DataFrame(rows))
    assert drop_all(store, Rule("evaluations", 1100 * DAY)) == 1
    assert store.rows("select evaluation_id from evaluations order by 1") == [{"evaluation_id": "0"}, {"evaluation_id": "2"}]


def test_a_file_stays_until_the_grace_is_over_and_no_reader_is_left(store: Store) -> None:
    put(store, 100 * HOUR)
    (path,) = sealing.part_files_of(store, "requests")
    sweep = Sweep(store, grace_s=0.0, written_for_s=-1.0)
    sweep.note()
    with store.snapshot() as seen:
        seen.frame("select 1 from parts")
        drop_all(store, THREE_DAYS)
        sweep.note()
        assert sweep.sweep() == 0
        assert seen.frame("select count(*) as n from requests").item() == 1
    assert sweep.pending_bytes > 0
    assert sweep.sweep() == 1
    assert not path.exists()


def test_a_file_that_is_on_its_way_to_be_listed_is_let_alone(store: Store) -> None:
    put(store, 100 * HOUR)
    (path,) = sealing.part_files_of(store, "requests")
    fresh = path.with_name("20261129T10-0007.parquet")
    fresh.write_bytes(path.read_bytes())
    sweep = Sweep(store, grace_s=0.0)
    sweep.note()
    assert sweep.sweep() == 0
    os.utime(fresh, (0, 0))
    sweep.note()
    assert sweep.sweep() == 1
    assert path.exists()
    assert not fresh.exists()


def test_ad_hoc_sql_that_named_a_part_before_it_went_can_still_read_it(store: Store) -> None:
    put(store, 100 * HOUR)
    sandbox = Sandbox(store)
    sweep = Sweep(store, grace_s=0.0, written_for_s=-1.0)
    sweep.note()
    with sandbox._copies.lease(["requests"]) as files:
        drop_all(store, THREE_DAYS)
        sweep.note()
        assert sweep.sweep() == 0
        assert all(path.exists() for path in files["requests"])
    assert sweep.sweep() == 1
    assert sandbox.run("select count(*) as n from requests").rows() == [[0]]
    assert sandbox.run("select relation, reason from retention_log").rows() == [["requests", "age"]]
    sandbox.close()


def test_a_store_opens_and_reads_the_same_after_a_drop(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sealing.restore(store)
    put(store, 100 * HOUR)
    put(store, 10 * HOUR)
    drop_all(store, THREE_DAYS)
    store.close()
    again = Store(tmp_path)
    sealing.restore(again)
    assert ages(again) == [10 * HOUR]
    assert len(list((again.parts / "requests").iterdir())) == 1
    again.close()


def test_holdings_count_hot_and_sealed_rows(store: Store) -> None:
    put(store, 100 * HOUR)
    cells(store, HOUR)
    found = {holding.relation: holding for holding in holdings(store)}
    assert found["requests"].rows == found["requests"].files == found["block_cells"].rows == 1
    assert found["requests"].bytes > 0
    assert found["requests"].oldest == (NOW - 100 * HOUR).replace(minute=0)
    assert found["spans"].rows == 0
    assert found["spans"].oldest is None


def test_cells_of_blocks_stay_until_their_hour_is_summed_up(store: Store) -> None:
    cells(store, 500 * DAY, 400 * DAY, timedelta(0))
    with store.write() as transaction:
        transaction.execute("update cell_periods set state = 'open' where started_at < $at", {"at": NOW - 450 * DAY})
    assert drop_all(store, Rule("block_cells", 14 * DAY)) == 1
    assert store.rows("select count(*) as n from block_cells where started_at < $at", {"at": NOW - 450 * DAY}) == [{"n": 1}]
