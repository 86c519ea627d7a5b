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

from queries import metric_sql, provenance_digits, report_kernels, report_rows
from queries.metric_sql import MetricRow
from queries.provenance_digits import DIGITS
from queries.report_parts import inputs, words
from queries.report_rows import Source
from queries.report_sources import HOT
from queries.store import Transaction

STARTED = "started_at"
MOST_TEXTS = 1 << 16  # of a key in a chunk
ROWS = 300_000  # of a chunk, or a little more: half of it takes a tenth longer, for all that is done once per chunk


class TooManyKeysError(RuntimeError):
    """A chunk's keys are too many to be numbered by a table; SQL groups by them."""


@dataclass(frozen=True, slots=True)
class RowGroups:
    """Some row groups of a part, one after the other; `is_whole` where every row of them lies in the period."""

    path: Path
    metadata: pq.FileMetaData
    numbers: tuple[int, ...]
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
class Coded:
    """A column of few different texts, null the first of them: runs of places, each with the number in `texts` of each place."""

    texts: list[str | None]
    runs: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]]

    def extend(self, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The codes of other columns, one per row, with this column's behind them; made in their place."""
        first = 0
        for places, numbers in self.runs:
            report_kernels.extend(codes[first : first + len(places)], places, numbers, np.int32(len(self.texts)))
            first += len(places)
        return codes


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some requests: keys, other columns, and their provenance: the place of each request's words among all of them."""

    keys: list[Coded]
    columns: pa.Table
    words: list[npt.NDArray[np.int64]]
    places: npt.NDArray[np.int32]


def wanted(keys: Sequence[str], metrics: Sequence[MetricRow], since: datetime | None, until: datetime | None) -> Wanted:
    """What is to be read for metrics by keys."""
    columns = sorted({column for metric in metrics for column in metric_sql.read_columns(metric)})
    told = tuple(tuple(tuple(inputs(metric)) for metric in some) for _, some in words(metrics))
    return Wanted(tuple(keys), tuple(columns), tuple(metrics), told, since, until)


def row_groups(files: Sequence[Path], since: datetime | None, until: datetime | None) -> Iterator[RowGroups]:
    """The row groups that may hold rows of a period, those of a part that hold `ROWS` together."""
    for path in files:
        metadata = pq.read_metadata(path)
        place = metadata.schema.names.index(STARTED)
        held: dict[bool, list[int]] = {True: [], False: []}
        for number in range(metadata.num_row_groups):
            bounds = metadata.row_group(number).column(place).statistics
            is_whole = _is_in(bounds, since, until)
            if is_whole is None:
                continue
            held[is_whole].append(number)
            if sum(metadata.row_group(one).num_rows for one in held[is_whole]) >= ROWS:
                yield RowGroups(path, metadata, tuple(held[is_whole]), is_whole)
                held[is_whole] = []
        for is_whole, numbers in held.items():
            if numbers:
                yield RowGroups(path, metadata, tuple(numbers), is_whole)


def _is_in(bounds: pq.Statistics | None, since: datetime | None, until: datetime | None) -> bool | None:
    """Whether all rows lie in a period, by their first and last start; null where none does, false where that is not known."""
    if bounds is None or not bounds.has_min_max:
        return since is None and until is None
    if (until is not None and bounds.min >= until) or (since is not None and bounds.max < since):
        return None
    return (since is None or bounds.min >= since) and (until is None or bounds.max < until)


def of_part(groups: RowGroups, asked: Wanted) -> Chunk:
    """The requests of row groups.

    Raises:
        TooManyKeysError: a key has more than `MOST_TEXTS` different texts.
    """
    coded = [*asked.keys, *([DIGITS] if asked.told else [])]
    names = list(dict.fromkeys([*coded, *asked.columns, *([] if groups.is_whole else [STARTED])]))
    with pa.OSFile(str(groups.path)) as file:
        part = pq.ParquetFile(file, metadata=groups.metadata, read_dictionary=coded, pre_buffer=False)
        rows = part.read_row_groups(groups.numbers, names, use_threads=False)
    if not groups.is_whole:
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


def _coded(column: pa.ChunkedArray) -> Coded:
    coded = column if pa.types.is_dictionary(column.type) else column.cast(pa.string()).dictionary_encode()
    texts: dict[str | None, int] = {None: 0}
    runs = []
    for chunk in coded.chunks:
        if len(chunk.dictionary) > MOST_TEXTS:
            raise TooManyKeysError
        of_chunk = [*chunk.dictionary.to_pylist(), None]
        numbers = np.array([texts.setdefault(text, len(texts)) for text in of_chunk], np.int32)
        places = chunk.indices.fill_null(len(of_chunk) - 1) if chunk.null_count else chunk.indices
        runs.append((np.asarray(places), numbers))
    return Coded(list(texts), runs)


def _plain(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    columns = [rows[name].cast(pa.string()) if pa.types.is_dictionary(rows[name].type) else rows[name] for name in names]
    return pa.table(columns, list(names))


def _words_of(rows: pa.Table, told: Sequence[Sequence[Sequence[str]]]) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.int32]]:
    """The words of each of the different digits, and which each row has."""
    if not told:
        return [], np.empty(0, np.int32)
    digits = _coded(rows[DIGITS])
    found = [np.array([provenance_digits.word_of(text or "", some) for text in digits.texts], np.int64) for some in told]
    return found, digits.extend(np.zeros(len(rows), np.int32))
