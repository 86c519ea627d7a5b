"""Files to add and to take away in, one commit to a Delta table out; where another came first, it is made anew."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queries.lake_errors import LakeError, told
from queries.lake_files import LakeFile, TablePlace
from queries.lake_tables import HOUR, columns, known

if TYPE_CHECKING:
    from deltalake import DeltaTable

TRIES = 40
PAUSE_S = 0.02
LONGEST_PAUSE_S = 2.0
KEPT_LOG = "interval 3 days"  # who was away for longer takes every hour for changed
CHECKPOINT_EVERY = 100  # commits: a newcomer reads at most so many of the log
RETENTION = "retention"
LOG = "_delta_log"


class StaleMarkError(LakeError):
    """What is to be stored was stored already: a mark stands where it should move to, or beyond."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one commit does: new files as (path, hour, rows), files that go, marks that move, and what it is where rows stay as they are."""

    adds: Sequence[AddedFile] = ()
    removes: Sequence[LakeFile] = ()
    marks: Mapping[str, int] = field(default_factory=dict)
    is_data: bool = True
    what: str = "write"


@dataclass(frozen=True, slots=True)
class AddedFile:
    """A file that was written and that no commit names yet."""

    path: str
    hour: str
    size_bytes: int
    stats: str


class LakeLog:
    """The log of one table. Safe from any thread: one commit of this process at a time."""

    def __init__(self, place: TablePlace, table: str) -> None:
        self.place = place
        self._name = table
        self._lock = threading.RLock()
        self._table: DeltaTable | None = None

    def newest(self) -> DeltaTable | None:
        """The table as it is now; None where there is none yet."""
        from deltalake import DeltaTable

        with self._lock, told(self.place.uri):
            if self._table is not None:
                self._table.update_incremental()
            elif DeltaTable.is_deltatable(self.place.uri, dict(self.place.options)):
                self._table = DeltaTable(self.place.uri, storage_options=dict(self.place.options))
            return self._table

    def commit(self, make: Callable[[DeltaTable], Change]) -> int:
        """Commits what `make` says of the newest table; it is asked again where another commit came between. Gives the version.

        Raises:
            StaleMarkError: a mark does not move on.
            LakeError: the log cannot be written, or others came first again and again.
        """
        from deltalake.exceptions import CommitFailedError

        with self._lock:
            self._made()
            for tried in range(TRIES):
                table = self._newest_made()
                try:
                    with told(self.place.uri, passed=CommitFailedError):
                        return self._committed(table, make(table))
                except CommitFailedError as error:
                    failed = error
                    time.sleep(_pause_s(tried))
        msg = f"{self.place.uri}: {TRIES} commits in a row met another's: {failed}"
        raise LakeError(msg)

    def vacuum(self, keep: timedelta) -> int:
        """Deletes files that were taken away before so long, and those that no commit ever named; gives how many. Raises LakeError."""
        newest = self.newest()
        if newest is None:
            return 0
        hours = -(-keep // timedelta(hours=1))
        with self._lock, told(self.place.uri):
            return len(newest.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))

    def actions(self, version: int) -> list[dict[str, Any]] | None:
        """What one commit said, action by action; None where its file has been cleaned away."""
        try:
            with self.place.filesystem().open_input_file(f"{LOG}/{version:020d}.json") as file:
                return [json.loads(line) for line in file.read().splitlines() if line]
        except FileNotFoundError:
            return None

    def _newest_made(self) -> DeltaTable:
        table = self.newest()
        if table is None:
            msg = f"{self.place.uri}: the table is gone while it is written to"
            raise LakeError(msg)
        return table

    def _made(self) -> None:
        """Makes the table where there is none; another may do so at the same moment."""
        if self._table is not None or self.newest() is not None:
            return
        try:
            self._make()
        except LakeError:
            if self.newest() is None:
                raise

    def _make(self) -> None:
        from deltalake import DeltaTable, Schema

        schema = Schema.from_arrow(pa.schema([*columns(self._name), pa.field(HOUR, pa.string())]))
        with told(self.place.uri):
            if self.place.folder is not None:
                self.place.folder.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                self.place.uri, schema, mode="ignore", partition_by=[HOUR], name=self._name,
                configuration={"delta.logRetentionDuration": KEPT_LOG, "delta.checkpointInterval": str(CHECKPOINT_EVERY)},
                storage_options=dict(self.place.options),
            )  # fmt: skip
            self.place.sync([f"{0:020d}.json"])

    def _committed(self, table: DeltaTable, change: Change) -> int:
        from deltalake import CommitProperties, Transaction

        before = table.version()
        _refuse_stale(table, change.marks, self.place.uri)
        properties = CommitProperties(
            custom_metadata={"leverwatch": change.what}, max_commit_retries=TRIES,
            app_transactions=[Transaction(name, version) for name, version in change.marks.items()],
        )  # fmt: skip
        table.create_write_transaction(_actions(change), "append", table.schema(), [HOUR], commit_properties=properties)
        table.update_incremental()
        since = range(before + 1, table.version() + 1)
        self.place.sync(f"{version:020d}.json" for version in since)
        return self._own(since, change) if len(since) > 1 else table.version()

    def _own(self, versions: range, change: Change) -> int:
        """Which of some versions holds a change."""
        paths = {added.path for added in change.adds}
        for version in versions:
            for action in self.actions(version) or []:
                mark = action.get("txn", {})
                if action.get("add", {}).get("path") in paths or (not paths and change.marks.get(mark.get("appId")) == mark.get("version")):
                    return version
        return versions[-1]


def added_file(place: TablePlace, table: str, hour: str, rows: pa.Table, content: pa.Buffer, *, is_tidy: bool = False) -> AddedFile:
    """Writes a file of an hour, with what readers may skip it by. Raises LakeError."""
    with told(place.uri):
        path = place.put(hour, content, is_tidy=is_tidy)
    stats: dict[str, Any] = {"numRecords": rows.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    time_column = known(table).time
    if time_column is not None and rows.num_rows and not rows[time_column].null_count:
        bounds = pa.compute.min_max(rows[time_column])
        stats["minValues"][time_column] = bounds["min"].as_py().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        stats["maxValues"][time_column] = bounds["max"].as_py().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return AddedFile(path, hour, content.size, json.dumps(stats))


def _actions(change: Change) -> list[Any]:
    from deltalake.transaction import AddAction, RemoveAction

    now_ms = int(time.time() * 1000)
    adds = [AddAction(one.path, one.size_bytes, {HOUR: one.hour}, now_ms, change.is_data, one.stats) for one in change.adds]
    removes = [RemoveAction(one.path, change.is_data, now_ms, one.bytes, {HOUR: one.hour}) for one in change.removes]
    return [*adds, *removes]


def _refuse_stale(table: DeltaTable, marks: Mapping[str, int], uri: str) -> None:
    for name, version in marks.items():
        stands = table.transaction_version(name)
        if stands is not None and stands >= version:
            msg = f"{uri}: mark {name!r} stands at {stands}, what came is of {version}: it was stored already"
            raise StaleMarkError(msg)


def _pause_s(tried: int) -> float:
    """Longer with each try, and by chance, so that those who met part."""
    return float(min(LONGEST_PAUSE_S, PAUSE_S * 2**tried)) * secrets.randbelow(1000) / 1000
