"""Spooled trace exports in, rows of `spans` out, each span once."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pyarrow as pa

from collectors import decode, dialects, rows, translate
from collectors.ledger import Tallies
from collectors.marks import odd_marks
from collectors.spool import Record
from queries import files
from queries.store import Transaction

log = logging.getLogger("leverwatch")
CLOCK_AHEAD_S = 60
MARGIN_NS = 600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """The records of one batch and the rows they hold."""

    records: list[Record]
    rows: rows.Rows


class SpanLoader:
    """Turns trace exports into rows, and stores those the store does not hold yet."""

    def __init__(self, *, keep_content: bool = False) -> None:
        self._facts = dialects.deployment()
        self._dialects = dialects.shipped()
        pattern = dialects.content_pattern(self._facts.content.keys)
        self._is_dropped = None if keep_content else lambda key: pattern.match(key) is not None
        self._told: set[str] = set()

    def prepare(self, records: list[Record], refused: dict[int, str]) -> SpanBatch:
        """Reads records; `refused` says which of them cannot be taken, and why."""
        bodies = [b"" if index in refused else record.body for index, record in enumerate(records)]
        tables = decode.scan(bodies, self._is_dropped)
        spoken = translate.spoken(tables, self._dialects, self._facts)
        arrivals = [rows.Arrival(record.sender, record.received_unix_nano) for record in records]
        batch = rows.span_rows(tables, spoken, self._facts, arrivals)
        batch.refused.extend(refused.items())
        batch.odd.extend(odd_marks(tables, self._facts, self._dialects))
        return SpanBatch(records, batch)

    def store(self, transaction: Transaction, batch: SpanBatch, tallies: Tallies) -> None:
        """Stores what is new, and counts what became of each span."""
        records, found = batch.records, batch.rows
        for record in records:
            tallies.of(record)
        for body, reason in found.refused:
            tallies.of(records[body]).reject(reason)
        for body, said, count in found.odd:
            tallies.of(records[body]).reasons[said] += count
            if said not in self._told:
                self._told.add(said)
                log.warning("%s: %s", records[body].sender, said)
        incoming = found.spans.append_column("arrival", pa.array(found.arrival))
        if incoming.num_rows:
            self._insert(transaction, incoming, records, tallies)

    def _insert(self, transaction: Transaction, incoming: pa.Table, records: list[Record], tallies: Tallies) -> None:
        transaction.using(incoming, files.question("load_stage"), {"margin_ns": MARGIN_NS})
        for row in transaction.frame(files.question("load_kinds")).to_dicts():
            tally = tallies.of(records[row["arrival"]])
            tally.received += row["received"]
            tally.stored += row["stored"]
            tally.duplicate += row["received"] - row["stored"]
            if row["differing"]:
                tally.reasons["duplicate with other content"] += row["differing"]
        transaction.execute(files.question("load_spans"))
        transaction.execute(files.question("load_dirty"))
        transaction.execute(files.question("load_watermarks"), {"ahead_s": CLOCK_AHEAD_S})
        transaction.execute("drop table staged")
