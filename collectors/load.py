"""Spooled bodies in, rows out, exactly once: the transaction that stores the rows stores the spool position."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

import polars as pl
import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collectors import decode, load_evaluations, load_imported, otlp_logs, set_aside
from collectors.deployed import Deployed
from collectors.door import items_of
from collectors.fresh import Fresh
from collectors.ledger import Note, Tallies
from collectors.load_evaluations import EvaluationBatch
from collectors.load_samples import SampleLoader
from collectors.load_spans import SpanLoader
from collectors.spool import Spool
from collectors.spool_records import Damage, Position, Record
from collectors.waiting import Waiting
from queries.data_errors import DATA_ERRORS
from queries.store import Store

log = logging.getLogger("leverwatch")

BATCH_LIMIT_BYTES = 32 * 1024 * 1024
BATCH_LIMIT_SPANS = 150_000
FRESH_BATCHES = 4  # that wait for assembly in memory; what came before those is read from the store
# The reference parser, at the door until the kernels are compiled, takes what they do not: deeper nesting, larger bodies.
UNSOUND = "body is nested too deep"
DAMAGED = "damaged in the spool"
# What one odd body can cause; anything else (no space, no memory) is tried again.
DATA_FAULTS = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
    pa.ArrowException, pl.exceptions.PolarsError, *DATA_ERRORS,
)  # fmt: skip


@dataclass(slots=True)
class _Batch:
    """The next records, which of them cannot be taken and why, for how many items each counts, and what is damaged between them."""

    records: list[Record] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    items: list[int] = field(default_factory=list)
    damaged: list[Damage] = field(default_factory=list)
    after: Position | None = None
    stored_bytes: int = 0


@dataclass(slots=True)
class _Sorted:
    """The records of a batch by what they become."""

    spans: list[Record] = field(default_factory=list)
    refused: dict[int, str] = field(default_factory=dict)
    samples: list[Record] = field(default_factory=list)
    requests: list[Record] = field(default_factory=list)
    evaluations: EvaluationBatch = field(default_factory=EvaluationBatch)
    rejected: list[tuple[Record, str, int]] = field(default_factory=list)


class Loader:
    """Follows the spool into the store. One loader per store. `fresh` gets what assembly may take from memory once it is stored."""

    def __init__(self, store: Store, *, keep_content: bool = False, deployed: Deployed | None = None) -> None:
        self._store = store
        self._deployed = deployed or Deployed(keep_content=keep_content)
        self._spans = SpanLoader(store, self._deployed)
        self._samples = SampleLoader()
        self._notes: SimpleQueue[Note] = SimpleQueue()
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
        """Loads one batch of what waits, if anything does. Gives the number of bodies taken."""
        return self._load_next(spool, None)

    def _load_next(self, spool: Spool, limit_records: int | None) -> int:
        """Loads a batch; where it cannot be loaded, fewer records at once, until the one at fault is alone and is set aside."""
        batch = _batch(spool, self.position(), limit_records)
        notes = self._take_notes()
        try:
            self._load(batch, notes)
        except BaseException as error:
            for note in notes:
                self._notes.put(note)
            if not isinstance(error, DATA_FAULTS) or not batch.records:
                raise
            if len(batch.records) > 1:
                return self._load_next(spool, max(1, len(batch.records) // 8))
            self._load(self._without_fault(batch, error), [])
        if batch.after is not None:
            spool.loaded(batch.after, batch.stored_bytes)
        for record, items in zip(batch.records, batch.items, strict=True):
            self.waiting.add(record.sender, record.signal, -items)
        return len(batch.records) + len(batch.damaged)

    def _without_fault(self, batch: _Batch, error: BaseException) -> _Batch:
        """A batch of one record that cannot be loaded, as one without it."""
        record, items = batch.records[0], batch.items[0]
        reason = f"body cannot be loaded: {type(error).__name__}"
        log.warning("a body of %s cannot be loaded and is set aside", record.sender, exc_info=error)
        self._set_aside(record, f"{reason}: {error}")
        self._notes.put(Note(record.sender, record.signal, record.received_unix_nano, reason, max(items, 1)))
        return _Batch(damaged=batch.damaged, after=batch.after)

    def _keep_aside(self, batch: _Batch) -> None:
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

    def _load(self, batch: _Batch, notes: list[Note]) -> None:
        if batch.after is None and not notes:
            return
        self._keep_aside(batch)
        found = _sorted(batch.records, batch.refused)
        self._deployed.hash_evaluations(found.evaluations)
        span_batch = self._spans.prepare(found.spans, found.refused) if found.spans else None
        sample_batch = self._samples.prepare(found.samples) if found.samples else None
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

    def _take_notes(self) -> list[Note]:
        notes: list[Note] = []
        try:
            while True:
                notes.append(self._notes.get_nowait())
        except Empty:
            return notes


def _batch(spool: Spool, start: Position, limit_records: int | None) -> _Batch:
    """The next records, as many as stay within what a batch may grow to, one at least. One body must not hold up all that come after it."""
    batch = _Batch()
    spans = expanded_bytes = 0
    for record in spool.read(start, BATCH_LIMIT_BYTES):
        if isinstance(record, Damage):
            batch.damaged.append(record)
        else:
            checked = decode.counted(record.body, record.counts) if record.signal == "traces" else None
            reason = "" if checked is None else checked.too_large if checked.sound else UNSOUND
            if checked is not None and not reason:
                spans, expanded_bytes = spans + checked.spans, expanded_bytes + checked.expanded_bytes
                if batch.records and (spans > BATCH_LIMIT_SPANS or expanded_bytes > decode.LIMIT_EXPANDED_BYTES):
                    break
            if reason:
                batch.refused[len(batch.records)] = reason
            batch.records.append(record)
            batch.items.append(checked.spans if checked is not None and checked.sound else items_of(record.signal, record.body))
        batch.after, batch.stored_bytes = record.after, batch.stored_bytes + record.stored_bytes
        if len(batch.records) == limit_records:
            break
    return batch


def _sorted(records: list[Record], refused: dict[int, str]) -> _Sorted:
    found = _Sorted()
    for number, record in enumerate(records):
        if record.signal == "traces":
            if number in refused:
                found.refused[len(found.spans)] = refused[number]
            else:
                found.evaluations.read_span_events(record)
            found.spans.append(record)
        elif record.signal in ("metrics", "scrapes"):
            found.samples.append(record)
        elif record.signal == "requests":
            found.requests.append(record)
        elif record.signal == "evaluations":
            found.evaluations.read_posted(record)
        else:
            _sort_logs(record, found)
    return found


def _sort_logs(record: Record, found: _Sorted) -> None:
    """Puts what a logs export says to the spans and the evaluations, each under the record's own signal."""
    try:
        read = otlp_logs.read(ExportLogsServiceRequest.FromString(record.body), record.received_unix_nano)
    except DecodeError:
        found.rejected.append((record, "body is not a sound ExportLogsServiceRequest", 1))
        return
    if read.span_count:
        found.spans.append(replace(record, body=read.spans.SerializeToString()))
    if read.evaluations:
        found.evaluations.add(record, [*read.evaluations])
    found.rejected.extend((record, reason, count) for reason, count in read.rejected.items())
