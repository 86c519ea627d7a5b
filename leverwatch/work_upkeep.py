"""A lake and the rules of retention in; its small files merged, copies of rows taken away and what is too old dropped, as tasks, out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from leverwatch.retention_settings import Retention, age
from leverwatch.work_tasks import Work
from queries import lake_upkeep
from queries.lake import Lake

KEEP = timedelta(hours=24)  # a file that was replaced stays so long: whoever began to read it before may still be at it
AGES = {
    "spans": "spans_max_age", "samples": "samples_max_age", "evaluations": "evaluations_max_age", "imported_requests": "requests_max_age",
    "lever_settings": "", "ingest_entries": "requests_max_age", "requests": "requests_max_age", "quarantine": "requests_max_age",
    "suspicions": "requests_max_age", "sampling": "cells_max_age", "cells": "cells_max_age", "cell_histograms": "cells_max_age",
    "effects": "cells_max_age", "rounds": "cells_max_age", "comparison_states": "",
}  # fmt: skip
"""The tables of a lake, and the key of `[retention]` that says how long their rows stay; without one they stay."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a task of upkeep did: files merged, copies that went, files that were dropped or deleted, and the processor seconds."""

    table: str
    merged: int = 0
    copies: int = 0
    dropped: int = 0
    cpu_s: float = 0.0


def tidy(work: Work, table: str, hour: datetime) -> Kept:
    """Merges the small files of an hour, and takes copies away. Raises LakeError."""
    began_s = time.process_time()
    done = lake_upkeep.tidy(work.lake(), table, hour)
    return Kept(table, done.merged, done.copies, cpu_s=time.process_time() - began_s)


def drop(work: Work, table: str, before: datetime | None) -> Kept:
    """Drops the hours that ended, and were stored, before a moment, and deletes files that nothing names any more. Raises LakeError."""
    began_s, lake = time.process_time(), work.lake()
    dropped = lake.remove(table, before, before) if before is not None else 0
    return Kept(table, dropped=dropped + lake.vacuum(table, KEEP), cpu_s=time.process_time() - began_s)


def untidy(work: Work, lake: Lake, now: datetime) -> Iterator[tuple[Work, str, datetime]]:
    """The hours that want to be merged, as arguments of `tidy`."""
    for table in AGES:
        yield from ((work, table, hour) for hour in lake_upkeep.due(lake, table, now))


def old(work: Work, lake: Lake, limits: Mapping[str, timedelta | None], now: datetime) -> Iterator[tuple[Work, str, datetime | None]]:
    """The tables that are there, and before when their rows are too old, as arguments of `drop`."""
    for table in AGES:
        if lake.files(table):
            limit = limits.get(table)
            yield work, table, now - limit if limit else None


def limits(retention: Retention) -> dict[str, timedelta | None]:
    """How long the rows of each table stay; None is forever."""
    return {table: age(key, getattr(retention, key)) if key else None for table, key in AGES.items()}
