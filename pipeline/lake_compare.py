"""A lever's cells of a lake in, its effects at the ends of the blocks that have closed since the last time out, by `jobs.compare_next`.

What comparing keeps of a lever from block to block is one partition of the lake's `comparison_states`, replaced once its effects are there.
A task that dies between the two compares the same blocks again, and adds no effect that is there already.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl
import pyarrow as pa

from pipeline import jobs, lake_cells, segments
from pipeline.arm_split import Holdout
from pipeline.measure import ALL_REQUESTS
from pipeline.permission import CYCLE_BLOCKS
from pipeline.uncontrolled_job import Configured
from queries import lake_mirror, lake_taking
from queries.lake import Lake
from queries.lake_rows import conformed
from queries.lake_tables import columns, hour_begin
from queries.store import Store, Transaction

STATES = (
    "detector_state", "break_even", "break_even_kept", "uncontrolled_effects", "uncontrolled_hours", "premise_state", "replica_blocks",
    "arm_split_state", "deploys", "closed_blocks",
)  # fmt: skip
OF_ALL = ("deploys", "closed_blocks")  # without a lever: every lever's task finds the same
_ADDED = {
    "deploys": "insert into deploys by name (select * from incoming except select * from deploys)",
    "closed_blocks": "insert into closed_blocks (until) select until from incoming where until not in (select until from closed_blocks)",
}
STATE_TABLE, CALIBRATIONS = "comparison_states", "calibrations"
BACK = timedelta(hours=2) + CYCLE_BLOCKS * jobs.BLOCK  # how far before a block its comparison reads
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """What comparing goes by: the edges of buckets, what levers without control are held against, and the shares of control."""

    edges: segments.Edges
    configured: Configured
    holdouts: Sequence[Holdout] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """What a task did: the lever, the blocks that it took and their effects, and the processor seconds."""

    lever: str
    blocks: int
    effects: int
    cpu_s: float


def work(store: Store, lake: Lake, lever: str, mark: datetime, asked: Asked) -> Compared:
    """Compares a lever's arms in the blocks that have closed by a watermark. `store` is empty, or as the last such call left it.

    Raises:
        LakeError: the lake cannot be read or written.
    """
    began_s = time.process_time()
    if not _is_current(store, lake, lever):
        _restore(store, lake, lever)
    _take_in(store, lake, lever, mark)
    before = store.rows("select coalesce(max(rowid), -1) as newest from effects")[0]["newest"]
    blocks = 0
    while taken := jobs.compare_next(store, edges=asked.edges, configured=asked.configured, holdouts=asked.holdouts):
        blocks += taken
    made = store.frame("select * from effects where rowid > $before", {"before": before})
    if blocks:
        _give(store, lake, lever, made)
    return Compared(lever, blocks, len(made), time.process_time() - began_s)


def states(lake: Lake, lever: str) -> dict[str, pa.Table]:
    """What is kept of a lever, by relation; empty where it was never compared."""
    files = [file for file in lake.files(STATE_TABLE) if file.hour == lever]
    rows = lake.read(STATE_TABLE, files=files).to_pylist() if files else []
    return {row["relation"]: pa.ipc.open_stream(row["content"]).read_all() for row in rows}


def levers(lake: Lake) -> set[str]:
    """The levers that were compared before."""
    return {file.hour for file in lake.files(STATE_TABLE)}


def put_states(transaction: Transaction, lever: str, kept: Mapping[str, pa.Table]) -> None:
    """Writes what is kept of a lever in the place of what a store has of it."""
    for relation, rows in kept.items():
        if relation in OF_ALL:
            transaction.using(rows, _ADDED[relation])
        else:
            transaction.execute(f"delete from {relation} where lever = $lever", {"lever": lever})
            transaction.insert(relation, rows)


def _is_current(store: Store, lake: Lake, lever: str) -> bool:
    """Whether the store is where the lake's newest state of the lever was left."""
    held = store.rows("select version from lake_taken where relation = $lever", {"lever": lever})
    return bool(held) and held[0]["version"] == _state_version(lake, lever)


def _state_version(lake: Lake, lever: str) -> int:
    """A number that stands for the state's newest file."""
    names = [file.path for file in lake.files(STATE_TABLE) if file.hour == lever]
    return lake_taking.number_of("".join(names))


def _restore(store: Store, lake: Lake, lever: str) -> None:
    """Puts the lake's state of a lever into a store that knows nothing, with its effects of the time that is read again."""
    kept = states(lake, lever)
    closed = kept["closed_blocks"]["until"] if "closed_blocks" in kept else pa.array([], pa.timestamp("us", "UTC"))
    until = pa.compute.max(closed).as_py()
    with store.write() as transaction:
        for relation in (*STATES, "effects", "lake_taken", "dirty_blocks", "block_cells", "block_histograms", "cell_periods"):
            transaction.execute(f"delete from {relation}")
        put_states(transaction, lever, kept)
        if until is not None:
            effects = lake.read("effects", None, until - BACK, until + jobs.BLOCK)
            transaction.insert("effects", effects.filter(pa.compute.equal(effects["lever"], lever)))


def _take_in(store: Store, lake: Lake, lever: str, mark: datetime) -> None:
    """Takes in the cells and requests that changed since the last time."""
    taken = {row["relation"]: row["version"] for row in store.rows("select relation, version from lake_taken")}
    until = store.rows("select max(until) as until from closed_blocks")[0]["until"]
    since = until - BACK if until else None
    version = lake.version("cells")
    hours = lake.changed("cells", taken["cells"]) if "cells" in taken else {hour_begin(file.hour) for file in lake.files("cells", since)}
    lake_mirror.take(store, lake, "requests", 0, mark, (until or mark) - BACK)
    calibrations = lake.read(CALIBRATIONS)
    for hour in sorted(one for one in hours if since is None or one + HOUR > since):
        rows = {kind: _frame(lake.read(kind, None, hour, hour + HOUR)) for kind in lake_cells.KINDS}
        blocks = rows["cells"].filter(pl.col("lever") == ALL_REQUESTS)["block_started_at"].unique()
        own = {kind: some.filter(pl.col("lever") == lever) for kind, some in rows.items()}
        with store.write() as transaction:
            lake_cells.take(transaction, hour, own)
            transaction.insert("dirty_blocks", blocks.to_frame())
    with store.write() as transaction:
        transaction.execute("delete from calibrations")
        transaction.insert("calibrations", calibrations)
        lake_taking.note(transaction, "cells", version, mark)
        put_mark(transaction, mark, mark)
        transaction.execute("delete from block_cells where started_at < $since", {"since": (until or mark) - 2 * BACK})
        transaction.execute("delete from block_histograms where started_at < $since", {"since": (until or mark) - 2 * BACK})


def put_mark(transaction: Transaction, mark: datetime, seen_at: datetime) -> None:
    """Makes a moment the watermark of a store that a lake is read into."""
    transaction.execute("delete from watermarks")
    transaction.execute("insert into watermarks values ('lake', $mark, $seen_at)", {"mark": mark, "seen_at": seen_at})


def _give(store: Store, lake: Lake, lever: str, made: pl.DataFrame) -> None:
    """Adds effects to the lake, those that it does not have, then puts what is kept in the place of what was."""
    rows = conformed(made.to_arrow(compat_level=pl.CompatLevel.oldest()), columns("effects"))
    if rows.num_rows:
        first, last = (pa.compute.min_max(rows["until"])[end].as_py() for end in ("min", "max"))
        keys = ("lever", "segment", "until")
        there = _frame(lake.read("effects", keys, first, last + timedelta(microseconds=1))).unique()
        new = _frame(rows.select(keys)).with_row_index("row").join(there, on=keys, how="anti").sort("row")
        lake.append("effects", rows.take(new["row"].to_arrow()))
    newest = give_states(store, lake, lever)
    with store.write() as transaction:
        lake_taking.note(transaction, lever, _state_version(lake, lever), newest)


def give_states(store: Store, lake: Lake, lever: str) -> datetime:
    """Puts what comparing keeps of a lever in a store in the place of what the lake has; gives the end of the last block that was compared.

    Raises:
        LakeError: the lake cannot be written.
    """
    newest: datetime = store.rows("select max(until) as until from closed_blocks")[0]["until"]
    kept = {relation: _kept(store, relation, lever) for relation in STATES}
    told = [{"lever": lever, "until": newest, "relation": name, "content": _stream(rows)} for name, rows in kept.items()]
    lake.replace(STATE_TABLE, pa.Table.from_pylist(told, columns(STATE_TABLE)), [lever])
    return newest


def _kept(store: Store, relation: str, lever: str) -> pa.Table:
    own, params = ("", None) if relation in OF_ALL else (" where lever = $lever", {"lever": lever})
    with store.snapshot() as seen:
        return pa.concat_tables([columns(relation).empty_table(), *seen.tables(f"select * from {relation}{own}", params)])


def _stream(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _frame(rows: pa.Table) -> pl.DataFrame:
    frame: pl.DataFrame = pl.DataFrame(rows)
    return frame
