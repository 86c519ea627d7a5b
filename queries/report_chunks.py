"""A store and a period in, chunks of the requests of that period out: row groups of parts, keys as codes of a dictionary, and hot rows.

For a report that adds up columns itself (`pipeline/tally.py`); all others read by SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queries import metric_sql, provenance_digits, report_rows
from queries.metric_sql import MetricRow
from queries.provenance_digits import DIGITS
from queries.report_parts import inputs, words
from queries.report_rows import Source
from queries.report_sources import HOT
from queries.store import Transaction

STARTED = "started_at"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a part; `is_whole` where every row of it lies in the period."""

    path: Path
    metadata: pq.FileMetaData
    number: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is read of requests: keys, the columns that metrics are made of, and a period.

    `told` are the inputs of the metrics whose provenance is told by each word.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    metrics: tuple[MetricRow, ...]
    told: tuple[tuple[tuple[str, ...], ...], ...]
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some requests: keys as dictionary arrays, other columns, and their provenance: the place of each request's words among all of them."""

    keys: list[pa.DictionaryArray]
    columns: pa.Table
    words: list[npt.NDArray[np.int64]]
    places: npt.NDArray[np.int32]


def wanted(keys: Sequence[str], metrics: Sequence[MetricRow], since: datetime | None, until: datetime | None) -> Wanted:
    """What is to be read for metrics by keys."""
    columns = sorted({column for metric in metrics for column in metric_sql.read_columns(metric)})
    told = tuple(tuple(tuple(inputs(metric)) for metric in some) for _, some in words(metrics))
    return Wanted(tuple(keys), tuple(columns), tuple(metrics), told, since, until)


def row_groups(files: Sequence[Path], since: datetime | None, until: datetime | None) -> Iterator[RowGroup]:
    """The row groups that may hold rows of a period."""
    for path in files:
        metadata = pq.read_metadata(path)
        place = metadata.schema.names.index(STARTED)
        for number in range(metadata.num_row_groups):
            known = metadata.row_group(number).column(place).statistics
            least, most = (known.min, known.max) if known is not None and known.has_min_max else (None, None)
            is_out = least is not None and ((until is not None and least >= until) or (since is not None and most < since))
            is_whole = (since is None or (least is not None and least >= since)) and (until is None or (most is not None and most < until))
            if not is_out:
                yield RowGroup(path, metadata, number, is_whole)


def of_part(group: RowGroup, asked: Wanted) -> Chunk:
    """The requests of a row group."""
    coded = [*asked.keys, *([DIGITS] if asked.told else [])]
    names = list(dict.fromkeys([*coded, *asked.columns, *([] if group.is_whole else [STARTED])]))
    with pq.ParquetFile(group.path, metadata=group.metadata, read_dictionary=coded) as part:
        rows = part.read_row_group(group.number, names, use_threads=False)
    if not group.is_whole:
        rows = rows.filter(_in_period(rows[STARTED], asked))
    return Chunk([_coded(rows[name]) for name in asked.keys], _plain(rows, asked.columns), *_words_of(rows, asked.told))


def of_hot(transaction: Transaction, asked: Wanted) -> Chunk:
    """The requests of the hot table."""
    keys = [(name, f'"{name}"') for name in asked.keys]
    period = {"since": asked.since, "until": asked.until}
    conditions = [f"started_at {'>=' if name == 'since' else '<'} ${name}" for name, value in period.items() if value is not None]
    tables = ", ".join(report_rows.rows(keys, asked.metrics, asked.columns, " and ".join(conditions), (Source(HOT),)))
    params = {name: value for name, value in period.items() if value is not None}
    rows = transaction.frame(f"with {tables} select * from rows", params).to_arrow()
    found = [np.asarray(rows[name.strip('"')].cast(pa.int64())) for name, _ in words(asked.metrics)]
    every = np.arange(len(rows), dtype=np.int32)
    return Chunk([_coded(rows[name]) for name in asked.keys], rows.select(list(asked.columns)), found, every)


def _in_period(started: pa.ChunkedArray, asked: Wanted) -> pa.ChunkedArray:
    bounds = [(pc.greater_equal, asked.since), (pc.less, asked.until)]
    held = [compare(started, pa.scalar(value, started.type)) for compare, value in bounds if value is not None]
    return held[0] if len(held) == 1 else pc.and_(*held)


def _coded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _plain(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    columns = [rows[name].cast(pa.string()) if pa.types.is_dictionary(rows[name].type) else rows[name] for name in names]
    return pa.table(columns, list(names))


def _words_of(rows: pa.Table, told: Sequence[Sequence[Sequence[str]]]) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int32]]:
    """The words of each of the different digits, and which each row has."""
    if not told:
        return [], np.empty(0, np.int32)
    digits = _coded(rows[DIGITS])
    texts = digits.dictionary.to_pylist()
    found = [np.array([*(provenance_digits.word_of(text, some) for text in texts), 0], np.int64) for some in told]
    return found, np.asarray(digits.indices.fill_null(len(texts)))
