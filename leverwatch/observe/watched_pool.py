"""A pool of tasks in, the same out, with what became of each task told to an observer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from leverwatch.observe.observer import Observer
from leverwatch.work_pool import Outcome, Pool


class WatchedPool:
    """A pool whose every task an observer hears of, under the name of its function."""

    def __init__(self, pool: Pool, observer: Observer) -> None:
        self._pool, self._observer, self.workers = pool, observer, pool.workers

    def run(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Outcome]:
        """Runs a function with each of some tuples of arguments, in any order."""
        for outcome in self._pool.run(function, tasks):
            self._observer.task(function.__name__, _of(outcome.task), outcome.elapsed_s, outcome.error)
            yield outcome

    def close(self) -> None:
        """Lets everything go."""
        self._pool.close()


def _of(task: tuple[Any, ...]) -> str:
    """What a task is of, behind the work that all are given: an hour, also where it is a part of one, a lever, or a table."""
    what = task[1] if len(task) > 1 else ""
    hour = what if isinstance(what, datetime) else getattr(what, "hour", None)
    if isinstance(hour, datetime):
        return hour.isoformat()
    return what if isinstance(what, str) else ""
