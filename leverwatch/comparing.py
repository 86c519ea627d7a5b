"""Comparisons that pages ask for in, their answers out once they are there: they take longer than a page may wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from dashboards.compared import Compared, Comparison

KEEP_S = 60.0
KEEP_TIMES = 20.0  # an answer stands for as many times as long as it took: an open page keeps a core busy for a twentieth of the time
MOST_KEPT = 64
MOST_WAITING = 4
MOST_LOOKING = 8  # callers that wait for an answer: each holds a thread of the pages' pool
STOP_EVERY_S = 0.1
Explain = Callable[[Comparison], pl.DataFrame]


@dataclass
class _Asked:
    """One comparison: its newest answer, and the one on its way."""

    running: Future[None] | None
    started_s: float
    answer: Compared
    answered_s: float = 0.0
    took_s: float = 0.0


class Comparisons:
    """Runs one comparison at a time and keeps each answer for a minute at least; it stands until the next is there. Thread-safe.

    However many are asked for, by whatever page, `MOST_WAITING` are on their way, `MOST_LOOKING` callers wait, and `MOST_KEPT` are kept.
    """

    def __init__(self, explain: Explain, clock: Callable[[], datetime], stop: Callable[[], None]) -> None:
        self._explain, self._clock, self._stop = explain, clock, stop
        self._pool = ThreadPoolExecutor(1, "compare")
        self._lock = threading.Lock()
        self._asked: dict[Comparison, _Asked] = {}
        self._looking = threading.BoundedSemaphore(MOST_LOOKING)

    def ask(self, asked: Comparison, wait_s: float) -> Compared:
        """What is known by now; a first answer is waited for, `wait_s` at most, and not at all where as many wait already as may."""
        one = self._started(asked)
        running = one.running
        if running is not None and one.answer.answered_at is None and self._looking.acquire(blocking=False):
            try:
                wait([running], wait_s)
            finally:
                self._looking.release()
        with self._lock:
            return replace(one.answer, running_s=time.monotonic() - one.started_s if one.running is not None else None)

    def close(self) -> None:
        """Stops the one that is running, and drops those behind it."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = [one.running for one in self._asked.values() if one.running is not None]
        while not all(one.done() for one in running):  # again and again: it has two statements
            self._stop()
            wait(running, STOP_EVERY_S)

    def _started(self, asked: Comparison) -> _Asked:
        with self._lock:
            now_s = time.monotonic()
            one = self._asked.pop(asked, None) or _Asked(None, now_s, Compared())
            is_due = one.answer.answered_at is None or now_s - one.answered_s > max(KEEP_S, KEEP_TIMES * one.took_s)
            if one.running is None and is_due:
                self._start(asked, one, now_s)
            if one.running is not None or one.answer.answered_at is not None:
                self._asked[asked] = one  # the newest asked last: the first are forgotten first
            return one

    def _start(self, asked: Comparison, one: _Asked, now_s: float) -> None:
        if sum(other.running is not None for other in self._asked.values()) >= MOST_WAITING:
            if one.answer.answered_at is None:
                one.answer = Compared(error=f"{MOST_WAITING} comparisons are on their way; ask again in a moment")
            return
        ended = [key for key, other in self._asked.items() if other.running is None]
        for old in ended[: max(0, len(self._asked) + 1 - MOST_KEPT)]:
            del self._asked[old]
        one.started_s = now_s
        one.running = self._pool.submit(self._run, asked, one)

    def _run(self, asked: Comparison, one: _Asked) -> None:
        told = Compared(of=asked, error="the comparison failed")
        try:
            told = Compared(self._explain(asked), asked)
        except ValueError as error:  # of a set or a condition that cannot be used, and of the sandbox's limits
            told = Compared(of=asked, error=_said(error))
        finally:
            with self._lock:
                one.answer, one.running = replace(told, answered_at=self._clock()), None
                one.answered_s = time.monotonic()
                one.took_s = one.answered_s - one.started_s


def _said(error: ValueError) -> str:
    hint = getattr(error, "hint", "")
    return f"{error}; {hint}" if hint else str(error)
