"""Spooled trace exports in, rows of `spans` out, each span once.

What the store surely does not hold is stored without a look at it: many rows at once as a part file, few in the hot table. Only rows that
may be there already, or whose ids the batch itself repeats, are compared with what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collectors import rows
from collectors.deployed import Deployed
from collectors.fresh import Fresh, fresh
from collectors.ledger import Tallies
from collectors.lever_runs import runs
from collectors.read_spans import SpanReader
from collectors.spool_records import Record
from collectors.stored_ids import seen_before
from queries import files, fresh_parts
from queries.store import Store, Transaction

Mask = npt.NDArray[np.bool_]
CLOCK_AHEAD_S = 60
LATE_S = 120  # the lag after which a block closes (pipeline.jobs)
MARGIN_NS = 600 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class SpanBatch:
    """The records of one batch, the rows they hold, whether the store may hold each already, and whether its trace is known."""

    records: list[Record]
    rows: rows.Rows
    is_held: Mask
    is_known: Mask


class SpanLoader:
    """Turns trace exports into rows, and stores those the store does not hold yet."""

    def __init__(self, store: Store, deployed: Deployed | None = None) -> None:
        self._store = store
        self._reader = SpanReader(deployed or Deployed())
        self._spans, self._traces = seen_before(store)

    def prepare(self, records: list[Record], refused: dict[int, str]) -> SpanBatch:
        """Reads records; `refused` says which of them cannot be taken, and why."""
        batch = self._reader.read(records, refused)
        ids = batch.ids
        is_held, is_known = self._spans.maybe(ids.starts_ns, ids.of_span), self._traces.maybe(ids.starts_ns, ids.of_trace)
        self._spans.note(ids.starts_ns, ids.of_span)
        self._traces.note(ids.starts_ns, ids.of_trace)
        return SpanBatch(records, batch, is_held, is_known)

    def store(self, transaction: Transaction, batch: SpanBatch, tallies: Tallies) -> Fresh | None:
        """Stores what is new, and counts what became of each span. Gives what became a part, for assembly, once this is committed."""
        found = batch.rows
        self._reader.tell(batch.records, found, tallies)
        if not found.spans.num_rows:
            return None
        levers = runs(found.spans)
        if levers.num_rows:
            transaction.using(levers, files.question("load_lever_settings"))
        is_new = ~(found.ids.copies | batch.is_held)
        self._add_doubtful(transaction, batch, ~is_new, tallies)
        handed = self._add_new(transaction, batch, is_new, tallies)
        transaction.using(found.spans.select(["sender", "ended_at", "received_at"]), files.question("load_watermarks"), AHEAD)
        return handed

    def _add_new(self, transaction: Transaction, batch: SpanBatch, is_new: Mask, tallies: Tallies) -> Fresh | None:
        """Stores spans that the store surely does not hold."""
        found = batch.rows
        late = np.bincount(found.arrival[is_new & _late(transaction, batch)], minlength=len(batch.records))
        for body, count in enumerate(np.bincount(found.arrival[is_new], minlength=len(batch.records)).tolist()):
            tallies.of(batch.records[body]).found(count, count, int(late[body]))
        spans = found.spans if is_new.all() else found.spans.filter(pa.array(is_new))
        added = fresh_parts.add(self._store, transaction, "spans", spans)
        if added.hot.num_rows:
            transaction.using(added.hot.select(["trace_id", "role", "started_at", "ended_at"]), files.question("load_dirty"))
        if not added.parts:
            return None
        transaction.using(pa.table({"file": pa.array(added.parts)}), "insert into dirty_parts by name from incoming")
        in_part = np.zeros(len(is_new), np.bool_)
        in_part[np.flatnonzero(is_new)[added.in_part]] = True
        of_trace, is_known = found.ids.of_trace, batch.is_known
        if not in_part.all():
            is_known = is_known | np.isin(of_trace, of_trace[~in_part])
            spans = spans.filter(pa.array(added.in_part))
        return fresh(added.parts, spans, of_trace[in_part], is_known[in_part])

    def _add_doubtful(self, transaction: Transaction, batch: SpanBatch, doubtful: Mask, tallies: Tallies) -> None:
        """Stores spans of which the store, or the batch itself, may hold a copy."""
        if not doubtful.any():
            return
        incoming = batch.rows.spans.append_column("arrival", pa.array(batch.rows.arrival)).filter(pa.array(doubtful))
        transaction.using(incoming, files.question("load_stage"), {"margin_ns": MARGIN_NS})
        for row in transaction.frame(files.question("load_kinds"), {"late_s": LATE_S}).to_dicts():
            tally = tallies.of(batch.records[row["arrival"]])
            tally.found(row["received"], row["stored"], row["late"])
            if row["differing"]:
                tally.reasons["duplicate with other content"] += row["differing"]
        transaction.execute(files.question("load_spans"))
        transaction.execute(files.question("load_staged_dirty"))
        transaction.execute("drop table staged")


def _late(transaction: Transaction, batch: SpanBatch) -> Mask:
    """Which spans ended long before what their sender had already said."""
    marks = {row["sender"]: row["ended_at"] for row in transaction.frame("select sender, ended_at from watermarks").to_dicts()}
    until_us = [int((marks[one.sender].timestamp() - LATE_S) * 1e6) if one.sender in marks else 0 for one in batch.records]
    ended_us = np.asarray(batch.rows.spans["ended_at"].cast(pa.int64()))
    mask: Mask = ended_us < np.array(until_us, np.int64)[batch.rows.arrival]
    return mask


AHEAD = {"ahead_s": CLOCK_AHEAD_S}
