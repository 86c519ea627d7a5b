"""Statements that run in child processes, by ids in: how long each has run, what it may take, and an end to it at once, out."""

from __future__ import annotations

import re
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

_TAKEN = re.compile(r"[A-Za-z0-9-]{1,64}")


class RunIdError(ValueError):
    """An id that no run can have: it has other characters than are taken, or is that of a run."""


class Run:
    """One statement on its way: it waits for its place, then has a child process."""

    def __init__(self, run_id: str, limit_rows: int, wall_s: float) -> None:
        self.run_id, self.limit_rows, self.wall_s = run_id, limit_rows, wall_s
        self._asked_s = time.monotonic()
        self._started_s: float | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self.is_stopped = False

    @property
    def is_waiting(self) -> bool:
        """Whether it has no child process yet."""
        return self._started_s is None

    @property
    def elapsed_s(self) -> float:
        """Seconds since its child began; of one that waits, since it was asked."""
        return time.monotonic() - (self._asked_s if self._started_s is None else self._started_s)

    def holds(self, child: subprocess.Popen[bytes]) -> None:
        """Takes its child process, and ends it where the run was stopped before it began."""
        with self._lock:
            self._child, self._started_s = child, time.monotonic()
            if self.is_stopped:
                child.kill()

    def stop(self) -> None:
        """Ends it at once, whatever it waits for."""
        with self._lock:
            self.is_stopped = True
            if self._child is not None:
                self._child.kill()


class Runs:
    """The statements of one sandbox that are on their way. Thread-safe."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._lock = threading.Lock()

    def new_id(self) -> str:
        """An id that nothing else has."""
        return uuid.uuid4().hex

    @contextmanager
    def on_their_way(self, run_id: str | None, limit_rows: int, wall_s: float) -> Iterator[Run]:
        """A run, known by its id (None: one is made) until the block ends. Raises RunIdError."""
        run = Run(checked(run_id) if run_id is not None else self.new_id(), limit_rows, wall_s)
        with self._lock:
            if run.run_id in self._runs:
                msg = f"a statement with the id {run.run_id} is running; take another id, or DELETE it first"
                raise RunIdError(msg)
            self._runs[run.run_id] = run
        try:
            yield run
        finally:
            with self._lock:
                del self._runs[run.run_id]

    def find(self, run_id: str) -> Run | None:
        """The run of this id; None where none is on its way."""
        with self._lock:
            return self._runs.get(run_id)

    def stop(self, run_id: str) -> bool:
        """Ends the run of this id at once; False where none is on its way."""
        run = self.find(run_id)
        if run is not None:
            run.stop()
        return run is not None

    def stop_all(self) -> None:
        """Ends every run at once."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.stop()


def checked(run_id: str) -> str:
    """The id, if a run may have it. Raises RunIdError."""
    if _TAKEN.fullmatch(run_id) is None:
        msg = f"id {run_id[:80]!r}: 1 to 64 letters, digits and hyphens are taken"
        raise RunIdError(msg)
    return run_id
