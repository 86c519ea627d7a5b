"""A lake's table as it is now in, its files out; and which of them may hold what is asked for, and what commits changed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queries.lake_commits import RETENTION
from queries.lake_files import LakeFile
from queries.lake_tables import HOUR, hour_end, hour_start

if TYPE_CHECKING:
    from deltalake import DeltaTable


def listed_files(newest: DeltaTable, uri: str, time_column: str | None) -> list[LakeFile]:
    """The files of a table as it is now, by hour and then by name."""
    told_of = pa.table(newest.get_add_actions(flatten=True))
    names = ["path", "size_bytes", "num_records", f"partition.{HOUR}", "modification_time"]
    bounds = [name for name in (f"min.{time_column}", f"max.{time_column}") if name in told_of.schema.names]
    rows = told_of.select([*names, *bounds]).to_pylist()
    files = [
        LakeFile(
            row["path"],
            f"{uri}/{row['path']}",
            row[names[3]],
            row["num_records"] or 0,
            row["size_bytes"],
            *_range(row, bounds),
            _since_epoch(row[names[4]]),
        )
        for row in rows
    ]
    return sorted(files, key=lambda file: (file.hour, file.path))


def _since_epoch(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _range(row: dict[str, Any], bounds: list[str]) -> tuple[datetime | None, datetime | None]:
    if len(bounds) < 2:
        return None, None
    first, last = (row[name] for name in bounds)
    return first and first.astimezone(UTC), last and last.astimezone(UTC)


def is_over(file: LakeFile, before: datetime, written_before: datetime | None) -> bool:
    """Whether a file's hour ended by a moment, and it was written by another, where that is given."""
    end = hour_end(file.hour)
    is_old = written_before is None or file.written_at is None or file.written_at <= written_before
    return end is not None and end <= before and is_old


def may_hold(file: LakeFile, since: datetime | None, until: datetime | None) -> bool:
    """Whether rows of `[since, until)` may stand in a file, by its bounds, else by its hour."""
    first, last = file.first or hour_start(file.hour), file.last or hour_end(file.hour)
    return (since is None or last is None or last >= since) and (until is None or first is None or first < until)


def changed_parts(actions: list[dict[str, Any]]) -> set[str]:
    """The partitions whose rows one commit changed."""
    if any(action.get("commitInfo", {}).get("leverwatch") == RETENTION for action in actions):
        return set()
    said = [action.get("add") or action.get("remove") for action in actions]
    return {one["partitionValues"][HOUR] for one in said if one and one.get("dataChange")}
