"""A transaction in that has taken the traces to assemble; all spans of their requests out, those of other traces included.

A response body, a log record or a leg of a pair may have come under a trace of its own. What such spans state as their id is kept in
`open_keys`, so that a trace that comes later finds them; what came before is looked for among the spans. Engine requests that are whole
look for nobody and are kept nowhere: a fleet that sends only these pays nothing for it.
"""

from __future__ import annotations

import polars as pl

from pipeline.joining import stated_keys
from queries import files, ranged
from queries.store import Store, Transaction

ROUNDS = 8  # a partner may hold another request whose partner is a third trace, and so on
OLD = "noted_at < current_timestamp - interval 1 hour"


def gathered(store: Store, transaction: Transaction) -> pl.DataFrame:
    """The spans of the traces in `working_traces`, and of the traces that belong to them, which are added there."""
    spans = _spans(store, transaction)
    for _ in range(ROUNDS):
        keys = stated_keys(spans)
        if keys.is_empty() or not (keys["seeks"].any() or _is_awaited(transaction)):
            break
        seeking = keys if _is_awaited(transaction) else keys.filter("seeks")  # one that sought before is asked for too
        if not seeking.is_empty():
            ranged.view(store, transaction, "spans", *seeking.select(pl.col("near_since").min(), pl.col("near_until").max()).row(0))
        if not transaction.using(keys, files.question("assemble_partners")):
            break
        spans = _spans(store, transaction)
    return spans


def _spans(store: Store, transaction: Transaction) -> pl.DataFrame:
    since, until = transaction.frame("select min(since), max(until) from working_traces").row(0)
    if since is not None:
        ranged.view_of_traces(store, transaction, "spans", since, until)
    return transaction.frame(files.question("assemble_spans"))


def wake(transaction: Transaction, spans: pl.DataFrame, open_keys: pl.DataFrame) -> None:
    """Leaves to the store's own assembly those traces of freshly assembled spans that share an id with another trace."""
    if _is_awaited(transaction):
        transaction.execute(f"delete from open_keys where {OLD}")
    if not open_keys.is_empty():
        transaction.insert("open_keys", open_keys)
    if _is_awaited(transaction):
        keys = stated_keys(spans)
        if not keys.is_empty():
            transaction.using(keys, files.question("assemble_awaited"))


def remember(transaction: Transaction, open_keys: pl.DataFrame) -> None:
    """Keeps the keys under which these traces may still be completed, in place of what was kept of them."""
    if _is_awaited(transaction):
        transaction.execute(f"delete from open_keys where {OLD} or trace_id in (select trace_id from working_traces)")
    if not open_keys.is_empty():
        transaction.insert("open_keys", open_keys)


def _is_awaited(transaction: Transaction) -> bool:
    return not transaction.frame("select 1 from open_keys limit 1").is_empty()
