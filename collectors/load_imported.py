"""Imported requests in, rows of `imported_requests` out, each once."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from collectors import imported
from collectors.identity import Hasher
from collectors.imported import ImportedError
from collectors.ledger import Tallies
from collectors.load_spans import AHEAD
from collectors.spool_records import Record
from queries import files
from queries.store import Transaction


def read(records: list[Record], tallies: Tallies, hasher: Hasher | None = None) -> pa.Table | None:
    """The requests that records hold, each with its record's number in `arrival`, ids as hashes where that is asked for; None without any.

    What cannot be taken is counted.
    """
    tables: list[pa.Table] = []
    for number, record in enumerate(records):
        tally = tallies.of(record)
        try:
            found, wrong = imported.taken(record.body)
            tables.append(imported.rows(found, number, record.sender, record.received_unix_nano))
        except (ImportedError, ValueError, OverflowError) as error:
            tally.reject(str(error)[:200])
            continue
        for reason in wrong:
            tally.reject(reason)
    if not sum(table.num_rows for table in tables):
        return None
    return imported.with_trace_ids(_hashed(pa.concat_tables(tables), hasher))


def store(transaction: Transaction, records: list[Record], tallies: Tallies, hasher: Hasher | None = None) -> None:
    """Stores what is new, moves the sender's watermark, and counts what became of each request."""
    rows = read(records, tallies, hasher)
    if rows is None:
        return
    transaction.using(rows, files.question("load_imported_stage"))
    for row in transaction.frame(files.question("load_imported_kinds")).to_dicts():
        tallies.of(records[row["arrival"]]).found(row["received"], row["stored"])
    transaction.execute(files.question("load_imported"))
    transaction.using(rows.select(["sender", "ended_at", "received_at"]), files.question("load_watermarks"), AHEAD)
    transaction.execute("drop table staged_imported")


def _hashed(rows: pa.Table, hasher: Hasher | None) -> pa.Table:
    for column in ("request_id", "tenant") if hasher else ():
        if hasher and column in hasher.keys:
            hashes = hasher.series(column, pl.Series(rows[column], dtype=pl.String)).to_arrow().cast(pa.string())
            rows = rows.set_column(rows.schema.get_field_index(column), column, hashes)
    return rows
