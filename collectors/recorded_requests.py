"""A file of canonical requests (Parquet, CSV, JSON lines) in, JSON arrays of its sound rows, oldest first, for the door out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from collectors import imported
from collectors.imported import ImportedError

PARQUET = b"PAR1"
ROWS_A_BODY = 2000


class RowError(ValueError):
    """A row, or a whole file, that is no canonical request; says where and why."""


def is_table(content: bytes) -> bool:
    """Whether a file is Parquet, or CSV whose first line names a request's id and its start."""
    if content.startswith(PARQUET):
        return True
    names = set(columns(content))
    return "started_at" in names and bool(names & {"request_id", "id"})


def columns(content: bytes) -> list[str]:
    """The names in the first line of a text with commas; none where it is no such text."""
    first = content[:65536].splitlines()[:1]
    try:
        head = first[0].decode("utf-8-sig") if first else ""
    except UnicodeDecodeError:
        return []
    return [name.strip().strip('"') for name in head.split(",")] if "," in head and head.isprintable() else []


def table_rows(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """(where, row) of a Parquet or CSV file.

    Raises:
        RowError: the file is broken.
    """
    try:
        if content.startswith(PARQUET):
            number = 0
            for batch in pq.ParquetFile(pa.BufferReader(content)).iter_batches(ROWS_A_BODY):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", row
            return
        for number, row in enumerate(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))), 1):
            yield f"row {number}", {key: value for key, value in row.items() if key is not None}
    except (pa.ArrowException, OSError, csv.Error, UnicodeDecodeError) as error:
        msg = f"a broken table: {error}"
        raise RowError(msg) from error


def bodies(rows: Iterable[tuple[str, Any]]) -> Iterator[bytes | RowError]:
    """JSON arrays of up to 2000 rows by their start, after an error for each row that is no request.

    In the order of their start, since a block is judged once: what comes after it was judged would not count.
    """
    sound: list[tuple[datetime, bytes]] = []
    for where, row in rows:
        plain = _plain(row)
        try:
            started_at = imported.checked(plain).started_at
        except ImportedError as error:
            yield RowError(f"{where}: {error}")
            continue
        sound.append((started_at, msgspec.json.encode(plain)))
    sound.sort(key=lambda row: row[0])
    for start in range(0, len(sound), ROWS_A_BODY):
        yield b"[" + b",".join(text for _, text in sound[start : start + ROWS_A_BODY]) + b"]"


def _plain(row: Any) -> Any:
    """A row without its nulls, maps as objects: Arrow gives them as pairs."""
    if not isinstance(row, dict):
        return row
    said = {key: value for key, value in row.items() if value is not None}
    return {key: dict(value) if key in imported.MAPS and isinstance(value, list) else value for key, value in said.items()}
