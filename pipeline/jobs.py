"""The pipeline's jobs over the store: each takes what the job before left, in the transaction that does its work.

Time here is event time: a block closes when the watermark has passed its end by `LAG_S`, whatever the wall clock says.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from pipeline import partners, segments
from pipeline.assemble import assemble
from pipeline.compare import WINDOW_BLOCKS, effects
from pipeline.measure import BLOCK_S, cells
from pipeline.metrics import METRICS
from queries import files, retention, sealing
from queries.data_errors import DATA_ERRORS
from queries.store import Store

TRACES_A_RUN = 60_000
BLOCKS_A_RUN = 48
LAG_S = 120
IDLE_SENDER_S = 60
BEHIND_S = 900
BLOCK = timedelta(seconds=BLOCK_S)


def describe_metrics(store: Store) -> None:
    """Writes the metric rows into the table `metrics`, for people who ask by SQL."""
    rows = pl.DataFrame(
        {
            "name": metric.name,
            "kind": metric.kind,
            "numerator": metric.numerator,
            "denominator": metric.denominator,
            "known_when": metric.known_when,
            "unit": metric.unit,
            "better": metric.better,
            "formula": metric.formula,
            "source": metric.source,
            "traps": list(metric.traps),
        }
        for metric in METRICS
    )
    with store.write() as transaction:
        transaction.execute("delete from metrics")
        transaction.insert("metrics", rows)


def assemble_next(store: Store, edges: segments.Edges) -> int:
    """Assembles the traces that got new spans; gives how many traces were taken.

    Traces that cannot be assembled hold up no others: the batch is narrowed down to them, and they are set aside with the reason.
    """
    limit_rows = TRACES_A_RUN
    retention.leave_settled(store)
    while store.rows("select 1 from dirty_traces limit 1"):
        try:
            return _assemble(store, edges, limit_rows)
        except (ArithmeticError, LookupError, TypeError, ValueError, pl.exceptions.PolarsError, *DATA_ERRORS) as error:
            if limit_rows == 1:
                return _set_aside(store, error)
            limit_rows = max(1, limit_rows // 16)
    return 0


def _assemble(store: Store, edges: segments.Edges, limit_rows: int) -> int:
    with store.write() as transaction:
        transaction.execute(files.question("assemble_take"), {"limit_rows": limit_rows})
        assembled = assemble(partners.gathered(transaction), edges)
        transaction.execute(files.question("assemble_dirty_blocks"), {"block_s": BLOCK_S})
        sealing.withdraw(store, transaction)
        transaction.execute(files.question("assemble_forget"))
        transaction.execute(files.question("assemble_forget_quarantine"))
        transaction.using(assembled.requests, files.question("assemble_requests"))
        if not assembled.quarantine.is_empty():
            transaction.insert("quarantine", assembled.quarantine)
        partners.remember(transaction, assembled.open_keys)
        transaction.execute(files.question("assemble_dirty_blocks"), {"block_s": BLOCK_S})
        transaction.execute("delete from dirty_traces where trace_id in (select trace_id from working_traces)")
        return len(transaction.frame("select trace_id from working_traces"))


def _set_aside(store: Store, error: Exception) -> int:
    """Takes the next trace out of what waits, with the reason; its spans stay."""
    with store.write() as transaction:
        transaction.execute(files.question("assemble_take"), {"limit_rows": 1})
        reason = {"reason": f"the trace cannot be assembled: {type(error).__name__}: {error}"}
        transaction.execute(files.question("assemble_set_aside"), reason)
        return transaction.execute("delete from dirty_traces where trace_id in (select trace_id from working_traces)")


def measure_next(store: Store) -> int:
    """Measures the blocks that have ended and whose requests changed; gives how many blocks were taken.

    A block that is still open would be measured again with each batch, at a cost that grows with what it holds.
    """
    retention.leave_measured(store, BLOCK_S)
    mark = watermark(store)
    if mark is None or not _waiting_blocks(store, mark):
        return 0
    with store.write() as transaction:
        transaction.execute(files.question("measure_take"), {"limit_rows": BLOCKS_A_RUN, "last": mark - BLOCK})
        requests = transaction.frame(files.question("measure_requests"), {"block_s": BLOCK_S})
        transaction.execute("delete from cells where block_started_at in (select block_started_at from working_blocks)")
        if not requests.is_empty():
            rows = cells(requests.with_row_index("row"))
            if not rows.is_empty():
                transaction.insert("cells", rows)
        transaction.execute(files.question("measure_reopen"), {"block_s": BLOCK_S})
        transaction.execute("delete from dirty_blocks where block_started_at in (select block_started_at from working_blocks)")
        return len(transaction.frame("select block_started_at from working_blocks"))


def watermark(store: Store) -> datetime | None:
    """The oldest of the newest span ends of the senders that still speak; None where nothing was ever seen."""
    found = store.rows(files.question("watermark"), {"idle_s": IDLE_SENDER_S, "behind_s": BEHIND_S})
    newest: datetime | None = found[0]["watermark"] if found else None
    return newest


def compare_next(store: Store, *, late: bool = True) -> int:
    """Compares arms at the end of every closed block that was not compared; gives how many there were.

    With `late` false only blocks newer than those compared are taken: more of an older history is still to come.
    """
    mark = watermark(store)
    if mark is None or store.rows("select 1 from dirty_traces limit 1") or _waiting_blocks(store, mark):
        return 0
    ends = _closed_ends(store, mark, late)
    if not ends:
        return 0
    window = {"since": ends[0] - BLOCK * WINDOW_BLOCKS, "until": ends[-1]}
    rows = store.frame(files.question("compare_cells"), window)
    frames = []
    for end in ends:
        since = end - BLOCK * WINDOW_BLOCKS
        inside = rows.filter((pl.col("block_started_at") >= since) & (pl.col("block_started_at") < end))
        if not inside.is_empty():
            frames.append(effects(inside, end))
    with store.write() as transaction:
        for frame in frames:
            if not frame.is_empty():
                transaction.using(frame, files.question("compare_insert"))
        transaction.using(pl.DataFrame({"until": ends}), "insert into closed_blocks (until) select until from incoming")
    return len(ends)


def _waiting_blocks(store: Store, mark: datetime) -> bool:
    """Whether blocks that have ended wait to be measured."""
    return bool(store.rows("select 1 from dirty_blocks where block_started_at <= $last limit 1", {"last": mark - BLOCK}))


def unjudged_since(store: Store) -> datetime | None:
    """The end of the oldest block that was compared and that no policy has seen; None where all were judged."""
    oldest: datetime | None = store.rows("select min(until) as oldest from closed_blocks where not judged")[0]["oldest"]
    return oldest


def mark_judged(store: Store) -> None:
    """Notes that policies have seen every block compared so far."""
    with store.write() as transaction:
        transaction.execute("update closed_blocks set judged = true where not judged")


def _closed_ends(store: Store, mark: datetime, late: bool) -> list[datetime]:
    """The ends of the blocks with cells that have closed and were not compared, in order."""
    params = {"mark": mark - timedelta(seconds=LAG_S), "block_s": BLOCK_S, "late": late}
    return [row["block_ended_at"] for row in store.rows(files.question("compare_ends"), params)]
