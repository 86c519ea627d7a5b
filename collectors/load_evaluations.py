"""Evaluations in (posted, from log records, from span events), rows of `evaluations` out, each once."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from collectors import evaluations
from collectors.evaluations import Evaluation, EvaluationError
from collectors.ledger import Tallies, Tally
from collectors.spool_records import Record
from queries import files
from queries.store import Transaction


@dataclass(slots=True)
class EvaluationBatch:
    """Evaluations by the number of their record, and those that cannot be taken. A record is counted under its own signal, a trace
    export's events under `evaluations`."""

    records: list[Record] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, record: Record, items: list[Evaluation | EvaluationError]) -> None:
        """Adds what one record holds."""
        number = len(self.records)
        self.records.append(record)
        self.wrong.extend((number, str(item)) for item in items if isinstance(item, EvaluationError))
        sound = [item for item in items if isinstance(item, Evaluation)]
        try:
            self.tables.append(evaluations.rows(sound, number, record.sender, record.received_unix_nano))
        except (ValueError, OverflowError) as error:  # such as text that is no Unicode
            self.wrong.extend([(number, f"an evaluation that cannot be stored: {type(error).__name__}")] * len(sound))

    def read_posted(self, record: Record) -> None:
        """Adds a posted body."""
        try:
            self.add(record, [*evaluations.posted(record.body)])
        except EvaluationError as error:
            self.add(record, [error])

    def read_span_events(self, record: Record) -> None:
        """Adds the events of a trace export, if it has any."""
        found = list(evaluations.of_spans(record.body, record.received_unix_nano))
        if found:
            self.add(record, found)


def store(transaction: Transaction, batch: EvaluationBatch, tallies: Tallies) -> None:
    """Stores what is new, and counts what became of each evaluation."""
    tell(batch, tallies)
    if not batch.tables:
        return
    transaction.using(pa.concat_tables(batch.tables), files.question("load_evaluations_stage"))
    for row in transaction.frame(files.question("load_evaluations_kinds")).to_dicts():
        tally_of(tallies, batch.records[row["arrival"]]).found(row["received"], row["stored"])
    transaction.execute(files.question("load_evaluations"))
    transaction.execute("drop table staged_evaluations")


def tell(batch: EvaluationBatch, tallies: Tallies) -> None:
    """Counts what cannot be taken."""
    for number, reason in batch.wrong:
        tally_of(tallies, batch.records[number]).reject(reason)


def tally_of(tallies: Tallies, record: Record) -> Tally:
    """The tally that a record's evaluations count in."""
    return tallies.at(record.sender, "evaluations" if record.signal == "traces" else record.signal, record.received_unix_nano)
