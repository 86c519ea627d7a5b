"""The thread that runs the jobs of a running server, and hands decided flips to the couriers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from alerts.couriers import Couriers
from alerts.heartbeat import Judging
from leverwatch.engine_room import EngineRoom
from leverwatch.observe.observer import Observer, Run
from pipeline import jobs
from queries.data_errors import is_fatal

MUCH_BYTES = 8 * 1024 * 1024  # of backlog: no round is put off, and rounds do what is urgent
JUDGING = frozenset(("load", "assemble", "settle", "compare", "judge"))  # where one of them fails, nothing is judged
JUDGING_LAKE = frozenset(("take", "judge"))  # the same on a lake, where the others are done elsewhere
URGENT, BEHIND_S = ("load", "assemble"), 2.0  # the other jobs then run this often
PAUSE_S = 0.75  # between rounds, so that exports that come one by one share the transactions of a round

log = logging.getLogger("leverwatch")


class Worker:
    """The thread that runs the jobs: at once when something arrives, and at a steady beat otherwise.

    A job that fails holds up no other: it is tried again each round, and `errors` says which fail now and why.
    """

    def __init__(self, room: EngineRoom, couriers: Couriers, beat_s: float = 1.0, observer: Observer | None = None) -> None:
        self._room, self._couriers, self._beat_s = room, couriers, beat_s
        self.observer = observer or Observer()
        self._wake, self._stop = threading.Event(), threading.Event()
        self.errors: dict[str, str] = {}
        self.on_fatal: Callable[[], object] = lambda: None
        self.has_failed = False
        self._next_s = 0.0
        self._ran: set[str] = set()
        self.judged_at: datetime | None = None  # when everything that judging takes last went through
        room.spool.on_append = self._wake.set
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the round that runs."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _work(self) -> None:
        steps = (*self._room.steps(), ("deliver", self._hand_over))
        while not self._stop.is_set():
            self._wake.clear()
            self._ran.clear()
            is_behind = self._is_behind()
            is_due = not is_behind or time.monotonic() >= self._next_s
            if is_due:
                self._next_s = time.monotonic() + BEHIND_S
            with self.observer.round() as around:
                done = sum(self._run(name, step, around) for name, step in steps if is_due or name in URGENT)
            if not is_behind:
                self._stop.wait(PAUSE_S)
            if not done:
                self._wake.wait(self._beat_s)

    def _run(self, name: str, step: Callable[[], int], around: Run) -> int:
        """One run of a job; gives how much it did. One that fails is told in `errors`."""
        done = 0
        with suppress(Exception), self.observer.job(name) as run:  # whatever it is, the other jobs go on, and nothing accepted is lost
            try:
                run.done = done = step()
            except Exception as error:
                around.done += 1
                self._note(name, error)
                raise
            self.errors.pop(name, None)
            self._ran.add(name)
            around.done += done
        return done

    def _is_behind(self) -> bool:
        return self._room.spool.backlog_bytes >= MUCH_BYTES

    def _note(self, name: str, error: Exception) -> None:
        said = f"{type(error).__name__}: {error}"
        if self.errors.get(name) != said:
            log.error("job %s fails and is tried again", name, exc_info=error, extra={"job": name})
        self.errors[name] = said
        if is_fatal(error):
            self.has_failed = True
            self.on_fatal()

    def _hand_over(self) -> int:
        mark = jobs.watermark(self._room.store)
        if self._ran >= JUDGING or self._ran >= JUDGING_LAKE:
            self.judged_at = self._room.clock()
            self._couriers.note_judging(Judging(self.judged_at, mark))
        if mark is None:
            return 0
        return self._couriers.hand_over(mark, caught_up=self._room.is_caught_up())
