"""A store in, what this process can know of the spans that came before it out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from collectors import wire_ids
from collectors.columns import Bytes, offsets_and_data
from collectors.seen import Hashes, Ints, Seen
from queries import files
from queries.store import Store

RECENT_S = 3600  # as far apart as assembly takes the spans of a trace together
LIMIT_ROWS = 3_000_000
CHUNK_ROWS = 100_000


def seen_before(store: Store) -> tuple[Seen, Seen]:
    """What may be held of span ids, and of trace ids: everything up to the newest stored start, and the newest hour by name.

    Of more than so many spans the newest are known by name. A leg of an older trace that begins only now is held for the first of its
    trace; its request is then made of that leg alone.
    """
    row = store.rows(files.question("load_stored_range"))[0]
    ranges = [(row["first"], row["last"]), (row["first_ahead"], row["last_ahead"])]
    unknown = [(first, last) for first, last in ranges if first is not None]
    spans, traces = Seen(unknown), Seen(unknown)
    if row["last"] is None:
        return spans, traces
    hour = {"since": row["last"] - RECENT_S * 1_000_000_000}
    since = store.rows(files.question("load_recent_since"), hour | {"limit_rows": LIMIT_ROWS})[0]
    with store.snapshot() as seen:
        for recent in seen.tables(files.question("load_recent_ids"), since, CHUNK_ROWS):
            starts_ns = recent["start_unix_nano"].to_numpy()
            of_trace, of_span = _hashes(recent["trace_id"].combine_chunks(), recent["span_id"].combine_chunks())
            spans.note(starts_ns, of_span)
            traces.note(starts_ns, of_trace)
    return spans, traces


def _hashes(trace_ids: pa.Array, span_ids: pa.Array) -> tuple[Hashes, Hashes]:
    traces, spans = _raw(trace_ids, wire_ids.TRACE_BYTES), _raw(span_ids, wire_ids.SPAN_BYTES)
    count = len(trace_ids)
    places: Ints = np.arange(count, dtype=np.int64)
    of_trace, of_span = np.empty(count, np.uint64), np.empty(count, np.uint64)
    buffer = np.concatenate([traces, spans])
    wire_ids.hash_ids(buffer, places * wire_ids.TRACE_BYTES, len(traces) + places * wire_ids.SPAN_BYTES, of_trace, of_span)
    return of_trace, of_span


def _raw(ids: pa.Array, width: int) -> Bytes:
    offsets, text = offsets_and_data(ids.cast(pa.string()))
    raw = np.empty(len(ids) * width, np.uint8)
    wire_ids.bytes_of_hex(text, offsets[:-1], width, raw)
    return raw
