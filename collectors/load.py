"""Spooled bodies in, rows of `spans` out, exactly once: the transaction that stores the rows stores the spool position."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from queue import SimpleQueue

import numpy as np
import pyarrow as pa

from collectors import decode, dialects, rows, translate
from collectors.marks import odd_marks
from collectors.spool import Position, Record, Spool
from queries import files
from queries.store import Store, Transaction

log = logging.getLogger("leverwatch")
BATCH_LIMIT_BYTES = 32 * 1024 * 1024
BATCH_LIMIT_SPANS = 150_000
CLOCK_AHEAD_S = 60
MARGIN_NS = 600 * 1_000_000_000
# The reference parser, at the door until the kernels are compiled, takes what they do not: deeper nesting, larger bodies.
UNSOUND = "body is nested too deep"


@dataclass(slots=True)
class Tally:
    """What became of one sender's spans in one minute."""

    received: int = 0
    stored: int = 0
    duplicate: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class Loader:
    """Follows the spool into the store. One loader per store."""

    def __init__(self, store: Store, *, keep_content: bool = False) -> None:
        self._store = store
        self._facts = dialects.deployment()
        self._dialects = dialects.shipped()
        pattern = dialects.content_pattern(self._facts.content.keys)
        self._is_dropped = None if keep_content else lambda key: pattern.match(key) is not None
        self._told: set[str] = set()
        self._refused: SimpleQueue[tuple[str, int, str]] = SimpleQueue()

    def position(self) -> Position:
        """How far the spool was loaded."""
        found = self._store.rows("select segment, byte_offset from spool_position")
        return Position(found[0]["segment"], found[0]["byte_offset"]) if found else Position(0, 0)

    def note_refused(self, sender: str, received_unix_nano: int, reason: str) -> None:
        """Remembers a body that was turned away at the door, for the ledger; it counts as one."""
        self._refused.put((sender, received_unix_nano // 60_000_000_000, reason))

    def load_next(self, spool: Spool) -> int:
        """Loads one batch of what waits, if anything does. Gives the number of bodies taken."""
        start = self.position()
        records, refused = _batch(spool, start)
        if not records:
            self._store_refused()
            return 0
        after = records[-1].after
        batch = self._rows(records, refused)
        with self._store.write() as transaction:
            tallies = self._stored(transaction, batch, records)
            transaction.execute("delete from spool_position")
            position = {"segment": after.segment, "byte_offset": after.byte_offset}
            transaction.execute("insert into spool_position values ($segment, $byte_offset)", position)
            transaction.insert("ingest_entries", _ledger(tallies))
        spool.loaded(after, sum(record.stored_bytes for record in records))
        return len(records)

    def _store_refused(self) -> None:
        tallies: dict[tuple[str, int], Tally] = {}
        while not self._refused.empty():
            sender, minute, reason = self._refused.get()
            tally = tallies.setdefault((sender, minute), Tally())
            tally.received, tally.rejected = tally.received + 1, tally.rejected + 1
            tally.reasons[reason] += 1
        if tallies:
            with self._store.write() as transaction:
                transaction.insert("ingest_entries", _ledger(tallies))

    def _rows(self, records: list[Record], refused: dict[int, str]) -> rows.Rows:
        bodies = [b"" if index in refused else record.body for index, record in enumerate(records)]
        tables = decode.scan(bodies, self._is_dropped)
        spoken = translate.spoken(tables, self._dialects, self._facts)
        arrivals = [rows.Arrival(record.sender, record.received_unix_nano) for record in records]
        batch = rows.span_rows(tables, spoken, self._facts, arrivals)
        batch.refused.extend(refused.items())
        batch.odd.extend(odd_marks(tables, self._facts, self._dialects))
        return batch

    def _stored(self, transaction: Transaction, batch: rows.Rows, records: list[Record]) -> dict[tuple[str, int], Tally]:
        tallies: dict[tuple[str, int], Tally] = {}
        keys = [(record.sender, record.received_unix_nano // 60_000_000_000) for record in records]
        for key in keys:
            tallies.setdefault(key, Tally())
        for body, reason in batch.refused:
            tally = tallies[keys[body]]
            tally.received, tally.rejected = tally.received + 1, tally.rejected + 1
            tally.reasons[reason] += 1
        for body, said, count in batch.odd:
            tallies[keys[body]].reasons[said] += count
            if said not in self._told:
                self._told.add(said)
                log.warning("%s: %s", keys[body][0], said)
        incoming = batch.spans.append_column("arrival", pa.array(batch.arrival))
        if incoming.num_rows:
            transaction.using(incoming, files.question("load_stage"), {"margin_ns": MARGIN_NS})
            for row in transaction.frame(files.question("load_kinds")).to_dicts():
                tally = tallies[keys[row["arrival"]]]
                tally.received += row["received"]
                tally.stored += row["stored"]
                tally.duplicate += row["received"] - row["stored"]
                if row["differing"]:
                    tally.reasons["duplicate with other content"] += row["differing"]
            transaction.execute(files.question("load_spans"))
            transaction.execute(files.question("load_dirty"))
            transaction.execute(files.question("load_watermarks"), {"ahead_s": CLOCK_AHEAD_S})
            transaction.execute("drop table staged")
        return tallies


def _batch(spool: Spool, start: Position) -> tuple[list[Record], dict[int, str]]:
    """The next records, as many as stay within what a batch may grow to, one at least; and which of them cannot be taken, with why.

    One body must not hold up all that come after it.
    """
    records: list[Record] = []
    refused: dict[int, str] = {}
    spans = expanded_bytes = 0
    for record in spool.read(start, BATCH_LIMIT_BYTES):
        checked = decode.check(record.body)
        reason = checked.too_large if checked.sound else UNSOUND
        if not reason:
            spans, expanded_bytes = spans + checked.spans, expanded_bytes + checked.expanded_bytes
            if records and (spans > BATCH_LIMIT_SPANS or expanded_bytes > decode.LIMIT_EXPANDED_BYTES):
                break
        else:
            refused[len(records)] = reason
        records.append(record)
    return records, refused


def _ledger(tallies: dict[tuple[str, int], Tally]) -> pa.Table:
    minutes = np.array([minute for _, minute in tallies], np.int64) * 60_000_000
    counts = {
        name: pa.array([getattr(tally, name) for tally in tallies.values()], pa.int64())
        for name in ("received", "stored", "duplicate", "rejected")
    }
    zero = pa.array([0] * len(tallies), pa.int64())
    return pa.table(
        {
            "sender": pa.array([sender for sender, _ in tallies], pa.string()),
            "signal": pa.array(["traces"] * len(tallies)),
            "minute": pa.array(minutes).cast(pa.timestamp("us", "UTC")),
            **counts,
            "dropped": zero,
            "pending": zero,
            "late": zero,
            "reasons": pa.array([list(tally.reasons.items()) for tally in tallies.values()], pa.map_(pa.string(), pa.int64())),
        }
    )
