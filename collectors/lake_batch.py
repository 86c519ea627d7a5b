"""Bodies as they came in, rows of a lake's tables out, with what became of each body's items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from collectors import load_evaluations, load_imported, load_samples
from collectors.deployed import Deployed
from collectors.ledger import Note, Tallies
from collectors.lever_runs import SettingsSaid
from collectors.load_batch import Sorted, sorted_out
from collectors.load_samples import SampleLoader
from collectors.read_spans import SpanReader
from collectors.spool_records import Record


@dataclass(slots=True)
class LakeBatch:
    """Rows by the lake's table, and the tallies of the bodies that they came in, which are to be stored behind them."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    tallies: Tallies = field(default_factory=Tallies)


class LakeReader:
    """Turns bodies of any signal into rows. Whether a lake holds them already is not asked: copies are taken away there."""

    def __init__(self, deployed: Deployed) -> None:
        self._deployed = deployed
        self._spans = SpanReader(deployed)
        self._samples = SampleLoader()
        self._settings = SettingsSaid()

    def read(self, records: list[Record], refused: dict[int, str], notes: list[Note]) -> LakeBatch:
        """Reads records; `refused` says which of them cannot be taken, `notes` what did not come so far.

        Raises:
            ValueError and others: a record holds what no row can be made of.
        """
        try:
            return self._read(records, refused, notes)
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Nothing that was read lately is sure to stand in the lake: settings of levers are rows again when they are next said."""
        self._settings = SettingsSaid()

    def _read(self, records: list[Record], refused: dict[int, str], notes: list[Note]) -> LakeBatch:
        batch = LakeBatch()
        for note in notes:
            batch.tallies.add(note)
        found = sorted_out(records, refused)
        self._deployed.hash_evaluations(found.evaluations)
        for record, reason, count in found.rejected:
            batch.tallies.of(record).reject(reason, count)
        self._add_spans(batch, found)
        self._add_samples(batch, found)
        _add_evaluations(batch, found)
        requests = load_imported.read(found.requests, batch.tallies, self._deployed.hasher)
        if requests is not None:
            _add(
                batch, "imported_requests", requests.append_column("is_taken", pa.array(np.zeros(len(requests), np.bool_))), found.requests
            )
        return batch

    def _add_spans(self, batch: LakeBatch, found: Sorted) -> None:
        if not found.spans:
            return
        read = self._spans.read(found.spans, found.refused)
        self._spans.tell(found.spans, read, batch.tallies)
        for number, count in enumerate(np.bincount(read.arrival, minlength=len(found.spans)).tolist()):
            batch.tallies.of(found.spans[number]).found(count, count)
        if read.spans.num_rows:
            batch.tables["spans"] = read.spans
            settings = self._settings.new(read.spans)
            if settings.num_rows:
                batch.tables["lever_settings"] = settings

    def _add_samples(self, batch: LakeBatch, found: Sorted) -> None:
        if found.samples:
            read = self._samples.prepare(found.samples)
            load_samples.tell(read, batch.tallies)
            _add(batch, "samples", read.rows, found.samples)


def _add_evaluations(batch: LakeBatch, found: Sorted) -> None:
    load_evaluations.tell(found.evaluations, batch.tallies)
    for table in found.evaluations.tables:
        for number, count in _counts(table):
            load_evaluations.tally_of(batch.tallies, found.evaluations.records[number]).found(count, count)
    if found.evaluations.tables:
        batch.tables["evaluations"] = pa.concat_tables(found.evaluations.tables).drop_columns("arrival")


def _add(batch: LakeBatch, table: str, rows: pa.Table, records: list[Record]) -> None:
    for number, count in _counts(rows):
        batch.tallies.of(records[number]).found(count, count)
    if rows.num_rows:
        batch.tables[table] = rows.drop_columns("arrival")


def _counts(rows: pa.Table) -> list[tuple[int, int]]:
    """How many rows each record has, as (its number, rows)."""
    numbers, counts = np.unique(np.asarray(rows["arrival"]), return_counts=True)
    return list(zip(numbers.tolist(), counts.tolist(), strict=True))
