"""Rows of `requests` in, the same with their provenance as a text of digits beside it out, and SQL that reads where numbers came from.

A map of a dozen entries takes 0.2 µs a request to read, and more to look into: more than all else a report does. So a part keeps
`provenance_digits` too: one digit a column, in the order of `COLUMNS`, its place in `KINDS`; 0 where the column is null, `UNSAID` where
only its source is not known. Requests say few different things, so that the text is stored, read and worked on as one of a small
dictionary. No reader of the view `requests` sees it.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DIGITS = "provenance_digits"
KINDS = ("", "body", "counter", "derived", "log", "other", "sample", "span")  # sorted, as words are joined; 0 is for a column that is null
OTHER, UNSAID = 5, 8
BITS_A_METRIC = 8  # the lowest is not looked at: there `UNSAID` of the metric before comes to lie
METRICS_A_WORD = 7
# Parts that are stored say it in this order: new columns are added at the end, none is taken away.
COLUMNS = (
    "prompt_tokens", "cached_tokens", "output_tokens", "queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s", "draft_tokens",
    "accepted_tokens", "verify_steps", "accepted_by_position", "kv_transfer_bytes", "kv_transfer_s", "link_peak_bytes_per_s",
    "batch_at_admission", "concurrency", "queue_depth", "kv_usage", "preemptions", "gpus", "temperature", "samples_n", "kv_block_tokens",
    "gpu_s", "kv_link_s", "evicted_tokens", "gpu_memory_used_bytes", "gpu_memory_free_bytes", "collective_bus_bytes_per_s",
    "communication_fraction", "chunks", "chunk_gap_p50_s", "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s", "stall_s",
)  # fmt: skip


def with_digits(rows: pa.Table) -> pa.Table:
    """The rows with the digits of their provenance, made anew; those of another relation as they are."""
    if "provenance" not in rows.schema.names or not pa.types.is_map(rows.schema.field("provenance").type):
        return rows
    rows = rows.drop_columns([DIGITS]) if DIGITS in rows.schema.names else rows
    column = rows["provenance"]
    maps = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    table = _told(maps.chunk(0) if isinstance(maps, pa.ChunkedArray) else maps)
    for place, name in enumerate(COLUMNS):
        _agree(table[:, place], rows[name] if name in rows.schema.names else None)
    starts = np.arange(0, (len(table) + 1) * len(COLUMNS), len(COLUMNS), dtype=np.int32)
    return rows.append_column(DIGITS, pa.Array.from_buffers(pa.string(), len(table), [None, pa.py_buffer(starts), pa.py_buffer(table)]))


def word(metrics: Sequence[Sequence[str]], *, has_digits: bool, texts: Sequence[str] = ()) -> str:
    """SQL: of one request, where the inputs of some metrics come from, `BITS_A_METRIC` each: bit n for the n-th of `KINDS`.

    Nothing is said of a metric one of whose inputs is null. `texts` are all digits that there are, where they are few: then the word is
    looked up, which is one function of a dictionary and next to nothing; else it costs 30 ns a request.
    """
    if texts and all(is_told(columns, has_digits) for columns in metrics):
        found = ", ".join(f"'{text}': {word_of(text, metrics)}::bigint" for text in texts)
        return f"map {{{found}}}[{DIGITS}]"
    parts = [f"(({_bits(columns, has_digits=has_digits)}) << {place * BITS_A_METRIC})" for place, columns in enumerate(metrics)]
    return " | ".join(parts)


def words(found: str, place: int) -> str:
    """SQL: the kinds that a word has for its metric at a place, sorted and joined by `+`; null where there are none."""
    said = f"lambda name, place: {found} >> {place * BITS_A_METRIC} + place & 1 = 1"
    return f"nullif(array_to_string(list_filter({list(KINDS[1:])}, {said}), '+'), '')"


def word_of(text: str, metrics: Sequence[Sequence[str]]) -> int:
    """What `word` makes of one text of digits, where `is_told` holds of every metric's inputs."""
    found = 0
    for place, columns in enumerate(metrics):
        places = [COLUMNS.index(column) for column in columns]
        numbers = [int(text[at : at + 1] or 0) for at in places]  # a part of before a column was added has fewer
        if all(numbers):
            found |= functools.reduce(operator.or_, (1 << number for number in numbers)) << (place * BITS_A_METRIC)
    return found


def _bits(columns: Sequence[str], *, has_digits: bool) -> str:
    if is_told(columns, has_digits):  # functions of one dictionary: each is worked out once per word, not per row
        digits = [f"(ascii(substring({DIGITS}, {COLUMNS.index(column) + 1}, 1)) & 15)" for column in columns]
        either = " | ".join(f"(1::bigint << {digit})" for digit in digits)
        return either if len(digits) == 1 else f"({either}) * sign({' * '.join(digits)})"
    known = " and ".join(f"{column} is not null" for column in columns)
    either = " | ".join(f'(1::bigint << "{column}:number")' for column in columns)
    return f"case when {known} then {either} else 0 end"


def is_told(columns: Sequence[str], has_digits: bool) -> bool:
    """Whether digits, where rows have them, tell of these columns."""
    return has_digits and set(columns) <= set(COLUMNS)


def numbered(sql: str, columns: Iterable[str]) -> str:
    """A query for rows with the number of each column's word in `KINDS`, as `<column>:number`: what `word` reads without digits."""
    items = [
        f"coalesce(list_position({list(KINDS[1:])}, provenance['{column}']), if(provenance['{column}'] is null, {UNSAID}, {OTHER})) "
        f'as "{column}:number"'
        for column in columns
    ]
    return f"(select {', '.join(['*', *items])} from {sql})"


def _agree(digits: npt.NDArray[np.uint8], column: pa.ChunkedArray | None) -> None:
    """Makes a column's digits say whether it is null, whatever the maps say."""
    if column is None or column.null_count == len(column):
        digits[:] = ord("0")
        return
    unsaid = digits == ord("0")
    if column.null_count:
        known = np.asarray(column.is_valid())
        digits[~known] = ord("0")
        unsaid &= known
    digits[unsaid] = ord("0") + UNSAID


def _told(provenance: pa.MapArray) -> npt.NDArray[np.uint8]:
    """A row of digits per map, of what it tells."""
    count = len(provenance)
    table = np.full((count, len(COLUMNS)), ord("0"), np.uint8)
    offsets = np.asarray(provenance.offsets)
    lengths = np.diff(offsets)
    if provenance.null_count:
        lengths = np.where(np.asarray(provenance.is_null()), 0, lengths)
    entries = _entries(offsets[:-1], lengths)
    row = np.repeat(np.arange(count), lengths)
    place = _codes(provenance.keys, COLUMNS, -1)[entries]
    kind = _codes(provenance.items, KINDS, OTHER)[entries]
    known = place >= 0
    table[row[known], place[known]] = ord("0") + kind[known]
    return table


def _entries(starts: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int64] | slice:
    """Which entries the maps hold: all in a row, but where a null map has some too."""
    total = int(lengths.sum())
    if not len(starts):
        return slice(0, 0)
    if int(starts[-1] - starts[0] + lengths[-1]) == total:
        return slice(int(starts[0]), int(starts[0]) + total)
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(total)


def _codes(texts: pa.Array, words_known: tuple[str, ...], other: int) -> npt.NDArray[np.int64]:
    """The place of each text among some words, `other` where it is none of them."""
    encoded = pc.dictionary_encode(texts)
    places = {word: number for number, word in enumerate(words_known)}
    numbers = np.array([*(places.get(word, other) for word in encoded.dictionary.to_pylist()), other], np.int64)
    found: npt.NDArray[np.int64] = numbers[np.asarray(encoded.indices.fill_null(len(numbers) - 1))]
    return found
