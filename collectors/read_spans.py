"""Trace exports in, rows of `spans` out, as the deployment has them; nothing is asked of a store."""

from __future__ import annotations

import logging

from collectors import clocks, decode, dialects, rows, translate
from collectors.deployed import Deployed
from collectors.ledger import Tallies
from collectors.marks import odd_marks
from collectors.spool_records import Record

log = logging.getLogger("leverwatch")


class SpanReader:
    """Turns trace exports into rows."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._facts = deployed.facts
        self._dialects = dialects.shipped()
        self._is_dropped = deployed.dropped()
        self._told: set[str] = set()

    def read(self, records: list[Record], refused: dict[int, str]) -> rows.Rows:
        """The rows that records hold; `refused` says which of them cannot be taken, and why."""
        bodies = [b"" if index in refused else record.body for index, record in enumerate(records)]
        counts = [decode.counted(body, record.counts if body else b"").counts for body, record in zip(bodies, records, strict=True)]
        tables = decode.scan(bodies, self._is_dropped, counts)
        arrivals = [rows.Arrival(record.sender, record.received_unix_nano) for record in records]
        said = self._deployed.said(tables, arrivals)
        spoken = self._deployed.finished(translate.spoken(tables, self._dialects, self._facts, said))
        tables = self._deployed.hashed(tables)
        batch = self._deployed.stored(rows.span_rows(tables, spoken, self._facts, arrivals, said))
        batch.refused.extend(refused.items())
        batch.odd.extend(clocks.ahead(batch, records))
        batch.odd.extend(odd_marks(tables, self._facts, self._dialects))
        return batch

    def tell(self, records: list[Record], found: rows.Rows, tallies: Tallies) -> None:
        """Counts what is refused and what is odd; each odd thing is told once."""
        for record in records:
            tallies.of(record)
        for body, reason in found.refused:
            tallies.of(records[body]).reject(reason)
        for body, said, count in found.odd:
            tallies.of(records[body]).reasons[said] += count
            if said not in self._told:
                self._told.add(said)
                log.warning("%s: %s", records[body].sender, said)
