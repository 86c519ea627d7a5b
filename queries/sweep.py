"""Part files that the store lists no longer in, free space out: a file goes when nobody can still be reading it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from queries.parts import SEALED
from queries.sealing import part_files
from queries.store import Store

GRACE_S = 30.0  # a copy of hot rows names the parts of its moment, and serves readers for some seconds more (queries.hot_copies)
WRITTEN_FOR_S = 300.0  # a file is written before it is listed: what was written to since may be on its way


@dataclass(slots=True)
class Sweep:
    """Remembers since when a file was seen unlisted, and deletes it some time after. One per store."""

    store: Store
    grace_s: float = GRACE_S
    written_for_s: float = WRITTEN_FOR_S
    _gone_s: dict[Path, float] = field(default_factory=dict)

    def note(self) -> None:
        """Looks for files that are not listed: to be called now and then, and after some were unlisted."""
        found = {path for relation in SEALED for path in (self.store.parts / relation).glob("*.parquet")}
        with self.store.snapshot() as seen:  # after the folder was read: a file that a commit lists meanwhile is listed then
            listed = {path for relation in SEALED for path in part_files(self.store, seen, relation)}
        now_s, written_before = time.monotonic(), time.time() - self.written_for_s
        unlisted = {path for path in found - listed if path.is_file() and (path in self._gone_s or _changed(path) < written_before)}
        self._gone_s = {path: self._gone_s.get(path, now_s) for path in unlisted}

    def sweep(self) -> int:
        """Deletes the files that were unlisted a while ago, and before the oldest reader of now began; gives how many."""
        before_s = min(time.monotonic() - self.grace_s, self.store.read_since_s())
        free = [path for path, gone_s in self._gone_s.items() if gone_s <= before_s]
        for path in free:
            path.unlink(missing_ok=True)
            del self._gone_s[path]
        return len(free)

    def close(self) -> None:
        """Deletes what is not listed, at the end, when nobody reads or writes any more: the next start would set it aside as unknown."""
        self.grace_s, self.written_for_s = 0.0, float("-inf")
        with suppress(duckdb.Error):  # a store that gave itself up can list nothing: then nothing goes
            self.note()
            self.sweep()

    @property
    def pending_bytes(self) -> int:
        """What the files that wait to be deleted will free; one that a snapshot shares frees nothing."""
        return sum(_frees(path) for path in self._gone_s)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


def _frees(path: Path) -> int:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return 0
    return stat.st_size if stat.st_nlink == 1 else 0
