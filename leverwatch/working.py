"""A lake in, its requests, cells and effects kept up with its raw tables out: rounds of tasks, each round told in the lake's `rounds`."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from leverwatch import work_plan, work_tasks, work_upkeep
from leverwatch.observe.observer import Observer
from leverwatch.observe.watched_pool import WatchedPool
from leverwatch.work_hours import Hours
from leverwatch.work_plan import Plan
from leverwatch.work_pool import Pool
from leverwatch.work_tasks import Work
from queries.lake import Lake
from queries.lake_tables import columns

KEPT_UP_S = 600.0  # between two looks at what is to be merged and dropped

Say = Callable[[str], None]


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Round:
    """What a round did: its plan, when it began and ended, the tasks and their processor seconds, and which of them failed and why."""

    plan: Plan
    started_at: datetime
    requests: int = 0
    blocks: int = 0
    effects: int = 0
    kept: int = 0
    tasks: int = 0
    tasks_cpu_s: float = 0.0
    driver_cpu_s: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)

    def is_nothing(self) -> bool:
        """Whether nothing was to be done."""
        return not (self.plan.hours or self.blocks or self.kept or self.failed)

    def told(self) -> str:
        """In one line."""
        failed = f", {len(self.failed)} tasks failed: {': '.join(next(iter(self.failed.items())))}" if self.failed else ""
        return (
            f"{len(self.plan.hours)} hours, {self.requests:,} requests, {self.blocks} blocks compared, {self.effects:,} effects; "
            f"{self.tasks} tasks took {self.tasks_cpu_s:.1f} s of processor time, driving them {self.driver_cpu_s:.1f} s{failed}"
        )


@dataclass(slots=True)
class Working:
    """Rounds over a lake. Any number may run: what they write is the same, whoever writes it last."""

    work: Work
    pool: Pool
    clock: Callable[[], datetime]
    say: Say = lambda _: None
    limits: Mapping[str, timedelta | None] = field(default_factory=dict)
    observer: Observer = field(default_factory=Observer)
    _compared: datetime | None = None
    _kept_s: float = -KEPT_UP_S

    def __post_init__(self) -> None:
        self.pool = WatchedPool(self.pool, self.observer)

    def once(self, *, is_last: bool = False) -> Round:
        """One round: the hours that are due, then the levers. With `is_last` everything is settled: nothing more is to come.

        Raises:
            LakeError: the lake cannot be read or written.
        """
        with self.observer.work_round() as around:
            done = self._once(is_last=is_last)
            around.done, around.failed = int(not done.is_nothing()), len(done.failed)
        return done

    def _once(self, *, is_last: bool) -> Round:
        began_s, lake = time.process_time(), self.work.lake()
        before = work_plan.last(lake)
        plan = work_plan.plan(lake, before, self.clock(), is_last=is_last)
        done = Round(plan, self.clock())
        self._hours(plan, done)
        self._levers(lake, plan, done)
        if is_last or time.monotonic() - self._kept_s >= KEPT_UP_S:
            self._keep_up(lake, done)
        done.driver_cpu_s = time.process_time() - began_s - (0.0 if self.pool.workers else done.tasks_cpu_s)
        if not done.is_nothing():
            lake.append("rounds", self._row(done))
            self.say(done.told())
        return done

    def _hours(self, plan: Plan, done: Round) -> None:
        def count(cpu_s: float) -> None:
            done.tasks, done.tasks_cpu_s = done.tasks + 1, done.tasks_cpu_s + cpu_s

        def fail(name: str, error: str) -> None:
            done.tasks += 1
            self._fail(done, name, error)

        for one in Hours(self.work, self.pool, plan.cutoff, fail, count).made(plan.hours):
            done.requests += one.requests
            self.say(f"hour {one.hour:%Y-%m-%dT%H}: {one.requests:,} requests, {one.settled:,} settled")

    def _levers(self, lake: Lake, plan: Plan, done: Round) -> None:
        """Compares the arms of every lever, once the hours are made. Blocks of an hour that failed come later, as late ones."""
        if plan.mark is None or (not plan.hours and self._compared == plan.mark):
            return
        levers = sorted(work_tasks.levers_of(lake, plan.hours))
        for one in self._each(work_tasks.lever, [(self.work, name, plan.mark) for name in levers], done, lambda task: f"lever {task[1]}"):
            done.blocks, done.effects = max(done.blocks, one.blocks), done.effects + one.effects
            if one.blocks:
                self.say(f"lever {one.lever}: {one.blocks} blocks, {one.effects:,} effects")
        if not done.failed:
            self._compared = plan.mark

    def _keep_up(self, lake: Lake, done: Round) -> None:
        """Merges small files and takes copies away, then drops what is too old. No round waits for what fails here."""
        self._kept_s, now, merged, copies, dropped = time.monotonic(), self.clock(), 0, 0, 0
        tidied = self._each(work_upkeep.tidy, [*work_upkeep.untidy(self.work, lake, now)], done, lambda task: f"tidy {task[1]}")
        for one in tidied:
            merged, copies = merged + one.merged, copies + one.copies
        for one in self._each(
            work_upkeep.drop, [*work_upkeep.old(self.work, lake, self.limits, now)], done, lambda task: f"drop {task[1]}"
        ):
            dropped += one.dropped
        done.kept = merged + copies + dropped
        if done.kept:
            self.say(f"upkeep: {merged} files merged, {copies} copies of rows gone, {dropped} files dropped")

    def _each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], done: Round, name: Callable[[Any], str]) -> Any:
        for outcome in self.pool.run(function, tasks):
            done.tasks += 1
            if outcome.error:
                self._fail(done, name(outcome.task), outcome.error)
            else:
                done.tasks_cpu_s += outcome.answer.cpu_s
                yield outcome.answer

    def _fail(self, done: Round, name: str, error: str) -> None:
        done.failed[name] = error
        self.say(f"{name} failed and is tried again in the next round: {error}")

    def _row(self, done: Round) -> pa.Table:
        row = {
            "started_at": done.started_at, "ended_at": self.clock(), "mark": done.plan.mark, "cutoff": done.plan.cutoff,
            "hours": len(done.plan.hours), "requests": done.requests, "tasks": done.tasks, "tasks_cpu_s": done.tasks_cpu_s,
            "driver_cpu_s": max(0.0, done.driver_cpu_s), "workers": self.pool.workers, "host": socket.gethostname(),
            "versions": [*done.plan.versions.items()], "failed": [*done.failed.items()],
        }  # fmt: skip
        return pa.Table.from_pylist([row], columns("rounds"))

    def forever(self, stop: threading.Event, every_s: float) -> None:
        """Rounds until it is told to stop, one every so many seconds; a round that cannot read the lake is told and tried again."""
        while not stop.is_set():
            began_s = time.monotonic()
            try:
                self.once()
            except (OSError, RuntimeError) as error:
                self.say(f"this round failed and is tried again: {type(error).__name__}: {error}")
            stop.wait(max(0.0, every_s - (time.monotonic() - began_s)))
