"""What breaks under the spool: a torn tail, a corrupt record, a full disk, a lost file. Nothing that was acknowledged goes with it."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import pytest
from test_collectors_spool import START, put, read, reopened, segment

from collectors import spool as spool_module
from collectors.spool import Spool
from collectors.spool_records import MARK, Damage, Position, Record, packed, records


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "SEGMENT_LIMIT_BYTES", 300)


def test_a_torn_tail_is_cut_and_the_next_record_stands_in_its_place(tmp_path: Path) -> None:
    first = Spool(tmp_path, START)
    put(first, b"one", b"two")
    whole = first.end.byte_offset
    put(first, b"torn")
    first.close()
    for size in range(whole, segment(tmp_path).stat().st_size):
        os.truncate(segment(tmp_path), size)
        spool = Spool(tmp_path, START)
        assert spool.end == Position(0, whole)
        put(spool, b"next")
        assert read(spool) == [b"one", b"two", b"next"]
        spool.close()


def test_a_corrupt_record_is_told_and_hides_nothing_that_follows(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, b"one", b"two")
    after_two = spool.end.byte_offset
    put(spool, b"three")
    after_three = spool.end.byte_offset
    put(spool, b"four")
    spool.close()
    content = bytearray(segment(tmp_path).read_bytes())
    for place in range(after_two, after_three):
        changed = bytearray(content)
        changed[place] ^= 0x41
        segment(tmp_path).write_bytes(changed)
        found = list(records(segment(tmp_path), 0, 0, len(changed)))
        assert [one.body for one in found if isinstance(one, Record)] == [b"one", b"two", b"four"]
        assert [one for one in found if isinstance(one, Damage)] == [
            Damage(bytes(changed[after_two:after_three]), Position(0, after_three))
        ]


def test_a_spool_of_the_first_version_is_read(tmp_path: Path) -> None:
    whole = packed("traces", "old", 7, b"first") + packed("logs", "old", 8, b"second", b"counts")
    marked = packed("traces", "new", 9, b"third")
    first, second = whole[len(MARK) :].split(MARK)
    segment(tmp_path).write_bytes(first + second + marked)
    spool = Spool(tmp_path, START)
    found = [(one.signal, one.sender, one.body, one.counts) for one in spool.read(START, 1000) if isinstance(one, Record)]
    assert found == [("traces", "old", b"first", b""), ("logs", "old", b"second", b"counts"), ("traces", "new", b"third", b"")]
    assert spool.backlog_bytes == len(whole) + len(marked) - 2 * len(MARK)
    spool.close()


def test_a_corrupt_record_is_not_taken_for_a_torn_tail(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, b"one", b"two")
    spool.close()
    content = bytearray(segment(tmp_path).read_bytes())
    content[len(content) // 4] ^= 1
    segment(tmp_path).write_bytes(content)
    assert reopened(tmp_path) == [b"two"]
    assert len(segment(tmp_path).read_bytes()) == len(content)


@pytest.mark.usefixtures("small_segments")
def test_a_corrupt_record_hides_no_other_record_and_no_other_segment(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, *(bytes([number]) * 100 for number in range(9)))
    spool.close()
    content = bytearray(segment(tmp_path, 1).read_bytes())
    content[len(content) // 2] ^= 1
    segment(tmp_path, 1).write_bytes(content)
    assert [body[0] for body in reopened(tmp_path)] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_a_body_that_could_not_be_synced_is_refused_and_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool, sync = Spool(tmp_path, START), os.fdatasync
    put(spool, b"before")
    backlog = spool.backlog_bytes

    def failing(_file: int) -> None:
        raise OSError(errno.EIO, "the disk refuses")

    monkeypatch.setattr(os, "fdatasync", failing)
    for _ in range(2):
        with pytest.raises(OSError, match="the disk refuses"):
            put(spool, b"lost")
    monkeypatch.setattr(os, "fdatasync", sync)
    assert spool.backlog_bytes == backlog
    assert read(spool) == [b"before"]
    put(spool, b"behind")
    assert read(spool) == [b"before", b"behind"]
    assert reopened(tmp_path) == [b"before", b"behind"]
    spool.close()


def test_a_disk_that_is_full_in_the_middle_of_a_body_is_no_end_of_the_spool(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, b"before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="File too large"):
                put(spool, b"x" * 10_000)
        put(spool, b"fits")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    put(spool, b"y" * 10_000)
    assert [body[:4] for body in read(spool)] == [b"befo", b"fits", b"yyyy"]
    assert [body[:4] for body in reopened(tmp_path)] == [b"befo", b"fits", b"yyyy"]
    spool.close()


@pytest.mark.usefixtures("small_segments")
def test_a_segment_that_none_can_follow_grows_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path, START)

    def failing(_file: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", failing)
        put(spool, b"a" * 200, b"b" * 200, b"c" * 200)
    put(spool, b"d" * 200, b"e" * 200)
    assert [body[:1] for body in read(spool)] == [b"a", b"b", b"c", b"d", b"e"]
    assert [body[:1] for body in reopened(tmp_path)] == [b"a", b"b", b"c", b"d", b"e"]
    spool.close()


@pytest.mark.parametrize("loaded", [Position(0, 500), Position(3, 500)])
def test_a_spool_that_was_lost_begins_behind_what_was_loaded(tmp_path: Path, loaded: Position) -> None:
    """Else new bodies stood below the position that is read from, and were never loaded."""
    spool = Spool(tmp_path, loaded)
    put(spool, b"new")
    assert read(spool, loaded) == [b"new"]
    spool.close()
    assert reopened(tmp_path, loaded) == [b"new"]


def test_a_segment_shorter_than_what_was_loaded_of_it_loses_nothing_new(tmp_path: Path) -> None:
    spool = Spool(tmp_path, START)
    put(spool, b"one", b"two")
    loaded = spool.end
    spool.close()
    os.truncate(segment(tmp_path), 10)
    again = Spool(tmp_path, loaded)
    put(again, b"new")
    assert read(again, loaded) == [b"new"]
    again.close()
    assert reopened(tmp_path, loaded) == [b"new"]
