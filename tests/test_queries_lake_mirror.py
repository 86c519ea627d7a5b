"""A lake's files as parts of a store: the newest that have room, gone when they are gone there, and what is left out is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import object_store
import pyarrow as pa
import pytest

from queries import lake_mirror, lake_taking, lake_upkeep, sealing
from queries.lake import Lake
from queries.store import Store

HOUR = datetime(2026, 3, 2, 7, tzinfo=UTC)
ONE_HOUR = timedelta(hours=1)
NOW = HOUR + timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "store")
    yield opened
    opened.close()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three hours, each with two requests in a file of its own."""
    opened = Lake.open(str(tmp_path / "lake"))
    for place in range(3):
        opened.append("requests", requests(HOUR + place * ONE_HOUR, f"r{place}"))
    return opened


def requests(hour: datetime, name: str) -> pa.Table:
    rows = [{"request_id": f"{name}-{n}", "trace_id": f"{n}" * 32, "started_at": hour, "ended_at": hour, "outcome": "ok"} for n in range(2)]
    return pa.Table.from_pylist(
        rows, pa.schema([(key, pa.timestamp("us", "UTC") if key.endswith("_at") else pa.string()) for key in rows[0]])
    )


def held(store: Store) -> list[str]:
    return [row["request_id"] for row in store.rows("select request_id from requests order by request_id")]


def test_a_lakes_files_are_read_as_the_stores_own_and_taken_once(store: Store, lake: Lake) -> None:
    first, again = (lake_mirror.take(store, lake, "requests", 0, NOW) for _ in range(2))
    assert (first.came, first.since, again.came, again.went) == (3, None, 0, 0)
    assert held(store) == [f"r{place}-{n}" for place in range(3) for n in range(2)]
    inodes = {path.stat().st_ino for path in Path(lake.uri).glob("requests/*/*.parquet")}
    assert {path.stat().st_ino for path in sealing.part_files_of(store, "requests")} == inodes


def test_an_hour_that_was_replaced_is_replaced_and_a_restart_finds_it_whole(lake: Lake, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    lake_mirror.take(store, lake, "requests", 0, NOW)
    lake.replace("requests", requests(HOUR, "new"), [HOUR])
    lake.vacuum("requests", ONE_HOUR)
    done = lake_mirror.take(store, lake, "requests", 0, NOW)
    assert (done.came, done.went) == (1, 1)
    assert held(store) == ["new-0", "new-1", "r1-0", "r1-1", "r2-0", "r2-1"]
    store.close()
    opened = Store(tmp_path / "store")
    try:
        sealing.restore(opened, NOW)
        assert len(held(opened)) == 6
        assert lake_mirror.take(opened, lake, "requests", 0, NOW).came == 0
    finally:
        opened.close()


def test_the_newest_hours_that_have_room_are_there_and_what_is_not_is_told(store: Store, lake: Lake) -> None:
    size_bytes = lake.files("requests")[0].bytes
    covered = lake_mirror.take(store, lake, "requests", size_bytes * 2, NOW)
    assert covered.since == HOUR + ONE_HOUR
    assert held(store) == ["r1-0", "r1-1", "r2-0", "r2-1"]
    told = store.rows('select since, until, "rows", reason from retention_log')
    assert told == [{"since": HOUR, "until": HOUR + ONE_HOUR, "rows": 2, "reason": "mirror"}]
    assert lake_mirror.take(store, lake, "requests", 0, NOW).since is None
    assert store.rows("select * from retention_log") == []


def test_one_hour_is_there_however_little_room_there_is(store: Store, lake: Lake) -> None:
    assert lake_mirror.take(store, lake, "requests", 1, NOW).since == HOUR + 2 * ONE_HOUR
    assert held(store) == ["r2-0", "r2-1"]


def test_files_that_were_merged_in_the_lake_hold_the_same(store: Store, lake: Lake) -> None:
    lake.append("requests", requests(HOUR, "more"))
    lake_mirror.take(store, lake, "requests", 0, NOW)
    before = held(store)
    lake_upkeep.tidy(lake, "requests", HOUR)
    done = lake_mirror.take(store, lake, "requests", 0, NOW)
    assert (done.came, done.went, held(store)) == (1, 2, before)


def test_files_of_an_object_store_are_copied(store: Store) -> None:
    with object_store.bucket("lake") as options:
        lake = Lake.open("s3://lake/prefix", options)
        lake.append("requests", requests(HOUR, "far"))
        assert lake_mirror.take(store, lake, "requests", 0, NOW).came == 1
    assert held(store) == ["far-0", "far-1"]


def test_an_hour_that_changed_takes_the_place_of_what_was_taken_in_and_copies_are_one_row(store: Store, lake: Lake) -> None:
    when = {"received_at": NOW, "observed_at": HOUR}
    sample = {"replica": "r", "name": "n", "labels": [("k", "v")], "kind": "gauge", "sender": "s"} | when
    values = [(1.0, NOW + ONE_HOUR), (2.0, NOW)]
    rows = pa.Table.from_pylist([sample | {"value": value, "received_at": at} for value, at in values], SAMPLES)
    lake.append("samples", rows)
    assert lake_taking.take(store, lake, "samples", NOW) == 1
    assert store.rows("select value from samples") == [{"value": 2.0}]
    assert lake_taking.take(store, lake, "samples", NOW) == 0
    lake.append("samples", pa.Table.from_pylist([sample | {"name": "other", "value": 3.0}], SAMPLES))
    assert lake_taking.take(store, lake, "samples", NOW) == 1
    assert store.rows("select value from samples order by value") == [{"value": 2.0}, {"value": 3.0}]


MOMENT = pa.timestamp("us", "UTC")
SAMPLES = pa.schema(
    {
        "observed_at": MOMENT, "replica": pa.string(), "name": pa.string(), "labels": pa.map_(pa.string(), pa.string()),
        "value": pa.float64(), "kind": pa.string(), "sender": pa.string(), "received_at": MOMENT,
    }.items()
)  # fmt: skip
