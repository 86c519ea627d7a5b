"""No part goes without a word: what is listed and lost stops the start, and what nothing lists is set aside, not deleted."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest

from queries import lost_parts, sealing
from queries.lost_parts import PartsError
from queries.store import Store, StoreError
from queries.sweep import Sweep

HOUR = datetime(2026, 11, 29, 10, tzinfo=UTC)
NOW = HOUR + timedelta(days=1)


def filled(folder: Path, *hours: int) -> None:
    """A closed store with a part of one request for each hour."""
    store = opened(folder)
    for hour in hours:
        seal(store, hour)
    store.close()


def opened(folder: Path) -> Store:
    store = Store(folder)
    try:
        sealing.restore(store, NOW)
    except BaseException:
        store.close()
        raise
    return store


def seal(store: Store, hour: int, trace: str = "") -> None:
    began = HOUR + timedelta(hours=hour)
    row = {"request_id": trace or str(hour), "trace_id": trace or str(hour), "started_at": began, "ended_at": began, "outcome": "ok"}
    with store.write() as transaction:
        transaction.insert("requests_hot", pl.DataFrame([row]))
    sealing.seal_next(store, began + timedelta(hours=3))


def seen(store: Store) -> list[str]:
    return store.frame("select trace_id from requests order by trace_id")["trace_id"].to_list()


def seen_again(folder: Path) -> list[str]:
    store = opened(folder)
    try:
        return seen(store)
    finally:
        store.close()


def parts(folder: Path) -> list[Path]:
    return sorted((folder / "parts/requests").glob("*.parquet"))


def aside(folder: Path) -> list[Path]:
    return sorted((folder / "set_aside/parts/requests").glob("*"))


@pytest.mark.parametrize("content", [None, b"", b"short", os.urandom(200)])
def test_a_lost_part_stops_the_start_with_its_name_and_what_to_do(tmp_path: Path, content: bytes | None) -> None:
    filled(tmp_path, 0, 1)
    first, kept = parts(tmp_path)[0], parts(tmp_path)[0].read_bytes()
    first.unlink() if content is None else first.write_bytes(content)
    with pytest.raises(PartsError, match=rf"{first.name} (is missing|has).*\(it is listed with 1 requests\); put back .* create the file"):
        opened(tmp_path)
    first.write_bytes(kept)
    assert seen_again(tmp_path) == ["0", "1"]


def test_damage_that_leaves_the_size_is_seen_at_the_ends(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    (part,) = parts(tmp_path)
    part.write_bytes(os.urandom(part.stat().st_size))
    with pytest.raises(PartsError, match="no whole Parquet file"):
        opened(tmp_path)


def test_what_is_lost_is_given_up_once_on_the_operators_word_and_written_down(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1, 2)
    missing, damaged, _ = parts(tmp_path)
    missing.unlink()
    damaged.write_bytes(b"x" * 300)
    (tmp_path / "parts/give_up_lost").touch()
    store = opened(tmp_path)
    assert seen(store) == ["2"]
    logged = store.rows('select since, "rows" as held, reason, dropped_at from retention_log order by since')
    assert logged == [{"since": HOUR + timedelta(hours=n), "held": 1, "reason": "lost", "dropped_at": NOW} for n in (0, 1)]
    store.close()
    assert [path.read_bytes() for path in aside(tmp_path)] == [b"x" * 300]
    parts(tmp_path)[0].unlink()
    with pytest.raises(PartsError):
        opened(tmp_path)


def test_an_older_database_deletes_no_newer_part_and_the_right_one_finds_them_again(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    older = (tmp_path / "live.duckdb").read_bytes()
    filled(tmp_path, 1, 2)
    newer = (tmp_path / "live.duckdb").read_bytes()
    (tmp_path / "live.duckdb").write_bytes(older)
    assert seen_again(tmp_path) == ["0"]
    assert len(aside(tmp_path)) == 2
    (tmp_path / "live.duckdb").write_bytes(newer)
    assert seen_again(tmp_path) == ["0", "1", "2"]
    assert aside(tmp_path) == []


def test_a_file_that_is_set_aside_twice_overwrites_nothing_and_goes_with_age(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    strange = parts(tmp_path)[0].with_name("20261129T10-0badcafe-0007.parquet")
    for content in (b"one", b"two"):
        strange.write_bytes(content)
        os.utime(strange, (1e9, 1e9))
        assert seen_again(tmp_path) == ["0"]
    assert sorted(path.read_bytes() for path in aside(tmp_path)) == [b"one", b"two"]
    store = opened(tmp_path)
    assert lost_parts.drop_set_aside(store, datetime.now(UTC) - timedelta(days=1)) == 0
    assert lost_parts.drop_set_aside(store, datetime.now(UTC) + timedelta(days=1)) == 2
    store.close()


def test_a_crash_between_the_part_and_its_commit_leaves_a_folder_that_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(tmp_path, 0)
    store = opened(tmp_path)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sealing, "list_part", crash)
    with pytest.raises(KeyboardInterrupt):
        seal(store, 1)
    store.close()
    monkeypatch.undo()
    half_written = tmp_path / "parts/requests/20261129T12-0000.parquet"
    half_written.write_bytes(b"PAR1 and no end")
    store = opened(tmp_path)
    assert seen(store) == ["0", "1"]
    assert (len(parts(tmp_path)), len(aside(tmp_path))) == (1, 1)
    assert sealing.seal_next(store, HOUR + timedelta(hours=9)) == 1
    assert seen(store) == ["0", "1"]
    store.close()


def test_what_is_no_part_stays_where_it_is(tmp_path: Path) -> None:
    filled(tmp_path, 0)
    folder = tmp_path / "parts/requests"
    (folder / "lost+found").mkdir()
    (folder / "folder.parquet").mkdir()
    (folder / "notes.txt").write_text("mine")
    store = opened(tmp_path)
    Sweep(store).close()
    assert seen(store) == ["0"]
    store.close()
    assert {"lost+found", "folder.parquet", "notes.txt"} < {path.name for path in folder.iterdir()}


def test_a_clean_end_leaves_nothing_to_set_aside(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1)
    store = opened(tmp_path)
    with store.write() as transaction:
        sealing.unlist(store, transaction, "requests", [parts(tmp_path)[0].name])
    Sweep(store).close()
    assert len(parts(tmp_path)) == 1
    store.close()
    assert seen_again(tmp_path) == ["1"]
    assert aside(tmp_path) == []


def test_a_deleted_part_gives_its_name_to_no_other_and_what_cannot_be_listed_beside_it_leaves_no_file(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1)
    store = opened(tmp_path)
    part = parts(tmp_path)[1]
    kept = part.read_bytes()
    part.unlink()
    with store.write() as transaction:
        transaction.execute("update parts set level = 0")
    with pytest.raises(duckdb.IOException, match=part.name):
        seal(store, 1, "late")
    assert len(parts(tmp_path)) == 1
    assert "is missing" in lost_parts.told(lost_parts.lost_now(store))
    part.write_bytes(kept)
    sealing.seal_next(store, HOUR + timedelta(hours=9))
    assert seen(store) == ["0", "1", "late"]
    assert store.rows('select count(*) as n, count(distinct "file") as names from parts') == [{"n": 3, "names": 3}]
    assert sealing.part_files_of(store, "requests") == parts(tmp_path)
    store.close()


@pytest.mark.parametrize("left", ["parts", "log"])
def test_a_missing_database_is_no_new_beginning_while_its_parts_or_its_log_are_there(tmp_path: Path, left: str) -> None:
    filled(tmp_path, *((0,) if left == "parts" else ()))
    kept = (tmp_path / "live.duckdb").read_bytes()
    (tmp_path / "live.schema-13.duckdb").write_bytes(kept)
    (tmp_path / "live.duckdb").unlink()
    if left == "log":
        (tmp_path / "live.duckdb.wal").write_bytes(b"commits")
    with pytest.raises(StoreError, match=r"live.duckdb is missing, .* live.schema-13.duckdb beside it, or move .* away to begin anew"):
        Store(tmp_path)
    assert not (tmp_path / "live.duckdb").exists()
    if left == "parts":
        (tmp_path / "live.duckdb").write_bytes(kept)
        assert seen_again(tmp_path) == ["0"]


def test_a_part_that_was_replaced_is_not_set_aside_when_nobody_swept_it(tmp_path: Path) -> None:
    filled(tmp_path, 0, 1)
    store = opened(tmp_path)
    name = store.rows('select "file" as name from parts order by since limit 1')[0]["name"]
    with store.write() as transaction:
        sealing.unlist(store, transaction, "requests", [name])
    store.close()  # as if killed: no sweep
    assert seen_again(tmp_path) == ["1"]
    assert not (tmp_path / "parts" / "requests" / name).exists()
    assert not list((tmp_path / lost_parts.SET_ASIDE).rglob("*.parquet"))
