"""Closed hours move to Parquet parts; nobody who asks can tell, and nothing is lost or doubled on the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from queries import sealing
from queries.sandbox import Sandbox
from queries.store import Store

HOUR = datetime(2026, 11, 29, 10, tzinfo=UTC)
LATER = HOUR + timedelta(hours=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    sealing.restore(opened)
    yield opened
    opened.close()


def put(store: Store, *rows: tuple[str, float, int]) -> None:
    """Requests as (trace_id, minutes after HOUR, prompt tokens), each replacing its trace's hot rows as assembly does."""
    frame = pl.DataFrame(
        [
            {
                "request_id": trace, "trace_id": trace, "started_at": HOUR + timedelta(minutes=minutes),
                "ended_at": HOUR + timedelta(minutes=minutes + 1), "outcome": "ok", "prompt_tokens": tokens,
            }
            for trace, minutes, tokens in rows
        ]
    )  # fmt: skip
    with store.write() as transaction:
        near = "min(started_at) - interval 30 minute as replaced_since, max(started_at) + interval 30 minute as replaced_until"
        transaction.using(frame, f"create or replace temp table working_traces as select trace_id, {near} from incoming group by trace_id")
        sealing.withdraw(store, transaction)
        transaction.using(frame, "delete from requests_hot where trace_id in (select trace_id from incoming)")
        transaction.insert("requests_hot", frame)


def seen(store: Store) -> list[tuple[Any, ...]]:
    return store.frame("select trace_id, prompt_tokens from requests order by trace_id").rows()


def named(part: Path) -> str:
    """A part as its hour and its number."""
    return "-".join(part.stem.split("-")[::2])


def seal_all(store: Store, watermark: datetime = LATER) -> int:
    moved, total = sealing.seal_next(store, watermark), 0
    while moved:
        total, moved = total + moved, sealing.seal_next(store, watermark)
    return total


def test_a_closed_hour_moves_whole_and_reads_the_same(store: Store) -> None:
    put(store, ("a", 1, 10), ("b", 59, 20), ("c", 61, 30), ("d", 170, 40))
    before = seen(store)
    assert seal_all(store) == 3
    assert seen(store) == before
    assert store.rows("select trace_id from requests_hot") == [{"trace_id": "d"}]
    assert [named(path) for path in sorted((store.parts / "requests").iterdir())] == ["20261129T10-0000", "20261129T11-0000"]


def test_an_hour_is_closed_only_an_hour_behind_the_watermark(store: Store) -> None:
    put(store, ("a", 1, 10))
    assert seal_all(store, HOUR + timedelta(minutes=119)) == 0
    assert seal_all(store, HOUR + timedelta(minutes=120)) == 1


def test_a_late_version_of_a_sealed_request_takes_the_older_one_out_of_its_part(store: Store) -> None:
    put(store, ("a", 1, 10), ("b", 2, 20))
    seal_all(store)
    put(store, ("a", 1, 99))
    assert seen(store) == [("a", 99), ("b", 20)]
    (part,) = sealing.part_files_of(store, "requests")
    assert named(part) == "20261129T10-0001"
    assert store.rows(f"select trace_id from read_parquet('{part}')") == [{"trace_id": "b"}]


def test_a_part_whose_last_request_is_made_anew_is_listed_no_longer(store: Store) -> None:
    put(store, ("a", 1, 10))
    seal_all(store)
    put(store, ("a", 1, 99))
    assert seen(store) == [("a", 99)]
    assert sealing.part_files_of(store, "requests") == []
    assert seal_all(store) == 1
    assert seen(store) == [("a", 99)]


def test_late_rows_of_an_hour_that_has_a_part_wait_and_hold_up_no_later_hour(store: Store) -> None:
    put(store, ("a", 1, 10))
    seal_all(store)
    put(store, ("z", 2, 30), ("c", 61, 40))
    assert seal_all(store) == 1
    assert [row["trace_id"] for row in store.rows("select trace_id from requests_hot")] == ["z"]


def test_a_late_new_request_of_a_sealed_hour_is_seen_from_the_hot_rows(store: Store) -> None:
    put(store, ("a", 1, 10))
    seal_all(store)
    put(store, ("z", 3, 30))
    assert seen(store) == [("a", 10), ("z", 30)]


def test_ad_hoc_sql_sees_parts_and_hot_rows_as_one(store: Store) -> None:
    put(store, ("a", 1, 10), ("b", 61, 20), ("d", 170, 40))
    seal_all(store)
    put(store, ("a", 1, 99))
    sandbox = Sandbox(store)
    try:
        assert sandbox.run("select trace_id, prompt_tokens from requests order by trace_id").rows() == [["a", 99], ["b", 20], ["d", 40]]
    finally:
        sandbox.close()


def test_sealed_rows_are_there_after_a_restart_and_a_file_that_was_never_listed_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sealing.restore(store)
    put(store, ("a", 1, 10))
    seal_all(store)
    (listed,) = sealing.part_files_of(store, "requests")
    store.close()
    orphan = listed.with_name("20261129T10-0001.parquet")
    orphan.write_bytes(listed.read_bytes())
    again = Store(tmp_path)
    sealing.restore(again)
    assert seen(again) == [("a", 10)]
    assert not orphan.exists()
    again.close()


def test_a_seal_that_fails_leaves_every_row_where_it_was(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, ("a", 1, 10))

    def broken(path: Path) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(sealing, "sync", broken)
    with pytest.raises(OSError, match="No space"):
        seal_all(store)
    assert seen(store) == [("a", 10)]
    assert store.rows("select count(*) as n from parts") == [{"n": 0}]
    monkeypatch.undo()
    assert seal_all(store) == 1
    assert seen(store) == [("a", 10)]


def test_a_fresh_part_without_the_request_that_is_made_anew_stays_fresh(store: Store) -> None:
    put(store, ("a", 1, 10), ("b", 2, 20))
    seal_all(store)
    with store.write() as transaction:
        transaction.execute("update parts set level = 0")
    put(store, ("a", 1, 99))
    assert store.rows('select level, "rows" as held from parts') == [{"level": 0, "held": 1}]
    assert seal_all(store) == 1
