"""Bodies in, rows in a lake out: a body is acknowledged once the commit stands that holds it. Nothing is kept on this machine.

Bodies that wait are taken together: one commit a table about every `interval_s`; where nothing came for so long, the next body is committed
at once. The ledger's rows are committed last.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

from collectors import decode
from collectors.door import items_of
from collectors.entry import UnsoundBodyError
from collectors.lake_batch import LakeBatch, LakeReader
from collectors.ledger import Note, Tallies, drained
from collectors.load import DATA_FAULTS
from collectors.load_batch import BATCH_LIMIT_SPANS, UNSOUND
from collectors.sink import SinkFullError
from collectors.spool_records import Position, Record
from queries.lake import Lake
from queries.lake_errors import LakeError

log = logging.getLogger("leverwatch")
LEDGER = "ingest_entries"
NOWHERE = Position(0, 0)  # a lake's records have no place in a spool
COUNTED = ("stored", "rejected", "dropped")
NOTES_WAIT_S = 10.0  # at most, where nothing else is to be stored
CANNOT = "body cannot be loaded"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a collector commits, how much at once, and how much may wait."""

    interval_s: float = 1.0
    commit_bytes: int = 24 * 1024 * 1024
    limit_waiting_bytes: int = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: Record
    done: Future[None]


@dataclass(slots=True)
class Stored:
    """What was stored since the start: rounds, the seconds that reading and committing took, and items by signal and outcome."""

    rounds: int = 0
    failed_rounds: int = 0
    read_s: float = 0.0
    commit_s: float = 0.0
    items: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, tallies: Tallies, read_s: float, commit_s: float) -> None:
        """Counts one round."""
        self.rounds, self.read_s, self.commit_s = self.rounds + 1, self.read_s + read_s, self.commit_s + commit_s
        for row in tallies.rows().select(["signal", *COUNTED]).to_pylist():
            self.items.update({(row["signal"], outcome): row[outcome] for outcome in COUNTED})


class LakeSink:
    """Writes what receivers take into a lake. `append` is safe from any thread; one thread of its own reads and commits."""

    def __init__(self, lake: Lake, reader: LakeReader, pace: Pace, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._lake, self._reader, self._pace, self._clock_s = lake, reader, pace, clock_s
        self._waiting: deque[_Waiting] = deque()
        self._notes: SimpleQueue[Note] = SimpleQueue()
        self._changed = threading.Condition()
        self._waiting_bytes = 0
        self._is_closed = False
        self._commits = ThreadPoolExecutor(4, "lake-commit")
        self.problem = ""  # why the last round could not be stored; empty where it was
        self.stored = Stored()
        self._thread = threading.Thread(target=self._write_forever, name="lake", daemon=True)
        self._thread.start()

    def append(self, signal: str, sender: str, received_unix_nano: int, body: bytes, counts: bytes = b"") -> Future[None]:
        """Takes one body; the future is done once it is in the lake.

        It fails with an UnsoundBodyError where no row can be made of the body, with a LakeError where the lake cannot be written.

        Raises:
            SinkFullError: too much waits already, or the sink is closed.
        """
        done: Future[None] = Future()
        done.set_running_or_notify_cancel()  # a caller that gives up waiting cancels nothing: the body is on its way
        record = Record(signal, sender, received_unix_nano, body, NOWHERE, counts)
        with self._changed:
            if self._is_closed or self._waiting_bytes + len(body) > self._pace.limit_waiting_bytes:
                msg = "the collector is stopping" if self._is_closed else self._full()
                raise SinkFullError(msg, "stopping" if self._is_closed else "backlog")
            self._waiting_bytes += len(body)
            self._waiting.append(_Waiting(record, done))
            self._changed.notify()
        return done

    def note(self, note: Note) -> None:
        """Remembers what the door did not take, for the ledger."""
        self._notes.put(note)

    @property
    def waiting_bytes(self) -> int:
        """Bytes received and not stored yet; none of them is acknowledged."""
        return self._waiting_bytes

    @property
    def is_writing(self) -> bool:
        """Whether bodies can still be stored."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Stores what waits, then stops."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._commits.shutdown()

    def _full(self) -> str:
        return f"{self._waiting_bytes:,} bytes wait to be stored; the bound is {self._pace.limit_waiting_bytes:,}"

    def _write_forever(self) -> None:
        began_s = -self._pace.interval_s
        while True:
            batch = self._next_batch(began_s + self._pace.interval_s)
            if batch is None:
                return
            began_s = self._clock_s()
            try:
                self._store_told(batch)
            except BaseException as error:  # whatever it is, nobody is to wait forever
                log.exception("a batch cannot be stored")
                self._failed(batch, LakeError(f"{type(error).__name__}: {error}"))

    def _next_batch(self, due_s: float) -> list[_Waiting] | None:
        """What is to be stored together, not before `due_s` unless it is much; None once closed and done."""
        with self._changed:
            while not self._is_closed:
                left_s = due_s - self._clock_s()
                if self._waiting and (left_s <= 0 or self._waiting_bytes >= self._pace.commit_bytes):
                    break
                if not self._waiting and not self._notes.empty() and left_s <= -NOTES_WAIT_S:
                    break
                self._changed.wait(max(left_s, 0.01) if self._waiting else NOTES_WAIT_S)
            if self._is_closed and not self._waiting and self._notes.empty():
                return None
            return self._taken()

    def _taken(self) -> list[_Waiting]:
        """The first that wait, as many as a round takes, one at least where there is one."""
        batch: list[_Waiting] = []
        spans = size_bytes = expanded_bytes = 0
        while self._waiting:
            record = self._waiting[0].record
            checked = decode.counted(record.body, record.counts) if record.signal == "traces" else None
            spans, size_bytes = spans + (checked.spans if checked else 0), size_bytes + len(record.body)
            expanded_bytes += checked.expanded_bytes if checked else 0
            is_much = size_bytes > self._pace.commit_bytes or expanded_bytes > decode.LIMIT_EXPANDED_BYTES
            if batch and (is_much or spans > BATCH_LIMIT_SPANS):
                break
            batch.append(self._waiting.popleft())
            self._waiting_bytes -= len(record.body)
        return batch

    def _store_told(self, batch: list[_Waiting]) -> None:
        """Stores a batch and tells each body's sender what became of it; of a batch that cannot be read each body is tried alone."""
        notes = drained(self._notes)
        started_s = self._clock_s()
        try:
            read = self._reader.read([one.record for one in batch], _too_large(batch), notes)
        except DATA_FAULTS as error:
            self._put_back(notes)
            self._narrow(batch, error)
            return
        read_s = self._clock_s() - started_s
        try:
            self._commit(read)
        except LakeError as error:
            self._put_back(notes)
            self._reader.forget()
            self._failed(batch, error)
            return
        self.problem = ""
        self.stored.add(read.tallies, read_s, self._clock_s() - started_s - read_s)
        for one in batch:
            one.done.set_result(None)

    def _narrow(self, batch: list[_Waiting], error: BaseException) -> None:
        """Stores in parts what cannot be read together, until the body at fault is alone: that one is refused for good."""
        if len(batch) > 1:
            size = -(-len(batch) // 8)
            for start in range(0, len(batch), size):
                self._store_told(batch[start : start + size])
            return
        for one in batch:
            record, reason = one.record, f"{CANNOT}: {type(error).__name__}"
            log.warning("a body of %s cannot be loaded and is refused", record.sender, exc_info=error)
            items = max(1, items_of(record.signal, record.body))
            self._notes.put(Note(record.sender, record.signal, record.received_unix_nano, reason, items))
            one.done.set_exception(UnsoundBodyError(f"{reason}: {error}", reason))

    def _commit(self, read: LakeBatch) -> None:
        """Commits the rows of every table, beside each other, then the ledger's."""
        for done in [self._commits.submit(self._lake.append, table, rows) for table, rows in read.tables.items()]:
            done.result()
        if len(read.tallies):
            self._lake.append(LEDGER, read.tallies.rows())

    def _failed(self, batch: list[_Waiting], error: LakeError) -> None:
        if self.problem != str(error):
            log.warning("%s", error)
        self.problem = str(error)
        self.stored.failed_rounds += 1
        for one in batch:
            if not one.done.done():
                one.done.set_exception(error)

    def _put_back(self, notes: list[Note]) -> None:
        for note in notes:
            self._notes.put(note)


def _too_large(batch: list[_Waiting]) -> dict[int, str]:
    """Which trace exports cannot be taken whole, and why."""
    refused: dict[int, str] = {}
    for number, one in enumerate(batch):
        if one.record.signal == "traces":
            checked = decode.counted(one.record.body, one.record.counts)
            reason = checked.too_large if checked.sound else UNSOUND
            if reason:
                refused[number] = reason
    return refused
