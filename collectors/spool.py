"""Raw export bodies in, durable records out: what an acknowledgement rests on.

Bodies that wait at the same moment share one write and one sync; an idle spool syncs at once. Segments are files of records
(`spool_records`); a torn tail, never acknowledged, is cut at start. Files of other names are passed over.
"""

from __future__ import annotations

import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from collectors.free_space import FreeSpace
from collectors.sink import SinkFullError
from collectors.spool_records import Damage, Position, Record, packed, records, segment_number

SEGMENT_LIMIT_BYTES = 64 * 1024 * 1024
BACKLOG_LIMIT_BYTES = 512 * 1024 * 1024
log = logging.getLogger("leverwatch")


class SpoolFullError(SinkFullError):
    """More is waiting to be loaded than the spool may hold, or the disk is nearly full; the sender is to come again later."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: bytes
    done: Future[None]


class Spool:
    """The spool of one data folder. `append` is safe from any thread; one reader follows with `read`."""

    def __init__(
        self, folder: Path, loaded: Position, *, limit_backlog_bytes: int = BACKLOG_LIMIT_BYTES, limit_free_bytes: int = 0
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # raw bodies lie here until they are loaded, with whatever prompts they hold
        self._folder = folder
        self._limit_backlog_bytes = limit_backlog_bytes
        self.free_space = FreeSpace(folder, limit_free_bytes)
        self._waiting: queue.SimpleQueue[_Waiting | Position | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._backlog_bytes = 0
        self._is_torn = False
        self.on_append: Callable[[], None] = lambda: None
        self._drop_loaded(loaded)
        self._end = self._recover(loaded)
        self._file = self._open(self._end.segment)
        self._thread = threading.Thread(target=self._write_forever, name="spool", daemon=True)
        self._thread.start()

    def append(self, signal: str, sender: str, received_unix_nano: int, body: bytes, counts: bytes = b"") -> Future[None]:
        """Puts one body down, with what was counted of it where that is known; the future is done once it is on disk.

        Raises:
            SpoolFullError: the backlog is at its bound, or the disk has too little left.
        """
        short = self.free_space.shortage()
        if short:
            raise SpoolFullError(short, "disk")
        record = packed(signal, sender, received_unix_nano, body, counts)
        with self._lock:
            if self._backlog_bytes + len(record) > self._limit_backlog_bytes:
                msg = f"{self._backlog_bytes:,} bytes wait to be loaded; the bound is {self._limit_backlog_bytes:,}"
                raise SpoolFullError(msg)
            self._backlog_bytes += len(record)
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # a caller that gives up waiting cancels nothing: the body is on its way
        self._waiting.put(_Waiting(record, done))
        return done

    @property
    def backlog_bytes(self) -> int:
        """Bytes received and not yet loaded."""
        return self._backlog_bytes

    @property
    def is_writing(self) -> bool:
        """Whether bodies can still be put down."""
        return self._thread.is_alive()

    @property
    def end(self) -> Position:
        """The position behind the last durable record."""
        return self._end

    def read(self, start: Position, limit_bytes: int) -> Iterator[Record | Damage]:
        """Durable records from a position on, and what is damaged between them, until about `limit_bytes` of them or the end."""
        end, taken = self._end, 0
        for segment in self._segments():
            if segment < start.segment or segment > end.segment:
                continue
            offset = start.byte_offset if segment == start.segment else 0
            with suppress(FileNotFoundError):  # it was loaded to its end, and went since the segments were listed
                stop = end.byte_offset if segment == end.segment else self._path(segment).stat().st_size
                for record in records(self._path(segment), segment, offset, stop):
                    yield record
                    taken += len(record.content if isinstance(record, Damage) else record.body)
                    if taken >= limit_bytes:
                        return

    def loaded(self, position: Position, record_bytes: int) -> None:
        """Tells that everything before a position is in the store: its segments may go."""
        with self._lock:
            self._backlog_bytes = max(0, self._backlog_bytes - record_bytes)
        self._drop_loaded(position)
        if position == self._end and position.byte_offset:
            self._waiting.put(position)  # all is loaded: raw bodies, prompts included, need not lie here any longer

    def close(self) -> None:
        """Writes what waits, then stops."""
        self._waiting.put(None)
        self._thread.join()
        self._file.close()

    def _write_forever(self) -> None:
        while True:
            for kind, items in itertools.groupby(self._next_items(), type):
                if kind is _Waiting:
                    self._write([item for item in items if isinstance(item, _Waiting)])
                    continue
                for item in items:
                    if not isinstance(item, Position):
                        return
                    self._retire(item)

    def _next_items(self) -> list[_Waiting | Position | None]:
        """What waits now: at least one item, all those that came meanwhile."""
        items = [self._waiting.get()]
        while not self._waiting.empty():
            items.append(self._waiting.get())
        return items

    def _retire(self, position: Position) -> None:
        """Begins a new segment where nothing came since all was loaded, so that the loaded one can go."""
        if position == self._end:
            with suppress(OSError):
                self._roll()
                self._drop_loaded(self._end)

    def _write(self, batch: list[_Waiting]) -> None:
        data = b"".join(waiting.record for waiting in batch)
        try:
            self._put(data)
        except OSError as error:
            with self._lock:
                self._backlog_bytes -= len(data)
            for waiting in batch:
                waiting.done.set_exception(error)
            return
        self._end = Position(self._end.segment, self._end.byte_offset + len(data))
        if self._end.byte_offset >= SEGMENT_LIMIT_BYTES:
            with suppress(OSError):  # a segment that none can follow grows on
                self._roll()
        for waiting in batch:
            waiting.done.set_result(None)
        self.on_append()

    def _put(self, data: bytes) -> None:
        """Writes and syncs behind the durable end; what a failed write left there goes first."""
        if self._is_torn:
            self._file.truncate(self._end.byte_offset)
        self._is_torn = True
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fdatasync(self._file.fileno())
        self._is_torn = False

    def _roll(self) -> None:
        following = self._open(self._end.segment + 1)
        self._file.close()
        self._file, self._end = following, Position(self._end.segment + 1, 0)

    def _recover(self, loaded: Position) -> Position:
        """Finds the durable end, cuts a torn tail, and counts the backlog."""
        for path in sorted(self._folder.glob("*.spool")):
            if segment_number(path) is None:
                log.warning("%s is no segment of the spool, whose names are nine digits: it is passed over; move it away", path)
        segments = self._segments()
        is_lost = loaded.byte_offset > 0 and loaded.segment not in segments  # what is new must stand behind what was loaded
        end = Position(max([loaded.segment + is_lost, *segments]), 0)
        for segment in segments:
            offset = loaded.byte_offset if segment == loaded.segment else 0
            last = offset
            for record in records(self._path(segment), segment, offset, None):
                last = record.after.byte_offset
            self._backlog_bytes += last - offset
            if segment == end.segment:
                end = Position(segment, last)
                os.truncate(self._path(segment), last)
        return end

    def _drop_loaded(self, position: Position) -> None:
        for segment in self._segments():
            if segment < position.segment:
                self._path(segment).unlink(missing_ok=True)

    def _segments(self) -> list[int]:
        numbers = map(segment_number, self._folder.glob("*.spool"))
        return sorted(number for number in numbers if number is not None)

    def _path(self, segment: int) -> Path:
        return self._folder / f"{segment:09d}.spool"

    def _open(self, segment: int) -> FileIO:
        descriptor = os.open(self._path(segment), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        file = os.fdopen(descriptor, "ab", buffering=0)
        try:
            _sync_folder(self._folder)
        except OSError:
            file.close()
            raise
        return file


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
