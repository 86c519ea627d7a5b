"""Spooled bodies in, rows out, exactly once: the transaction that stores the rows stores the spool position."""

from __future__ import annotations

from queue import SimpleQueue

from collectors import decode
from collectors.ledger import Tallies
from collectors.load_spans import SpanLoader
from collectors.spool import Position, Record, Spool
from queries.store import Store

BATCH_LIMIT_BYTES = 32 * 1024 * 1024
BATCH_LIMIT_SPANS = 150_000
# The reference parser, at the door until the kernels are compiled, takes what they do not: deeper nesting, larger bodies.
UNSOUND = "body is nested too deep"


class Loader:
    """Follows the spool into the store. One loader per store."""

    def __init__(self, store: Store, *, keep_content: bool = False) -> None:
        self._store = store
        self._spans = SpanLoader(keep_content=keep_content)
        self._refused: SimpleQueue[tuple[str, str, int, str]] = SimpleQueue()

    def position(self) -> Position:
        """How far the spool was loaded."""
        found = self._store.rows("select segment, byte_offset from spool_position")
        return Position(found[0]["segment"], found[0]["byte_offset"]) if found else Position(0, 0)

    def note_refused(self, sender: str, received_unix_nano: int, reason: str, signal: str = "traces") -> None:
        """Remembers a body that was turned away at the door, for the ledger; it counts as one."""
        self._refused.put((sender, signal, received_unix_nano, reason))

    def load_next(self, spool: Spool) -> int:
        """Loads one batch of what waits, if anything does. Gives the number of bodies taken."""
        start = self.position()
        records, refused = _batch(spool, start)
        if not records:
            self._store_refused()
            return 0
        after = records[-1].after
        batch = self._spans.prepare(records, refused)
        tallies = Tallies()
        with self._store.write() as transaction:
            self._spans.store(transaction, batch, tallies)
            transaction.execute("delete from spool_position")
            position = {"segment": after.segment, "byte_offset": after.byte_offset}
            transaction.execute("insert into spool_position values ($segment, $byte_offset)", position)
            transaction.insert("ingest_entries", tallies.rows())
        spool.loaded(after, sum(record.stored_bytes for record in records))
        return len(records)

    def _store_refused(self) -> None:
        tallies = Tallies()
        while not self._refused.empty():
            sender, signal, received_unix_nano, reason = self._refused.get()
            tallies.at(sender, signal, received_unix_nano).reject(reason)
        if len(tallies):
            with self._store.write() as transaction:
                transaction.insert("ingest_entries", tallies.rows())


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
