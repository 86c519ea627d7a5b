"""A lake and the last round in, what the next round is to do out: the watermark, and the hours of event time that have to be made anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa

from collectors.load_spans import CLOCK_AHEAD_S
from pipeline import jobs, settle
from pipeline.hour_spans import AROUND, HOUR
from queries import over_rows
from queries.lake import BrokenFileError, Lake
from queries.lake_files import LakeFile
from queries.lake_tables import hour_begin

RAW = ("spans", "imported_requests", "samples")
LOOKED_AT = timedelta(hours=2)  # of event time before the newest span: who still speaks has spans there


@dataclass(frozen=True, slots=True)
class Plan:
    """A round: up to which watermark, which requests are settled (those that began by `cutoff`), which hours, and of which versions."""

    mark: datetime | None
    cutoff: datetime
    hours: tuple[datetime, ...]
    versions: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Last:
    """What the last round left: its watermark and cutoff, the versions that it had taken in, and the hours that failed."""

    mark: datetime | None = None
    cutoff: datetime | None = None
    versions: Mapping[str, int] = field(default_factory=dict)
    failed: frozenset[datetime] = frozenset()


def last(lake: Lake) -> Last:
    """The newest round that the lake tells of.

    Another that ended while it ran may have put an older hour in the place of a newer: then what either had not taken in counts as new.
    """
    files = lake.files("rounds")
    if not files:
        return Last()
    newest = max(_told(lake, [file for file in files if file.hour == files[-1].hour]), key=lambda row: row["ended_at"])
    beside = _told(lake, [file for file in files if hour_begin(file.hour) + HOUR > newest["started_at"]])
    rounds = [row for row in beside if row["ended_at"] >= newest["started_at"]]
    seen = [dict(row["versions"]) for row in rounds]
    failed = frozenset(datetime.fromisoformat(name) for row in rounds for name, _ in row["failed"] if name[:1].isdigit())
    return Last(
        _least(row["mark"] for row in rounds),
        _least(row["cutoff"] for row in rounds),
        {table: min(one.get(table, -1) for one in seen) for table in RAW},
        failed,
    )


def _told(lake: Lake, files: Sequence[LakeFile]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.read("rounds", files=files).to_pylist()
    return rows


def _least(moments: Iterable[datetime | None]) -> datetime | None:
    """The first of some moments; None where one is not known."""
    known = [*moments]
    return None if None in known else min(moment for moment in known if moment is not None)


def plan(lake: Lake, before: Last, now: datetime, *, is_last: bool = False) -> Plan:
    """What is to be done now. With `is_last` nothing more is to come, so everything is settled.

    Raises:
        LakeError: the lake cannot be read.
    """
    versions = {table: lake.version(table) for table in RAW}
    senders = _senders(lake, now)
    mark = _mark(senders)
    newest = senders["seen_at"].max()
    quiet = now - newest if isinstance(newest, datetime) else timedelta()
    cutoff = settle.NEVER if is_last or mark is None else settle.cutoff(mark, quiet)
    there = {hour_begin(file.hour) for table in RAW[:2] for file in lake.files(table)}
    changed: set[datetime] = set()
    for table in RAW:
        if versions[table] != before.versions.get(table, -1):
            changed |= lake.changed(table, before.versions.get(table, -1))
    return Plan(mark, cutoff, tuple(sorted(due(there, changed, before, cutoff))), versions)


def due(there: set[datetime], changed: set[datetime], before: Last, cutoff: datetime) -> set[datetime]:
    """The hours, of those that have spans or imported requests, that are to be made anew.

    An hour is finished once it was made when the watermark lay so far behind its end that nothing of the next one matters to it. What comes
    later to a finished hour may matter to its neighbors too.
    """
    moved = bool(changed) or before.cutoff != cutoff
    open_ = {hour for hour in there if not _is_finished(hour, before)} if moved else set()
    late = {hour for hour in changed if _is_finished(hour, before)}
    beside = {hour + step for hour in late for step in (-HOUR, HOUR)}
    return (changed | open_ | beside | before.failed) & there


def _is_finished(hour: datetime, before: Last) -> bool:
    if before.cutoff is None or before.mark is None:
        return False
    return hour + HOUR + AROUND <= before.mark and hour + HOUR <= before.cutoff


def _senders(lake: Lake, now: datetime) -> pl.DataFrame:
    """The newest span end that each sender spoke of, as `watermarks` has it; a clock that runs ahead is held to the time of arrival."""
    files = lake.files("spans", None, now + HOUR) or lake.files("spans")
    since = hour_begin(files[-1].hour) - LOOKED_AT + HOUR if files else now
    recent = [file for file in files if hour_begin(file.hour) >= since]
    rows = pl.concat([pl.DataFrame(some) for some in _read(lake, recent)])
    ended_at = pl.min_horizontal("ended_at", pl.col("received_at") + timedelta(seconds=CLOCK_AHEAD_S))
    return rows.group_by("sender").agg(ended_at.max().alias("ended_at"), pl.col("received_at").max().alias("seen_at"))


def _read(lake: Lake, files: Sequence[LakeFile]) -> Iterator[pa.Table]:
    """What files say of senders. One that is broken holds up its own hour, whose task tells of it, and no other."""
    asked = ["sender", "ended_at", "received_at"]
    yield lake.read("spans", asked, files=[])
    try:
        yield lake.read("spans", asked, files=files)
        return
    except BrokenFileError:
        pass
    for file in files:
        with suppress(BrokenFileError):
            yield lake.read("spans", asked, files=[file])


def _mark(senders: pl.DataFrame) -> datetime | None:
    asked = {"idle_s": jobs.IDLE_SENDER_S, "behind_s": jobs.BEHIND_S}
    mark: datetime | None = over_rows.answered("watermark", {"watermarks": senders}, asked)["watermark"].item()
    return mark
