"""A snapshot is a data folder of one moment: nothing acknowledged is missing, nothing comes twice, and the room goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from collectors_bodies import START, body, span

import leverwatch
from collectors.spool import Spool
from collectors.spool_copy import HeldSegments
from collectors.spool_records import Position
from leverwatch import snapshot
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.snapshot_files import SnapshotError, check
from queries import sealing

HOUR_NS = 3_600_000_000_000
NOW = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path / "data", Config())
    yield opened
    opened.close()


def put(room: EngineRoom, first: int, count: int = 1, hours: float = 0.0) -> None:
    """Acknowledged exports of one span each, numbered from `first`."""
    for number in range(first, first + count):
        began = START + int(hours * HOUR_NS) + number
        one = span(number, start_time_unix_nano=began, end_time_unix_nano=began + 1_000_000)
        room.spool.append("traces", "s", began, body(one)).result(10)


def seal(room: EngineRoom) -> None:
    mark = room.store.rows("select max(started_at) as newest from spans")[0]["newest"] + timedelta(hours=5)
    while sealing.seal_next(room.store, mark):
        pass


def numbers(folder: Path) -> list[int]:
    """The spans of a data folder after it was opened and has loaded what waited."""
    opened = EngineRoom(folder, Config())
    opened.drain()
    found = opened.store.rows("select trace_id from spans order by trace_id")
    opened.close()
    return [int(row["trace_id"], 16) for row in found]


def test_a_snapshot_holds_hot_rows_sealed_rows_and_what_waits_in_the_spool(room: EngineRoom, tmp_path: Path) -> None:
    put(room, 1, 5)
    room.drain()
    seal(room)
    put(room, 6, 3, hours=9)
    room.drain()
    put(room, 9, 2, hours=9)
    manifest = snapshot.take(room, tmp_path / "copy")
    assert manifest.rows["spans"] == manifest.rows["requests"] == 8
    assert manifest.spool_bytes > 0
    assert check(tmp_path / "copy")[1] == []
    put(room, 11, 2, hours=9)
    assert numbers(tmp_path / "copy") == list(range(1, 11))
    room.drain()
    assert room.store.rows("select count(*) as n from spans") == [{"n": 12}]


def test_a_snapshot_taken_while_exports_come_and_are_loaded_has_each_acknowledged_span_once(room: EngineRoom, tmp_path: Path) -> None:
    stop, sent = threading.Event(), [0]

    def send() -> None:
        while not stop.is_set():
            put(room, sent[0] + 1)
            sent[0] += 1

    def load() -> None:
        while not stop.is_set():
            room.work_once()

    threads = [threading.Thread(target=work) for work in (send, load)]
    for thread in threads:
        thread.start()
    try:
        for name in ("one", "two", "three"):
            before = sent[0]
            snapshot.take(room, tmp_path / name)
            assert before <= len(numbers(tmp_path / name)) <= sent[0] + 1
            assert numbers(tmp_path / name) == list(range(1, len(numbers(tmp_path / name)) + 1))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_snapshot_overwrites_nothing_and_leaves_nothing_behind(room: EngineRoom, tmp_path: Path) -> None:
    taken = tmp_path / "copy"
    taken.mkdir()
    with pytest.raises(SnapshotError, match="is there already"):
        snapshot.take(room, taken)
    taken.rmdir()
    snapshot.take(room, taken)
    assert list((room.store.parts / "snapshots").iterdir()) == []
    assert sorted(path.name for path in room.folder.iterdir()) == ["live.duckdb", "live.duckdb.wal", "parts", "spool"]


def test_a_snapshot_that_fails_leaves_no_folder_and_the_room_as_it_was(
    room: EngineRoom, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(room, 1, 3)
    room.drain()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(HeldSegments, "copy", full)
    with pytest.raises(OSError, match="No space"):
        snapshot.take(room, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert list((room.store.parts / "snapshots").iterdir()) == []
    monkeypatch.undo()
    assert snapshot.take(room, tmp_path / "copy").rows["spans"] == 3


def test_one_snapshot_is_taken_at_a_time(room: EngineRoom, tmp_path: Path) -> None:
    with room.taking_snapshot, pytest.raises(SnapshotError, match="one at a time"):
        snapshot.take(room, tmp_path / "copy")


def test_a_part_stays_for_a_snapshot_that_saw_it_listed(room: EngineRoom, tmp_path: Path) -> None:
    put(room, 1, 5)
    room.drain()
    seal(room)
    snapshot.take(room, tmp_path / "copy")
    for path in sealing.part_files_of(room.store, "spans"):
        path.unlink()
    assert check(tmp_path / "copy")[1] == []


def test_a_changed_snapshot_is_told_from_a_whole_one(room: EngineRoom, tmp_path: Path) -> None:
    put(room, 1, 5)
    room.drain()
    seal(room)
    snapshot.take(room, tmp_path / "copy")
    (part,) = (tmp_path / "copy/parts/spans").iterdir()
    content = part.read_bytes()
    part.unlink()
    part.write_bytes(content[:-1] + b"x")
    (tmp_path / "copy/parts/spans/other.parquet").write_bytes(b"")
    next((tmp_path / "copy/spool").iterdir()).unlink()
    said = "\n".join(check(tmp_path / "copy")[1])
    assert f"parts/spans/{part.name}: has other content" in said
    assert "parts/spans/other.parquet: is not in the manifest" in said
    assert ".spool: is missing" in said
    with pytest.raises(SnapshotError, match="no manifest"):
        check(tmp_path)


def test_the_command_takes_a_snapshot_of_a_folder_and_checks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = EngineRoom(tmp_path / "data", Config())
    put(opened, 1, 4)
    opened.drain()
    opened.close()
    where = ["--data", str(tmp_path / "data")]
    assert main(["snapshot", str(tmp_path / "copy"), *where]) == 0
    assert "4 spans" in capsys.readouterr().out
    assert main(["snapshot", str(tmp_path / "copy"), *where]) == 2
    assert main(["snapshot", str(tmp_path / "copy"), "--check"]) == 0
    with leverwatch.connect(tmp_path / "copy") as connection:
        assert connection.sql("select count(*) as n from requests").item() == 4
    capsys.readouterr()
    assert main(["snapshot", str(tmp_path / "copy"), "--check"]) == 1
    assert "live.duckdb" in capsys.readouterr().out


def test_what_was_loaded_and_deleted_meanwhile_is_still_copied(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", Position(0, 0))
    spool.append("traces", "s", 1, b"first").result(10)
    start = spool.end
    spool.append("traces", "s", 2, b"second").result(10)
    with HeldSegments(tmp_path / "spool") as held:
        end = spool.end
        assert held.hold_until(end)
        next((tmp_path / "spool").glob("*.spool")).unlink()
        held.copy(start, end, tmp_path / "copy")
    spool.close()
    copied = Spool(tmp_path / "copy", start)
    assert [record.body for record in copied.read(start, 100)] == [b"second"]
    copied.close()


def test_segments_that_came_and_went_unseen_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "000000003.spool").touch()
    with HeldSegments(tmp_path) as held:
        (tmp_path / "000000005.spool").touch()
        assert not held.hold_until(Position(5, 0))


def test_a_snapshot_does_not_go_into_its_own_data_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    EngineRoom(tmp_path / "data", Config()).close()
    inner = tmp_path / "data" / "inner"
    assert main(["snapshot", str(inner), "--data", str(tmp_path / "data")]) == 2
    assert f"{inner} lies in the data folder" in capsys.readouterr().err
    assert not inner.exists()


def test_a_snapshot_that_cannot_be_placed_leaves_no_copy_behind(room: EngineRoom, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        snapshot.take(room, tmp_path / "file/copy")
    assert list((room.store.parts / "snapshots").iterdir()) == []


def test_a_snapshot_goes_to_no_folder_inside_the_data_folder(room: EngineRoom, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(room.folder)
    for target in (room.folder, room.folder / "parts/spans/copy", tmp_path / "other/copy", room.folder / "parts/../copy"):
        with pytest.raises(SnapshotError, match="lies in the data folder"):
            snapshot.take(room, target)


def test_two_snapshots_of_one_second_both_wait_to_be_fetched(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path / "data", Config(), lambda: NOW)
    (one, _), (two, _) = snapshot.stage(room), snapshot.stage(room)
    assert one != two
    assert one.is_dir()
    assert two.is_dir()
    room.close()
