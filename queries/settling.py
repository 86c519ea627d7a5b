"""Requests that wait to be settled out of the store, and settled ones into their place: each row is written anew once.

A part holds settled requests or none. One whose requests are not all due is left alone, but for once a block: what is due of it is then
taken, so that the block can close, and the rest goes into a part of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl
import pyarrow as pa

from queries import fresh_parts, sealing
from queries.parts import stored_sql
from queries.store import Store, Transaction

ROWS_A_RUN = 100_000
KEY = ("trace_id", "request_id", "started_at")
NO_ROWS = "(select * from requests_hot limit 0)"


@dataclass(frozen=True, slots=True)
class Due:
    """Requests to settle, where they stand, and the other requests of the same parts."""

    requests: pl.DataFrame
    parts: list[str]
    hot: pl.DataFrame
    rest: pl.DataFrame


def take(store: Store, cutoff: datetime, block_began: datetime, limit_rows: int = ROWS_A_RUN) -> Due | None:
    """The requests that began by `cutoff` and are not settled, the oldest first; None where there are none.

    `block_began` is the start of the block that `cutoff` lies in: of what began before it nothing is left for later.
    """
    with store.snapshot() as seen:
        names = _due_parts(seen, cutoff, block_began, limit_rows)
        hot = seen.frame(
            "select * from requests_hot where is_settled = false and started_at <= $cutoff order by started_at limit $limit_rows",
            {"cutoff": cutoff, "limit_rows": limit_rows},
        )
        rows = _rows(store, seen, names) if names else hot.clear()
    rows, hot = paired(rows), paired(hot)
    is_due = pl.col("started_at") <= cutoff
    requests = pl.concat([rows.filter(is_due), hot.select(rows.columns)], how="vertical_relaxed") if names else hot
    return None if requests.is_empty() else Due(requests, names, hot.select(KEY), rows.filter(~is_due))


def paired(requests: pl.DataFrame) -> pl.DataFrame:
    """The rows with each map as a list of pairs of key and value."""
    maps = [name for name, kind in requests.schema.items() if isinstance(kind, pl.Map)]
    return requests.with_columns(pl.col(maps).cast(pl.List(pl.Struct({"key": pl.String, "value": pl.String}))))


def is_waiting(store: Store, before: datetime) -> bool:
    """Whether requests that began before a moment are not settled."""
    return bool(
        store.rows(
            "select 1 from parts where relation = 'requests' and not is_settled and coalesce(first_start, since) < $before "
            "union all select 1 from requests_hot where is_settled = false and started_at < $before limit 1",
            {"before": before},
        )
    )


def exchange(store: Store, transaction: Transaction, due: Due, settled: pa.Table, rest: pa.Table) -> bool:
    """Puts the settled rows, and the rest, in the place of what was taken; False where a part is gone meanwhile: nothing was done then."""
    listed = transaction.frame("select \"file\" from parts where relation = 'requests' and not is_settled")["file"].to_list()
    if not set(due.parts) <= set(listed):
        return False
    if not due.hot.is_empty():
        same = " and ".join(f"requests_hot.{name} = i.{name}" for name in KEY)
        transaction.using(due.hot, f"delete from requests_hot where is_settled = false and exists (select 1 from incoming i where {same})")
    for name in due.parts:
        sealing.replace(transaction, "requests", name)
    fresh_parts.add(store, transaction, "requests", settled)
    if rest.num_rows:
        fresh_parts.add(store, transaction, "requests", rest, is_settled=False)
    if due.parts:
        sealing.refresh(store, transaction, "requests")
    return True


def _due_parts(seen: Transaction, cutoff: datetime, block_began: datetime, limit_rows: int) -> list[str]:
    parts: list[dict[str, Any]] = seen.frame(
        'select "file", "rows" as held from parts where relation = \'requests\' and not is_settled '
        "and (coalesce(last_start, until) <= $cutoff or coalesce(first_start, since) < $block_began) "
        'order by coalesce(first_start, since), "file"',
        {"cutoff": cutoff, "block_began": min(block_began, cutoff)},
    ).to_dicts()
    chosen: list[str] = []
    count = 0
    for part in parts:
        if chosen and count + part["held"] > limit_rows:
            break
        chosen.append(part["file"])
        count += part["held"]
    return chosen


def _rows(store: Store, seen: Transaction, names: list[str]) -> pl.DataFrame:
    files = [store.parts / "requests" / name for name in names]
    return seen.frame(f"select * from ({stored_sql(NO_ROWS, files)}) order by started_at")
