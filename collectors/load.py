"""Spooled bodies in, rows out, exactly once: the transaction that stores the rows stores the spool position."""

from __future__ import annotations

import logging
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue

import polars as pl
import pyarrow as pa

from collectors import decode, load_evaluations, load_imported, set_aside
from collectors.deployed import Deployed
from collectors.door import items_of
from collectors.fresh import Fresh
from collectors.ledger import Note, Tallies, drained
from collectors.load_batch import Batch, Sorted, next_batch, sorted_out
from collectors.load_samples import SampleBatch, SampleLoader
from collectors.load_spans import SpanBatch, SpanLoader
from collectors.spool import Spool
from collectors.spool_records import Damage, Position, Record
from collectors.waiting import Waiting
from queries.data_errors import DATA_ERRORS
from queries.store import Store

log = logging.getLogger("leverwatch")

AHEAD_BYTES = 8 * 1024 * 1024  # of backlog behind a batch: the next one is read while this one is stored
LIMIT_RECORDS = 512  # where a batch whose size nobody knows could not be read
FRESH_BATCHES = 4  # that wait for assembly in memory; what came before those is read from the store
DAMAGED = "damaged in the spool"
# What one odd body can cause; anything else (no space, no memory) is tried again.
DATA_FAULTS = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pa.ArrowException, pl.exceptions.PolarsError, *DATA_ERRORS,
)  # fmt: skip


@dataclass(slots=True)
class _Ready:
    """A batch and what was made of it, ready to be stored."""

    batch: Batch
    found: Sorted = field(default_factory=Sorted)
    spans: SpanBatch | None = None
    samples: SampleBatch | None = None


class Loader:
    """Follows the spool into the store. One loader per store. `fresh` gets what assembly may take from memory once it is stored."""

    def __init__(self, store: Store, *, keep_content: bool = False, deployed: Deployed | None = None) -> None:
        self._store = store
        self._deployed = deployed or Deployed(keep_content=keep_content)
        self._spans = SpanLoader(store, self._deployed)
        self._samples = SampleLoader()
        self._notes: SimpleQueue[Note] = SimpleQueue()
        self._second = ThreadPoolExecutor(1, "load-ahead")
        self._ahead: tuple[Position, Future[_Ready]] | None = None
        self.waiting = Waiting()
        self.fresh: deque[Fresh] = deque(maxlen=FRESH_BATCHES)

    def position(self) -> Position:
        """How far the spool was loaded."""
        found = self._store.rows("select segment, byte_offset from spool_position")
        return Position(found[0]["segment"], found[0]["byte_offset"]) if found else Position(0, 0)

    def note(self, note: Note) -> None:
        """Remembers what the door did not put into the spool, for the ledger."""
        self._notes.put(note)

    def count_waiting(self, spool: Spool) -> None:
        """Counts what an earlier process left in the spool. To be called once, before anything is put into it."""
        for record in spool.read(self.position(), spool.backlog_bytes + 1):
            if isinstance(record, Damage):
                continue
            counted = decode.counted(record.body, record.counts).spans if record.counts else items_of(record.signal, record.body)
            self.waiting.add(record.sender, record.signal, counted)

    def load_next(self, spool: Spool) -> int:
        """Loads one batch of what waits, if anything does. Gives the number of bodies taken.

        While much waits, the batch behind it is read by a second thread meanwhile.
        """
        position = self.position()
        try:
            ready = self._taken_ahead(position) or self._prepared(spool, position, None)
        except DATA_FAULTS:
            return self._load_narrowed(spool, LIMIT_RECORDS)
        if ready.batch.after is not None and spool.backlog_bytes - ready.batch.stored_bytes > AHEAD_BYTES:
            self._ahead = (ready.batch.after, self._second.submit(self._prepared, spool, ready.batch.after, None))
        try:
            self._store_noted(ready)
        except DATA_FAULTS:
            self._forget_ahead()
            return self._load_narrowed(spool, len(ready.batch.records))
        return self._told(spool, ready.batch)

    def close(self) -> None:
        """Lets go of what is read ahead."""
        self._forget_ahead()
        self._second.shutdown()

    def _load_narrowed(self, spool: Spool, limit_records: int) -> int:
        """Loads fewer records at once than could not be loaded together, until the one at fault is alone and is set aside."""
        limit_records = max(1, limit_records // 8)
        batch = next_batch(spool, self.position(), limit_records)
        try:
            self._store_noted(self._read(batch))
        except DATA_FAULTS as error:
            if len(batch.records) > 1:
                return self._load_narrowed(spool, len(batch.records))
            if not batch.records:
                raise
            self._store_noted(_Ready(self._without_fault(batch, error)))
        return self._told(spool, batch)

    def _taken_ahead(self, position: Position) -> _Ready | None:
        """What the second thread made of the batch that begins here, if it was this one."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return None
        ready = ahead[1].result()
        return ready if ahead[0] == position else None

    def _forget_ahead(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead[1].exception()  # it has to end before anything else is prepared

    def _store_noted(self, ready: _Ready) -> None:
        notes = drained(self._notes)
        try:
            self._store_ready(ready, notes)
        except BaseException:
            for note in notes:
                self._notes.put(note)
            raise

    def _told(self, spool: Spool, batch: Batch) -> int:
        """Tells the spool, and those who count what waits, what was loaded; gives how many bodies that were."""
        if batch.after is not None:
            spool.loaded(batch.after, batch.stored_bytes)
        for record, items in zip(batch.records, batch.items, strict=True):
            self.waiting.add(record.sender, record.signal, -items)
        return len(batch.records) + len(batch.damaged)

    def _without_fault(self, batch: Batch, error: BaseException) -> Batch:
        """A batch of one record that cannot be loaded, as one without it."""
        record, items = batch.records[0], batch.items[0]
        reason = f"body cannot be loaded: {type(error).__name__}"
        log.warning("a body of %s cannot be loaded and is set aside", record.sender, exc_info=error)
        self._set_aside(record, f"{reason}: {error}")
        self._notes.put(Note(record.sender, record.signal, record.received_unix_nano, reason, max(items, 1)))
        return Batch(damaged=batch.damaged, after=batch.after)

    def _keep_aside(self, batch: Batch) -> None:
        """Puts what is refused or damaged into files of its own, before the position moves past it."""
        for place, reason in batch.refused.items():
            self._set_aside(batch.records[place], reason)
        for damage in batch.damaged:
            log.warning("%d bytes of the spool are damaged and set aside", len(damage.content))
            name = f"{damage.after.segment:09d}-{damage.after.byte_offset:010d}-damaged"
            set_aside.keep(self._store.folder, name, damage.content, {"reason": DAMAGED})
            self._notes.put(Note("unknown", "unknown", time.time_ns(), DAMAGED))

    def _set_aside(self, record: Record, reason: str) -> None:
        told: dict[str, str | int] = {"reason": reason, "sender": record.sender, "signal": record.signal}
        about = told | {"received_unix_nano": record.received_unix_nano}
        name = f"{record.after.segment:09d}-{record.after.byte_offset:010d}-{record.signal}"
        set_aside.keep(self._store.folder, name, record.body, about)

    def _prepared(self, spool: Spool, position: Position, limit_records: int | None) -> _Ready:
        return self._read(next_batch(spool, position, limit_records))

    def _read(self, batch: Batch) -> _Ready:
        """Everything that can be made of a batch without the store."""
        found = sorted_out(batch.records, batch.refused)
        self._deployed.hash_evaluations(found.evaluations)
        spans = self._spans.prepare(found.spans, found.refused) if found.spans else None
        return _Ready(batch, found, spans, self._samples.prepare(found.samples) if found.samples else None)

    def _store_ready(self, ready: _Ready, notes: list[Note]) -> None:
        batch, found, span_batch, sample_batch = ready.batch, ready.found, ready.spans, ready.samples
        if batch.after is None and not notes:
            return
        self._keep_aside(batch)
        tallies = Tallies()
        for note in notes:
            tallies.add(note)
        for record, reason, count in found.rejected:
            tallies.of(record).reject(reason, count)
        with self._store.write() as transaction:
            handed = self._spans.store(transaction, span_batch, tallies) if span_batch is not None else None
            if sample_batch is not None:
                self._samples.store(transaction, sample_batch, tallies)
            load_evaluations.store(transaction, found.evaluations, tallies)
            load_imported.store(transaction, found.requests, tallies, self._deployed.hasher)
            if batch.after is not None:
                transaction.execute("delete from spool_position")
                position = {"segment": batch.after.segment, "byte_offset": batch.after.byte_offset}
                transaction.execute("insert into spool_position values ($segment, $byte_offset)", position)
            if len(tallies):
                transaction.insert("ingest_entries", tallies.rows())
        if handed is not None:
            self.fresh.append(handed)
