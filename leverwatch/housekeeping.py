"""A store, its folder and the rules of retention in; what is too old or too much dropped, and the disk kept from filling up."""

from __future__ import annotations

import logging
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from leverwatch.retention_settings import Retention, age, rules
from queries import folding, lost_parts, retention
from queries.compacting import Compactor
from queries.storage import Holding, holdings
from queries.store import Store
from queries.sweep import Sweep

PAUSE_S = 60.0
PRESSURE = 2  # times the free space at which exports are refused: from here on sealed rows go for want of space
UNDER_PRESSURE = ("spans", "requests")
SET_ASIDE = "set_aside"

log = logging.getLogger("leverwatch")


@dataclass(slots=True)
class Housekeeping:
    """Retention of one data folder, a bounded round at a time. To be called from one thread."""

    store: Store
    asked: Retention
    sweep: Sweep = field(init=False)
    compactor: Compactor = field(init=False)
    lost_parts: str = field(default="", init=False)  # what is missing of the parts that are listed; empty where nothing is
    _next_s: float = 0.0
    _next_check_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.sweep, self.compactor = Sweep(self.store), Compactor(self.store)

    def step(self, now: datetime, mark: datetime | None = None) -> int:
        """One round at the watermark `mark`; gives how many rows and files were handled. The next waits a minute where there were none."""
        self._check_parts()
        if time.monotonic() < self._next_s:
            return 0
        done = self._drop(now) + self.sweep.sweep() + self._drop_set_aside(now) + folding.fold_next(self.store, now)
        done += self.compactor.step(mark) if mark else 0
        self.sweep.note()
        if not done:
            self._next_s = time.monotonic() + PAUSE_S
        return done

    def close(self) -> None:
        """Gives up what is being compacted, and deletes the files that are listed no longer."""
        self.compactor.close()
        self.sweep.close()

    def holdings(self) -> list[dict[str, Any]]:
        """What every relation and folder holds: rows, bytes, oldest, newest."""
        folders = [_held(self.store.folder / name, name) for name in ("spool", SET_ASIDE)]
        return [holding.as_row() for holding in (*holdings(self.store), *folders)]

    def free_bytes(self) -> int:
        """What the disk has free."""
        return shutil.disk_usage(self.store.folder).free

    def _check_parts(self) -> None:
        """Looks once a minute whether every listed part is there and whole."""
        if time.monotonic() < self._next_check_s:
            return
        self._next_check_s = time.monotonic() + PAUSE_S
        before, self.lost_parts = self.lost_parts, lost_parts.told(lost_parts.lost_now(self.store))
        if self.lost_parts and self.lost_parts != before:
            log.error("%s; put it back: questions fail, and without it the next start does too", self.lost_parts)

    def _drop(self, now: datetime) -> int:
        short = self.free_bytes() + self.sweep.pending_bytes < PRESSURE * self.asked.min_free_bytes
        done = 0
        for rule in rules(self.asked):
            is_short = short and not done and rule.relation in UNDER_PRESSURE
            done += retention.drop_next(self.store, rule, now, is_short=is_short)
        return done

    def _drop_set_aside(self, now: datetime) -> int:
        """Deletes bodies that were set aside, the oldest first."""
        max_age = age("set_aside_max_age", self.asked.set_aside_max_age)
        files = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in _files(self.store.folder / SET_ASIDE))
        total_bytes, done = sum(size for _, size, _ in files), 0
        for changed, size, path in files:
            is_old = max_age is not None and changed < (now - max_age).timestamp()
            if not is_old and not (self.asked.set_aside_max_bytes and total_bytes > self.asked.set_aside_max_bytes):
                break
            path.unlink(missing_ok=True)
            total_bytes, done = total_bytes - size, done + 1
        return done + (lost_parts.drop_set_aside(self.store, now - max_age) if max_age is not None else 0)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.is_file()]


def _held(folder: Path, name: str) -> Holding:
    stats = []
    for path in _files(folder):
        with suppress(FileNotFoundError):  # the spool lets go of a file at any moment
            stats.append(path.stat())
    times = [datetime.fromtimestamp(stat.st_mtime).astimezone() for stat in stats]
    return Holding(name, None, sum(stat.st_size for stat in stats), min(times, default=None), max(times, default=None))
