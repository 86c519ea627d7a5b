"""Rows of `requests` in, the same with their provenance as a text of digits beside it out, and SQL that reads where numbers came from.

A map of a dozen entries takes 0.2 µs a request to read, and more to look into: more than all else a report does. So a part keeps
`provenance_digits` too: one digit a column, in the order of `COLUMNS`, its place in `KINDS`. Requests say few different things, so that
the text is stored, read and worked on as one of a small dictionary. No reader of the view `requests` sees it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

DIGITS = "provenance_digits"
KINDS = ("", "span", "body", "log", "counter", "derived", "sample", "other")
OTHER = len(KINDS) - 1
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
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return rows.append_column(DIGITS, pa.chunked_array([_digits(chunk) for chunk in chunks], pa.string()))


def bits(columns: Iterable[str], *, has_digits: bool) -> str:
    """SQL: where these columns of a request come from, as bits: bit n for the n-th of `KINDS`; bit 0 for a column that says nothing."""
    return " | ".join(f"(1::bigint << ({_number(column, has_digits=has_digits)}))" for column in columns) or "2::bigint"


def words(found: str) -> str:
    """SQL: the kinds of some bits as words, sorted and joined by `+`; null where there are none."""
    known = sorted((name, 1 << number) for number, name in enumerate(KINDS) if name)
    said = ", ".join(f"case when {found} & {bit} > 0 then '{name}' end" for name, bit in known)
    return f"nullif(concat_ws('+', {said}), '')"


def _number(column: str, *, has_digits: bool) -> str:
    if has_digits and column in COLUMNS:  # functions of one dictionary: each is worked out once per word, not per row
        return f"ascii(substring({DIGITS}, {COLUMNS.index(column) + 1}, 1)) & 7"
    said = f"provenance['{column}']"
    cases = " ".join(f"when '{name}' then {number}" for number, name in enumerate(KINDS[:OTHER]) if name)
    return f"case when {said} is null then 0 else case {said} {cases} else {OTHER} end end"


def _digits(provenance: pa.MapArray) -> pa.Array:
    """A text per map, as long as there are columns."""
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
    starts = np.arange(0, (count + 1) * len(COLUMNS), len(COLUMNS), dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(starts), pa.py_buffer(table)])


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
