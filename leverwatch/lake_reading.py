"""A lake in, a server's own store kept up with it out: what it judges and shows is pulled, and what questions read lies in its folder.

Requests and spans are the lake's own files, linked or copied as parts of the store. All else is taken in an hour at a time. What judging
starts from, effects and the blocks that they close, comes last: by then all that they follow from is there.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import polars as pl

from leverwatch.store_settings import StoreConfig
from pipeline import lake_cells, lake_compare, segments
from queries import files, lake_mirror, lake_taking
from queries.lake import Lake
from queries.store import Store, Transaction

EVERY_S = 5.0  # between two looks at the lake
BEHIND = timedelta(minutes=10)  # without a round of the worker, where raw tables went on
PARTS = ("requests", "spans")
BY_HOUR = ("samples", "quarantine", "suspicions", "sampling", "evaluations", "lever_settings", "ingest_entries", "rounds")
FOLLOWED = (*PARTS, *BY_HOUR, "cells", "effects")


class LakeReading:
    """What a server takes in of a lake. To be called from one thread."""

    def __init__(self, store: Store, config: StoreConfig, limit_segments: int = segments.LIMIT_SEGMENTS) -> None:
        self.lake = Lake.open(config.uri, config.options)
        self.problem = ""
        self._store, self._mirror_bytes, self._limit_segments = store, config.mirror_bytes, limit_segments
        self._next_s = 0.0
        self._calibrated = store.version("calibrations")

    def take(self, now: datetime) -> int:
        """Takes in what is new, at most every few seconds; gives how much that was.

        Raises:
            LakeError: the lake cannot be read, or is another than the one that was followed.
        """
        if time.monotonic() < self._next_s:
            return 0
        lake_taking.refuse_another(self._store, self.lake, FOLLOWED, now)
        done = sum(self._parts(table, now) for table in PARTS)
        done += sum(lake_taking.take(self._store, self.lake, table, now) for table in BY_HOUR)
        done += lake_taking.take(self._store, self.lake, "cells", now, self._put_cells)
        done += self._compared(now)
        self._publish()
        self.problem = self._behind()
        self._next_s = time.monotonic() + EVERY_S
        return done

    def hurry(self) -> None:
        """Lets the next look at the lake be at once."""
        self._next_s = 0.0

    def _parts(self, table: str, now: datetime) -> int:
        version = self.lake.version(table)
        if version == lake_taking.taken(self._store, table):
            return 0
        covered = lake_mirror.take(self._store, self.lake, table, self._mirror_bytes, now)
        with self._store.write() as transaction:
            lake_taking.note(transaction, table, version, now, covered.since)
        return covered.came + covered.went

    def _put_cells(self, transaction: Transaction, hour: datetime) -> None:
        rows = {kind: _frame(self.lake, kind, hour) for kind in lake_cells.KINDS}
        lake_cells.take(transaction, hour, rows, self._limit_segments)

    def _compared(self, now: datetime) -> int:
        """Effects, what comparing keeps, and the watermark up to which all of it is."""
        done = lake_taking.take(self._store, self.lake, "effects", now, self._put_effects)
        version = self.lake.version(lake_compare.STATE_TABLE)
        if version != lake_taking.taken(self._store, lake_compare.STATE_TABLE):
            kept = {lever: lake_compare.states(self.lake, lever) for lever in sorted(lake_compare.levers(self.lake))}
            with self._store.write() as transaction:
                for lever, state in kept.items():
                    lake_compare.put_states(transaction, lever, state)
                lake_taking.note(transaction, lake_compare.STATE_TABLE, version, now)
            done += len(kept)
        newest = self._store.rows("select mark, ended_at from lake_rounds where mark is not null order by ended_at desc limit 1")
        if newest:
            with self._store.write() as transaction:
                lake_compare.put_mark(transaction, newest[0]["mark"], newest[0]["ended_at"])
        return done

    def _put_effects(self, transaction: Transaction, hour: datetime) -> None:
        rows = lake_taking.once("effects", self.lake.read("effects", None, hour, hour + lake_taking.HOUR))
        transaction.using(rows, files.question("compare_insert"))

    def _publish(self) -> None:
        """Gives the lake what `leverwatch calibrate --apply` wrote here: whoever compares goes by it."""
        version = self._store.version("calibrations")
        if version != self._calibrated:
            rows = self._store.frame("select * from calibrations").to_arrow(compat_level=pl.CompatLevel.oldest())
            self.lake.replace(lake_compare.CALIBRATIONS, rows, ["all"])
            self._calibrated = version

    def _behind(self) -> str:
        """What is not as it should be with whoever works on the lake; empty where nothing is."""
        rows = self._store.rows("select ended_at, failed from lake_rounds order by ended_at desc limit 1")
        if not rows:
            return (
                f"no round of `leverwatch work` on {self.lake.uri} yet: requests and effects are made by it"
                if self.lake.files("spans")
                else ""
            )
        newest = rows[0]
        if newest["failed"]:
            name, reason = (
                next(iter(newest["failed"].items())) if isinstance(newest["failed"], dict) else tuple(newest["failed"][0].values())
            )
            return f"{len(newest['failed'])} tasks of `leverwatch work` failed in its newest round, {name}: {reason}"
        stored = self._store.rows("select max(minute) as newest from ingest_entries")[0]["newest"]
        if stored and stored - newest["ended_at"] > BEHIND:
            return (
                f"`leverwatch work` ended its last round at {newest['ended_at']:%Y-%m-%d %H:%M} UTC; spans have come until {stored:%H:%M}"
            )
        return ""


def _frame(lake: Lake, table: str, hour: datetime) -> pl.DataFrame:
    rows: pl.DataFrame = pl.DataFrame(lake.read(table, None, hour, hour + lake_taking.HOUR))
    return rows
