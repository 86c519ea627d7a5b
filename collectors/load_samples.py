"""Spooled metrics exports and scrapes in, rows of `samples` out, each sample once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from collectors import dialects, meanings, otlp_metrics, prometheus_text, samples
from collectors.ledger import Tallies
from collectors.prometheus_text import PrometheusTextError
from collectors.samples import Sample, Skipped
from collectors.spool_records import Record
from queries import files
from queries.store import Transaction

LATE_NS = 15 * 60 * 1_000_000_000


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, PrometheusTextError) else f"body that cannot be read: {type(error).__name__}"


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """The records of one batch, the rows they hold, and what in them is no sample: (number of the record, why)."""

    records: list[Record]
    rows: pa.Table
    skipped: list[tuple[int, Skipped]]


class SampleLoader:
    """Turns metrics exports and scrapes into rows, and stores those the store does not hold yet."""

    def __init__(self) -> None:
        self._meanings = meanings.shipped()
        self._replica_keys = dialects.deployment().replica.keys

    def prepare(self, records: list[Record]) -> SampleBatch:
        """Reads records of metrics and scrapes."""
        tables = [samples.rows([], record=0, sender="", received_unix_nano=0)]
        skipped: list[tuple[int, Skipped]] = []
        for number, record in enumerate(records):
            try:
                said = list(self._said(record))
                given = self._meanings.given([one for one in said if isinstance(one, Sample)])
                tables.append(samples.rows(given, number, record.sender, record.received_unix_nano))
            except Exception as error:  # whatever a body makes a parser raise: it is set aside and holds up no other
                skipped.append((number, Skipped(_why(error), is_wrong=True)))
            else:
                skipped.extend((number, one) for one in said if isinstance(one, Skipped))
        return SampleBatch(records, pa.concat_tables(tables), skipped)

    def _said(self, record: Record) -> Iterator[Sample | Skipped]:
        if record.signal == "scrapes":
            return prometheus_text.spooled_samples(record.body, record.received_unix_nano, self._replica_keys, self._meanings.own_names)
        return otlp_metrics.points(ExportMetricsServiceRequest.FromString(record.body), self._replica_keys, record.sender)

    def store(self, transaction: Transaction, batch: SampleBatch, tallies: Tallies) -> None:
        """Stores what is new, and counts what became of each sample."""
        tell(batch, tallies)
        if not batch.rows.num_rows:
            return
        transaction.using(batch.rows, files.question("load_samples_stage"))
        for row in transaction.frame(files.question("load_samples_kinds"), {"late_ns": LATE_NS}).to_dicts():
            tallies.of(batch.records[row["arrival"]]).found(row["received"], row["stored"], row["late"])
        transaction.execute(files.question("load_samples"))
        transaction.execute("drop table staged_samples")


def tell(batch: SampleBatch, tallies: Tallies) -> None:
    """Counts what in the records is no sample."""
    for record in batch.records:
        tallies.of(record)
    for number, one in batch.skipped:
        tally = tallies.of(batch.records[number])
        (tally.reject if one.is_wrong else tally.drop)(one.reason)
