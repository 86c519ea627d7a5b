"""An acknowledgement rests on the spool: what it took is on disk, in order, once, whatever breaks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from collectors import spool as spool_module
from collectors.spool import Spool, SpoolFullError
from collectors.spool_copy import HeldSegments
from collectors.spool_records import Position, Record

START = Position(0, 0)
ALL = 1 << 40


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path, START)
    yield opened
    opened.close()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_LIMIT_BYTES", 300)


def put(spool: Spool, *bodies: bytes) -> None:
    for body in bodies:
        spool.append("traces", "sender", 7, body).result(10)


def read(spool: Spool, start: Position = START) -> list[bytes]:
    return [record.body for record in spool.read(start, ALL) if isinstance(record, Record)]


def reopened(folder: Path, loaded: Position = START) -> list[bytes]:
    """What a new process finds in the folder of one that was killed."""
    found = Spool(folder, loaded)
    try:
        return read(found, loaded)
    finally:
        found.close()


def segment(folder: Path, number: int = 0) -> Path:
    return folder / f"{number:09d}.spool"


def test_a_record_is_read_as_it_came(spool: Spool) -> None:
    spool.append("traces", "sénder", 123_456_789, b"\x00body").result(10)
    assert list(spool.read(START, ALL)) == [
        Record("traces", "sénder", 123_456_789, b"\x00body", spool.end, stored_bytes=spool.end.byte_offset)
    ]


def test_a_body_is_on_disk_before_its_future_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    futures: list[Future[None]] = []
    seen: list[tuple[bool, bool]] = []
    appended = threading.Event()
    sync = os.fdatasync

    def watched(file: int) -> None:
        appended.wait(10)
        sync(file)
        seen.append((b"the body" in segment(tmp_path).read_bytes(), futures[0].done()))

    monkeypatch.setattr(os, "fdatasync", watched)
    spool = Spool(tmp_path, START)
    futures.append(spool.append("traces", "sender", 7, b"the body"))
    appended.set()
    futures[0].result(10)
    assert seen == [(True, False)]
    assert reopened(tmp_path) == [b"the body"]
    spool.close()


def test_what_was_acknowledged_is_found_by_a_process_that_opens_the_folder_of_one_that_was_killed(tmp_path: Path, spool: Spool) -> None:
    put(spool, b"one", b"", b"three" * 1000)
    assert reopened(tmp_path) == [b"one", b"", b"three" * 1000]


def test_closing_writes_what_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    futures = [spool.append("traces", "sender", 7, bytes([number])) for number in range(50)]
    spool.close()
    assert all(future.done() for future in futures)
    assert reopened(tmp_path) == [bytes([number]) for number in range(50)]


def test_appends_of_many_threads_share_syncs_and_each_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, syncs, sync = threading.Event(), [], os.fdatasync

    def counted(file: int) -> None:
        gate.wait(10)
        syncs.append(file)
        sync(file)

    monkeypatch.setattr(os, "fdatasync", counted)
    spool = Spool(tmp_path, START)
    futures: list[Future[None]] = []

    def send(thread: int) -> None:
        futures.extend(spool.append("traces", f"sender {thread}", 7, bytes([thread, number])) for number in range(50))

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    gate.set()
    for future in futures:
        future.result(10)
    assert len(syncs) <= 2
    assert sorted(read(spool)) == sorted(bytes([thread, number]) for thread in range(8) for number in range(50))
    assert [body for body in read(spool) if body[0] == 3] == [bytes([3, number]) for number in range(50)]
    spool.close()


def test_an_idle_spool_syncs_each_body_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    syncs, sync = [], os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda file: (syncs.append(file), sync(file)))
    spool = Spool(tmp_path, START)
    put(spool, b"one", b"two", b"three")
    assert len(syncs) == 3
    spool.close()


def test_a_full_spool_refuses_and_takes_again_once_something_was_loaded(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START, limit_backlog_bytes=300)
    put(spool, b"x" * 100, b"x" * 100)
    with pytest.raises(SpoolFullError, match=r"bytes wait to be loaded; the bound is 300"):
        spool.append("traces", "sender", 7, b"x" * 100)
    first = next(spool.read(START, 1))
    spool.loaded(first.after, first.stored_bytes)
    put(spool, b"y" * 100)
    assert [body[:1] for body in read(spool, first.after)] == [b"x", b"y"]
    spool.close()


def test_the_backlog_is_what_was_taken_and_not_loaded_also_after_a_restart(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, b"one", b"two", b"three")
    records = list(spool.read(START, ALL))
    assert spool.backlog_bytes == sum(record.stored_bytes for record in records)
    spool.loaded(records[0].after, records[0].stored_bytes)
    left = spool.backlog_bytes
    assert left == records[1].stored_bytes + records[2].stored_bytes
    spool.close()
    again = Spool(tmp_path, records[0].after)
    assert again.backlog_bytes == left
    again.close()


@pytest.mark.usefixtures("small_segments")
def test_a_full_segment_is_followed_by_another_and_goes_when_it_was_loaded(tmp_path: Path, spool: Spool) -> None:
    put(spool, *(bytes([number]) * 100 for number in range(8)))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [segment(tmp_path, number).name for number in range(3)]
    records = list(spool.read(START, ALL))
    assert [record.after.segment for record in records] == [0, 0, 0, 1, 1, 1, 2, 2]
    spool.loaded(records[5].after, sum(record.stored_bytes for record in records[:6]))
    assert not segment(tmp_path, 0).exists()
    assert segment(tmp_path, 1).exists()
    spool.loaded(records[6].after, records[6].stored_bytes)
    assert not segment(tmp_path, 1).exists()
    assert [body[0] for body in read(spool, records[6].after)] == [7]


@pytest.mark.usefixtures("small_segments")
def test_reading_goes_on_from_any_position_across_segments_and_restarts(tmp_path: Path, spool: Spool) -> None:
    put(spool, *(bytes([number]) * 100 for number in range(7)))
    records = list(spool.read(START, ALL))
    for number, record in enumerate(records):
        rest = [later.body for later in records[number + 1 :]]
        assert read(spool, record.after) == rest
        assert reopened(tmp_path, record.after) == rest


def test_a_read_ends_with_the_record_that_fills_the_batch(spool: Spool) -> None:
    put(spool, b"x" * 10, b"y" * 10, b"z" * 10)
    assert [record.body[:1] for record in spool.read(START, 20)] == [b"x", b"y"]


def test_whoever_follows_is_told_once_a_body_is_durable(spool: Spool) -> None:
    told: list[list[bytes]] = []
    done = threading.Event()

    def on_append() -> None:
        told.append(read(spool))
        done.set()

    spool.on_append = on_append
    put(spool, b"one")
    assert done.wait(10)
    assert told == [[b"one"]]


def test_once_all_is_loaded_no_raw_body_lies_in_the_spool_and_what_follows_is_found_after_a_restart(tmp_path: Path) -> None:
    spool = Spool(tmp_path, Position(0, 0))
    spool.append("traces", "s", 1, b"a prompt in clear").result()
    (record,) = spool.read(Position(0, 0), 1 << 20)
    spool.loaded(record.after, record.stored_bytes)
    spool.append("traces", "s", 2, b"next").result()
    assert all(b"a prompt in clear" not in path.read_bytes() for path in tmp_path.iterdir())
    spool.close()
    again = Spool(tmp_path, record.after)
    assert [found.body for found in again.read(record.after, 1 << 20)] == [b"next"]
    again.close()


def test_a_spool_whose_only_segment_was_retired_goes_on_behind_what_was_loaded(tmp_path: Path) -> None:
    spool = Spool(tmp_path, Position(0, 0))
    spool.append("traces", "s", 1, b"one").result()
    (record,) = spool.read(Position(0, 0), 1 << 20)
    spool.loaded(record.after, record.stored_bytes)
    spool.close()
    again = Spool(tmp_path, record.after)
    again.append("traces", "s", 2, b"two").result()
    assert [found.body for found in again.read(record.after, 1 << 20)] == [b"two"]
    again.close()


def test_a_loaded_segment_that_goes_while_another_reads_hides_nothing(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    put(spool, b"one")
    (record,) = spool.read(START, ALL)
    spool.loaded(record.after, record.stored_bytes)
    put(spool, b"two")
    monkeypatch.setattr(spool, "_segments", lambda: [0, 1])
    assert read(spool, record.after) == [b"two"]


def test_a_caller_that_gives_up_waiting_stops_neither_its_body_nor_the_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path, Position(0, 0))
    given_up = [spool.append("traces", "s", number, b"body") for number in range(50)]
    assert not any(future.cancel() for future in given_up)
    spool.append("traces", "s", 99, b"last").result(10)
    assert spool.is_writing
    assert len(list(spool.read(Position(0, 0), 1 << 20))) == 51
    spool.close()
    assert not spool.is_writing


@pytest.mark.parametrize("name", ["garbage.spool", "7.spool", "-00000001.spool", "0000000001.spool", "٠٠٠٠٠٠٠٠١.spool"])
def test_a_file_that_is_no_segment_is_passed_over_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str) -> None:
    (tmp_path / name).write_bytes(b"not ours")
    spool = Spool(tmp_path, START)
    put(spool, b"one")
    with HeldSegments(tmp_path) as held:
        assert held.hold_until(spool.end)
    spool.close()
    assert reopened(tmp_path) == [b"one"]
    assert f"{name} is no segment" in caplog.text
    assert (tmp_path / name).read_bytes() == b"not ours"
