"""A data folder and a lake in, what one holds in the other out: rows, cells, effects, and what comparing keeps; checked as it goes.

Decisions (verdicts, flips, deliveries, silences, saved questions) stay in the data folder of whoever judges.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import polars as pl
import pyarrow as pa

from leverwatch import serve_file
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import jobs, lake_cells, lake_compare, settle
from queries import lake_moving, lake_taking, sealing
from queries.lake import Lake
from queries.lake_moving import Contents, Moved, MovedError
from queries.lake_tables import columns
from queries.parts import SEALED
from queries.store import Store, Transaction

Say = Callable[[str], None]
MOVING = "moving"  # in `lake_taken` while a store is filled
WORKED = ("sample", "settle", "compare", "roll")
INTO_STORE = sorted(lake_moving.TABLES, key=lambda table: table == "cell_histograms")
VERSIONS = ("spans", "imported_requests", "samples")  # that a round of the worker has taken in


def to_lake(folder: Path, config: Config, lake: Lake, say: Say, *, is_switch: bool = False) -> list[Moved]:
    """Moves what a data folder holds into a lake. The folder stays as it is; with `is_switch` it becomes one of a server on that lake.

    Raises:
        MovedError: the folder is served, or the lake has something else.
        StoreError, LakeError: the folder cannot be opened, the lake cannot be written.
    """
    room = _opened(folder, config)
    try:
        room.take_in()
        while sum(step() for name, step in room.steps() if name in WORKED):
            pass
        with Contents() as contents:
            moved = [_told(lake_moving.to_lake(room.store, lake, table, contents), say) for table in lake_moving.TABLES]
        _give_compared(room.store, lake)
        _give_round(room.store, lake, moved)
        if is_switch:
            _empty(room.store)
            say(f"{folder}: what the lake has is the lake's now; serve it with [store] kind = 'delta'")
        return moved
    finally:
        room.close()


def from_lake(lake: Lake, folder: Path, config: Config, say: Say) -> list[Moved]:
    """Moves what a lake holds into a data folder: a new one, or that of a server on the lake, whose decisions stay.

    Raises:
        MovedError: the folder is served, or has rows of its own.
        StoreError, LakeError: the folder cannot be opened, the lake cannot be read.
    """
    room = _opened(folder, config)
    try:
        _begin(room)
        with Contents() as contents:
            moved = [_told(_moved_in(lake, room, table, contents), say) for table in INTO_STORE]
        _take_compared(room, lake)
        return moved
    finally:
        room.close()


def refuse_own_rows(store: Store, where: str) -> None:
    """Refuses a store with spans or requests that no lake has: following one, it would lose them. Raises MovedError."""
    is_following = bool(store.rows("select 1 from lake_taken where relation in ('requests', 'spans')"))
    if not is_following and any(store.rows(f"select 1 from {relation} limit 1") for relation in SEALED):
        msg = f"{store.folder} has spans and requests of its own; {where}"
        raise MovedError(msg)


def _opened(folder: Path, config: Config) -> EngineRoom:
    running = serve_file.live(folder)
    if running:
        msg = f"{folder} is served by process {running.pid} at {running.url}; stop it first"
        raise MovedError(msg)
    return EngineRoom(folder, config)


def _told(moved: Moved, say: Say) -> Moved:
    if moved.rows:
        say(f"{moved.table}: {moved.rows:,} rows of {moved.hours:,} hours, whole numbers sum to {moved.sum:,}")
    return moved


def _give_compared(store: Store, lake: Lake) -> None:
    """What comparing keeps of each lever that has been compared, and how wide scales are."""
    if store.rows("select 1 from closed_blocks limit 1"):
        for row in store.rows("select distinct lever from effects order by lever"):
            lake_compare.give_states(store, lake, row["lever"])
    calibrations = store.frame("select * from calibrations").to_arrow(compat_level=pl.CompatLevel.oldest())
    lake.replace(lake_compare.CALIBRATIONS, calibrations, ["all"])


def _give_round(store: Store, lake: Lake, moved: list[Moved]) -> None:
    """Tells the worker that what was moved is worked out up to the watermark: it makes no hour anew but those that are open."""
    mark, now = jobs.watermark(store), datetime.now().astimezone()
    requests = sum(one.rows for one in moved if one.table == "requests")
    if mark is None or not requests:
        return
    row = {
        "started_at": now, "ended_at": now, "mark": mark, "cutoff": mark - settle.LAG, "hours": 0, "requests": requests, "tasks": 0,
        "tasks_cpu_s": 0.0, "driver_cpu_s": 0.0, "workers": 0, "host": lake_moving.OF_MOVE,
        "versions": [(table, lake.version(table)) for table in VERSIONS], "failed": [],
    }  # fmt: skip
    lake.append("rounds", pa.Table.from_pylist([row], columns("rounds")))


def _empty(store: Store) -> None:
    """Lets go of the spans and requests that a lake has."""
    with store.write() as transaction:
        for relation in SEALED:
            rows = transaction.frame('select "file" from parts where relation = $relation', {"relation": relation})
            transaction.execute(f"delete from {relation}_hot")
            sealing.unlist(store, transaction, relation, rows["file"].to_list())


def _begin(room: EngineRoom) -> None:
    """Makes room for what comes, unless a move was begun here already."""
    store = room.store
    if store.rows(f"select 1 from lake_taken where relation = '{MOVING}'"):
        return
    refuse_own_rows(store, "a lake is moved into a new folder, or into that of a server on it")
    _empty(store)
    with store.write() as transaction:
        lake_taking.note(transaction, MOVING, 0, room.clock())


def _moved_in(lake: Lake, room: EngineRoom, table: str, contents: Contents) -> Moved:
    limit_segments = room.edges.limit_segments

    def put(transaction: Transaction, hour: datetime, rows: pa.Table) -> None:
        if table == "cells":
            beside = lake.read("cell_histograms", None, hour, hour + lake_moving.HOUR)
            both = {"cells": pl.DataFrame(rows), "cell_histograms": pl.DataFrame(beside)}
            lake_cells.take(transaction, hour, both, limit_segments)
        elif table != "cell_histograms":  # they went in with their cells, and are only counted
            lake_taking.replace(transaction, table, hour, rows)

    return lake_moving.from_lake(lake, room.store, table, lake_taking.once, put, contents)


def _take_compared(room: EngineRoom, lake: Lake) -> None:
    """What comparing keeps, how wide scales are, and the watermark of the worker's newest round; then the store goes on by itself."""
    rounds = [row for row in lake.read("rounds", ["mark", "ended_at"]).to_pylist() if row["mark"] is not None]
    newest = max(rounds, key=lambda row: row["ended_at"], default=None)
    with room.store.write() as transaction:
        for lever in sorted(lake_compare.levers(lake)):
            lake_compare.put_states(transaction, lever, lake_compare.states(lake, lever))
        transaction.execute("delete from calibrations")
        transaction.insert("calibrations", lake.read(lake_compare.CALIBRATIONS))
        if newest:
            lake_compare.put_mark(transaction, newest["mark"], newest["ended_at"])
        transaction.execute("delete from lake_taken")
