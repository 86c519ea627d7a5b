"""The pipeline's jobs over the store: each takes what the job before left, in the transaction that does its work.

Time here is event time: a block closes when the watermark has passed its end by `settle.LAG`, whatever the wall clock says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import polars as pl

from pipeline import (
    break_even_store,
    cell_store,
    deploys,
    evidence_job,
    partners,
    permission_job,
    segments,
    settle,
    spreads,
    uncontrolled_job,
)
from pipeline.arm_split import Holdout
from pipeline.assemble import assemble
from pipeline.break_even_store import Learned
from pipeline.compare import OF_BOTH_ARMS, OF_TREATED, WINDOW_BLOCKS, effects
from pipeline.evidence_job import Kept
from pipeline.measure import BLOCK_S
from pipeline.tuning import Tuning
from pipeline.uncontrolled_job import Configured
from queries import files, retention, sealing, settling
from queries.data_errors import DATA_ERRORS
from queries.store import Store, Transaction

TRACES_A_RUN = 60_000
BLOCKS_A_RUN = 288
IDLE_SENDER_S = 60
BEHIND_S = 900
BLOCK = timedelta(seconds=BLOCK_S)
_EDGES = segments.Edges()
_NOTHING = Configured()

Retract = Callable[[Transaction], None]


def assemble_next(store: Store, edges: segments.Edges, retract: Retract) -> int:
    """Assembles the traces that got new spans; gives how many traces were taken. `retract` takes what they replace out of the cells.

    Traces that cannot be assembled hold up no others: the batch is narrowed down to them, and they are set aside with the reason.
    """
    limit_rows = TRACES_A_RUN
    retention.leave_settled(store)
    while store.rows("select 1 from dirty_traces limit 1"):
        try:
            return _assemble(store, edges, retract, limit_rows)
        except (ArithmeticError, LookupError, TypeError, ValueError, pl.exceptions.PolarsError, *DATA_ERRORS) as error:
            if limit_rows == 1:
                return _set_aside(store, error)
            limit_rows = max(1, limit_rows // 16)
    return 0


def _assemble(store: Store, edges: segments.Edges, retract: Retract, limit_rows: int) -> int:
    with store.write() as transaction:
        transaction.execute(files.question("assemble_take"), {"limit_rows": limit_rows})
        assembled = assemble(partners.gathered(store, transaction), edges)
        retract(transaction)
        sealing.withdraw(store, transaction)
        transaction.execute(files.question("assemble_forget"))
        transaction.execute(files.question("assemble_forget_quarantine"))
        transaction.using(assembled.requests, files.question("assemble_requests"))
        if not assembled.quarantine.is_empty():
            transaction.insert("quarantine", assembled.quarantine)
        partners.remember(transaction, assembled.open_keys)
        transaction.execute("delete from dirty_traces where trace_id in (select trace_id from working_traces)")
        return len(transaction.frame("select trace_id from working_traces"))


def _set_aside(store: Store, error: Exception) -> int:
    """Takes the next trace out of what waits, with the reason; its spans stay."""
    with store.write() as transaction:
        transaction.execute(files.question("assemble_take"), {"limit_rows": 1})
        reason = {"reason": f"the trace cannot be assembled: {type(error).__name__}: {error}"}
        transaction.execute(files.question("assemble_set_aside"), reason)
        return transaction.execute("delete from dirty_traces where trace_id in (select trace_id from working_traces)")


def watermark(store: Store) -> datetime | None:
    """The oldest of the newest span ends of the senders that still speak; None where nothing was ever seen."""
    found = store.unchanged_rows("watermarks", files.question("watermark"), {"idle_s": IDLE_SENDER_S, "behind_s": BEHIND_S})
    newest: datetime | None = found[0]["watermark"] if found else None
    return newest


def compare_next(
    store: Store,
    *,
    late: bool = True,
    edges: segments.Edges = _EDGES,
    configured: Configured = _NOTHING,
    holdouts: Sequence[Holdout] = (),
) -> int:
    """Folds the blocks that have closed, and compares the arms of those that were not compared; gives how many blocks were taken.

    With `late` false blocks that are older than those compared wait: more of an older history is still to come.
    """
    mark = watermark(store)
    if mark is None or store.rows("select 1 from dirty_traces limit 1"):
        return 0
    closed = mark - settle.LAG
    if not store.rows("select 1 from dirty_blocks where block_started_at <= $last limit 1", {"last": closed - BLOCK}):
        return 0
    if settling.is_waiting(store, settle.block_start(closed)):
        return 0
    blocks, ends = _folded(store, closed, late)
    tuning, deployed = deploys.tuned(store, ends)
    frames, held, bands = _effects(store, ends, edges, tuning) if ends else ([], None, [])
    frames, uncontrolled = uncontrolled_job.completed(store, frames, configured)
    frames, permitted = permission_job.completed(store, ends, frames, holdouts)
    with store.write() as transaction:
        for frame in frames:
            transaction.using(frame, files.question("compare_insert"))
        if held is not None:
            evidence_job.keep(transaction, held)
            break_even_store.keep(transaction, bands)
            deploys.keep(transaction, deployed)
            uncontrolled_job.keep(transaction, uncontrolled)
            permission_job.keep(transaction, permitted)
        if ends:
            transaction.using(pl.DataFrame({"until": ends}), "insert into closed_blocks (until) select until from incoming")
        if not blocks.is_empty():
            transaction.using(blocks, "delete from dirty_blocks where block_started_at in (select block_started_at from incoming)")
    return len(blocks)


def _folded(store: Store, closed: datetime, late: bool) -> tuple[pl.DataFrame, list[datetime]]:
    """(the blocks that were folded, the ends of those to compare): a block of which a segment has no effect yet is compared again."""
    with store.write() as transaction:
        asked = {"mark": closed, "late": late, "block_s": BLOCK_S, "limit_rows": BLOCKS_A_RUN}
        transaction.execute(files.question("compare_ready"), asked)
        blocks = transaction.frame("select block_started_at from working_blocks")
        if blocks.is_empty():
            return blocks, []
        cell_store.fold(transaction, blocks["block_started_at"].to_list())
        transaction.execute(files.question("compare_reopen"), {"block_s": BLOCK_S})
        ends = transaction.frame(files.question("compare_ends"), {"block_s": BLOCK_S})
        return blocks, ends["block_ended_at"].to_list()


def _effects(store: Store, ends: list[datetime], edges: segments.Edges, tuning: Tuning) -> tuple[list[pl.DataFrame], Kept, list[Learned]]:
    """The effects at the ends of blocks, in order; after the last of them the streams of evidence, and where levers stop paying."""
    asked = {"since": ends[0] - BLOCK * WINDOW_BLOCKS, "until": ends[-1], "metrics": [*OF_BOTH_ARMS], "alone": [*OF_TREATED]}
    rows = store.frame(files.question("compare_cells"), asked)
    frames, held = [], evidence_job.kept(store)
    for end, reading, spread in zip(ends, evidence_job.readings(store, ends, rows), spreads.read(store, ends), strict=True):
        since = end - BLOCK * WINDOW_BLOCKS
        inside = rows.filter((pl.col("block_started_at") >= since) & (pl.col("block_started_at") < end))
        if not inside.is_empty():
            block = inside.filter(pl.col("block_started_at") == end - BLOCK)
            held, found = evidence_job.advanced(store, held, block, reading, end, tuning)
            made = pl.concat([effects(inside, end, spread), reading.tails.effects], how="diagonal_relaxed")
            keys = ["lever", "segment", "metric"]
            made = made.join(found, on=keys, how="left", maintain_order="left") if len(made) else made
            frames.append(deploys.with_notes(made, tuning, end))
    bands = break_even_store.learned(store, ends, rows.select("lever", "segment").unique(), edges, tuning)
    return [frame for frame in frames if not frame.is_empty()], held, bands


def unjudged_since(store: Store) -> datetime | None:
    """The end of the oldest block that was compared and that no policy has seen; None where all were judged."""
    oldest: datetime | None = store.rows("select min(until) as oldest from closed_blocks where not judged")[0]["oldest"]
    return oldest


def mark_judged(store: Store) -> None:
    """Notes that policies have seen every block compared so far."""
    with store.write() as transaction:
        transaction.execute("update closed_blocks set judged = true where not judged")
