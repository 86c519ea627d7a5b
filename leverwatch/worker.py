"""The thread that runs the jobs of a running server, and hands decided flips to the couriers."""

from __future__ import annotations

import threading

from alerts.couriers import Couriers
from leverwatch.engine_room import EngineRoom
from pipeline import jobs


class Worker:
    """The thread that runs the jobs: at once when something arrives, and at a steady beat otherwise."""

    def __init__(self, room: EngineRoom, couriers: Couriers, beat_s: float = 1.0) -> None:
        self._room, self._couriers, self._beat_s = room, couriers, beat_s
        self._wake, self._stop = threading.Event(), threading.Event()
        self.error: Exception | None = None
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
        while not self._stop.is_set():
            self._wake.clear()
            try:
                done = self._room.work_once()
                self._hand_over()
                self.error = None
            except Exception as error:  # a job's failure is shown by /readyz and tried again; nothing accepted is lost
                self.error, done = error, 0
            if not done:
                self._wake.wait(self._beat_s)

    def _hand_over(self) -> None:
        mark = jobs.watermark(self._room.store)
        if mark is not None:
            self._couriers.hand_over(mark, caught_up=self._room.is_caught_up())
