"""Freshly loaded spans in, their requests into the store: the same rows as `jobs.assemble_next` makes, without reading spans back."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa

from pipeline import partners, segments
from pipeline.assemble import Assembled, assemble
from pipeline.recent import FreshSpans, Recent
from queries import files, fresh_parts, sealing
from queries.data_errors import DATA_ERRORS
from queries.store import Store, Transaction

Retract = Callable[[Transaction], None]
DATA_FAULTS = (ArithmeticError, LookupError, TypeError, ValueError, pl.exceptions.PolarsError, *DATA_ERRORS)


def assemble_fresh(store: Store, recent: Recent, batch: FreshSpans, edges: segments.Edges, retract: Retract) -> int:
    """Assembles the traces of a batch, or marks them to be assembled from the store; gives how many spans were taken.

    `retract` takes the requests that they replace out of the cells.
    What cannot be assembled is left to `jobs.assemble_next`, which narrows it down to the trace at fault.
    """
    split = recent.take(batch)
    try:
        new = None if split.new.is_empty() else assemble(split.new, edges)
        again = None if split.again.is_empty() else assemble(split.again, edges)
        with store.write() as transaction:
            if new is not None:
                _add(store, transaction, new)
                partners.wake(transaction, split.new, new.open_keys)
            if again is not None:
                _replace(store, transaction, split.again, again, retract)
                partners.wake(transaction, split.again, again.open_keys)
            _hand_over(transaction, batch, split.elsewhere)
    except DATA_FAULTS:
        with store.write() as transaction:
            _hand_over(transaction, batch, pl.DataFrame(batch.spans))
    return len(batch.traces)


def expand_dirty_parts(store: Store) -> None:
    """Marks the traces of parts that no assembly has seen: to be called at start, when no memory holds them."""
    names = store.frame('select "file" from dirty_parts')["file"].to_list()
    if not names:
        return
    with store.write() as transaction:
        for name in names:
            spans = fresh_parts.read(store, "spans", name, ["trace_id", "role", "started_at", "ended_at"])
            transaction.using(spans, files.question("load_dirty"))
        transaction.execute("delete from dirty_parts")


def _add(store: Store, transaction: Transaction, made: Assembled) -> None:
    """Stores requests of traces of which none was stored before."""
    if made.requests.is_empty():
        return
    unsettled = rows(made.requests.with_columns(pl.lit(False).alias("is_settled")))
    fresh_parts.add(store, transaction, "requests", unsettled, is_settled=False)
    _finish(transaction, made)


def _replace(store: Store, transaction: Transaction, spans: pl.DataFrame, made: Assembled, retract: Retract) -> None:
    """Stores requests in the place of those that their traces had before."""
    touched = spans.group_by("trace_id").agg(pl.col("started_at").min().alias("since"), pl.col("ended_at").max().alias("until"))
    transaction.using(touched, files.question("assemble_take_fresh"))
    retract(transaction)
    sealing.withdraw(store, transaction)
    transaction.execute(files.question("assemble_forget"))
    transaction.execute(files.question("assemble_forget_quarantine"))
    transaction.using(made.requests, files.question("assemble_requests"))
    _finish(transaction, made)


def _finish(transaction: Transaction, made: Assembled) -> None:
    if not made.quarantine.is_empty():
        transaction.insert("quarantine", made.quarantine)


def _hand_over(transaction: Transaction, batch: FreshSpans, left: pl.DataFrame) -> None:
    """Marks the traces that are left as work for the store's own assembly, and the batch's parts as seen."""
    if not left.is_empty():
        transaction.using(left.select("trace_id", "role", "started_at", "ended_at"), files.question("load_dirty"))
    for name in batch.parts:
        transaction.execute('delete from dirty_parts where "file" = $file', {"file": name})


def rows(requests: pl.DataFrame) -> pa.Table:
    """Assembled requests as the store keeps them: provenance, levers and arms as maps, text as plain strings."""
    table = requests.to_arrow(compat_level=pl.CompatLevel.oldest())
    columns = {name: _plain(table[name], is_map=name in ("provenance", "levers", "arms")) for name in table.schema.names}
    return pa.table(columns)


def _plain(column: pa.ChunkedArray, *, is_map: bool) -> pa.Array:
    array = column.combine_chunks()
    if is_map and not pa.types.is_map(array.type):
        return _map(array)
    if pa.types.is_large_list(array.type):
        return array.cast(pa.list_(array.type.value_type))
    return array.cast(pa.string()) if pa.types.is_large_string(array.type) else array


def _map(pairs: pa.Array) -> pa.Array:
    if pa.types.is_large_list(pairs.type):
        pairs = pairs.cast(pa.list_(pairs.type.value_type))
    entries = pairs.values
    keys, values = (entries.field(place).cast(pa.string()) for place in (0, 1))
    made = pa.MapArray.from_arrays(pairs.offsets, keys, values)
    return pa.compute.if_else(pairs.is_null(), pa.scalar(None, made.type), made) if pairs.null_count else made
