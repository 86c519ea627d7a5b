"""Requests whose time has passed in, the same requests with what they met out, and their sums in the cells.

A request is settled once: some two minutes of event time after it began, when those it ran beside and the counters after it are known.
Until then it is in `requests` as it was assembled. One that a late leg makes anew gives its sums back first, and is settled again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import polars as pl

from pipeline import cell_store, guard, replica_load, segments, surroundings
from pipeline.fresh import DATA_FAULTS, rows
from pipeline.measure import BLOCK_S, Cells
from queries import files, of_traces, ranged, settling
from queries.store import Store, Transaction

LAG = timedelta(seconds=120)
STILL = timedelta(seconds=180)  # nothing came for so long: nothing more seems to come
NEVER = datetime(9000, 1, 1, tzinfo=UTC)
UNMEASURED = "the request cannot be measured: it is in no cell"

Measure = Callable[[pl.DataFrame], Cells]


@dataclass(frozen=True, slots=True)
class Settled:
    """Requests with what they met, what was set aside and suspected of them, their cells, and those that are in no cell."""

    requests: pl.DataFrame
    checked: guard.Checked
    sums: list[Cells]
    unmeasured: pl.DataFrame


def cutoff(mark: datetime, quiet: timedelta) -> datetime:
    """Requests that began by then are settled: what event time has passed by a watermark, and everything once all was quiet for `STILL`."""
    return NEVER if quiet > STILL else mark - LAG


def settled(requests: pl.DataFrame, known: surroundings.Surroundings, edges: segments.Edges, measured: Measure) -> Settled:
    """The requests (columns of the table, maps as lists of pairs) settled with what is `known` of their time."""

    def joined(some: pl.DataFrame) -> pl.DataFrame:
        return replica_load.joined(some, known.beside(some, requests), known.samples, edges, known.sampled)

    done, left = _narrowed(requests, joined)
    checked = guard.checked(pl.concat([done, *left], how="diagonal_relaxed"), known.samples, known.recent)
    whole = checked.requests.with_columns(pl.lit(True).alias("is_settled")).select(requests.columns)
    return Settled(whole, checked, *_measured(whole, measured))


def settle_next(store: Store, edges: segments.Edges, measured: Measure, cutoff: datetime, now: datetime) -> int:
    """Settles requests that began by `cutoff`, the oldest first; gives how many were taken, 0 where none is left."""
    due = settling.take(store, cutoff, block_start(cutoff))
    if due is None:
        return 0
    found = settled(due.requests, surroundings.read(store, due.requests), edges, measured)
    with store.write() as transaction:
        if not settling.exchange(store, transaction, due, rows(found.requests), rows(due.rest)):
            return 0
        guard.record(transaction, found.checked, now)
        _set_aside(transaction, found.unmeasured)
        for one in found.sums:
            cell_store.add(transaction, one, limit_segments=edges.limit_segments)
        _touch(transaction, found.requests, now, added=True)
    return len(due.requests)


def retract(store: Store, transaction: Transaction, measured: Measure, now: datetime) -> None:
    """Takes out of the cells what the settled requests of `working_traces` put in; they are about to be replaced."""
    since, until = transaction.frame("select min(replaced_since), max(replaced_until) from working_traces").row(0)
    if since is None:
        return
    ranged.view_of_traces(store, transaction, "requests", since, until, of_traces.REPLACED)
    replaced = of_traces.REPLACED.format(rows="r")
    old = transaction.frame(f"select r.* from near_requests as r semi join {replaced} where r.is_settled is distinct from false")
    if old.is_empty():
        return
    for one in _measured(settling.paired(old), measured)[0]:
        cell_store.add(transaction, one, sign=-1)
    _touch(transaction, old, now, added=False)


def _narrowed(requests: pl.DataFrame, work: Callable[[pl.DataFrame], pl.DataFrame]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """(what `work` makes of the requests, those it fails on): one that cannot be worked on holds up no other."""
    try:
        return work(requests), []
    except DATA_FAULTS:
        if len(requests) == 1:
            return requests.clear(), [requests]
        half = len(requests) // 2
        (one, left), (other, more) = (_narrowed(part, work) for part in (requests[:half], requests[half:]))
        return pl.concat([one, other], how="diagonal_relaxed"), [*left, *more]


def _measured(requests: pl.DataFrame, measured: Measure) -> tuple[list[Cells], pl.DataFrame]:
    """The cells of the requests, and those whose cells cannot be made."""
    sums: list[Cells] = []

    def work(some: pl.DataFrame) -> pl.DataFrame:
        sums.append(measured(some))
        return some

    _, left = _narrowed(requests, work)
    return sums, pl.concat([requests.clear(), *left])


def _set_aside(transaction: Transaction, unmeasured: pl.DataFrame) -> None:
    """Notes the requests that are in no cell."""
    if not unmeasured.is_empty():
        transaction.insert("quarantine", in_no_cell(unmeasured))


def in_no_cell(unmeasured: pl.DataFrame) -> pl.DataFrame:
    """The rows of `quarantine` of requests that cannot be measured."""
    whole = [pl.lit("*").alias("column"), pl.lit(None, pl.String).alias("value"), pl.lit(UNMEASURED).alias("reason")]
    return unmeasured.select("request_id", "trace_id", "started_at", *whole)


def _touch(transaction: Transaction, requests: pl.DataFrame, now: datetime, *, added: bool) -> None:
    """Marks the blocks whose cells changed, and notes it of those that had closed."""
    blocks = requests.group_by(pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at")).agg(pl.len().alias("count"))
    transaction.insert("dirty_blocks", blocks.select("block_started_at"))
    counts = {"added": pl.col("count") if added else pl.lit(0), "removed": pl.lit(0) if added else pl.col("count")}
    told = blocks.select("block_started_at", pl.lit(now).alias("corrected_at"), *(value.alias(name) for name, value in counts.items()))
    transaction.using(told, files.question("settle_correct"), {"block_s": BLOCK_S})


def block_start(moment: datetime) -> datetime:
    """The start of the block that a moment lies in."""
    return moment - timedelta(seconds=moment.timestamp() % BLOCK_S)
