"""A lake in, its requests, cells and effects kept up with its raw tables out: rounds of tasks, each round told in the lake's `rounds`."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from leverwatch import work_plan, work_tasks
from leverwatch.work_plan import Plan
from leverwatch.work_pool import Pool
from leverwatch.work_tasks import Work
from queries.lake import Lake
from queries.lake_tables import columns

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
    tasks: int = 0
    tasks_cpu_s: float = 0.0
    driver_cpu_s: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)

    def is_nothing(self) -> bool:
        """Whether there was nothing to do."""
        return not self.tasks

    def told(self) -> str:
        """In one line."""
        failed = f", {len(self.failed)} tasks failed: {next(iter(self.failed.items()))}" if self.failed else ""
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
    _compared: datetime | None = None

    def once(self, *, is_last: bool = False) -> Round:
        """One round: the hours that are due, then the levers. With `is_last` everything is settled: nothing more is to come.

        Raises:
            LakeError: the lake cannot be read or written.
        """
        began_s, lake = time.process_time(), self.work.lake()
        before = work_plan.last(lake)
        plan = work_plan.plan(lake, before, self.clock(), is_last=is_last)
        done = Round(plan, self.clock())
        self._hours(plan, done)
        self._levers(lake, plan, done)
        done.driver_cpu_s = time.process_time() - began_s - (0.0 if self.pool.workers else done.tasks_cpu_s)
        if done.tasks and (plan.hours or done.blocks or done.failed):
            lake.append("rounds", self._row(done))
            self.say(done.told())
        return done

    def _hours(self, plan: Plan, done: Round) -> None:
        tasks = [(self.work, hour, plan.cutoff) for hour in plan.hours]
        for one in self._each(work_tasks.hour, tasks, done, lambda task: task[1].isoformat()):
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

    def _each(self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], done: Round, name: Callable[[Any], str]) -> Any:
        for outcome in self.pool.run(function, tasks):
            done.tasks += 1
            if outcome.error:
                done.failed[name(outcome.task)] = outcome.error
                self.say(f"{name(outcome.task)} failed and is tried again in the next round: {outcome.error}")
            else:
                done.tasks_cpu_s += outcome.answer.cpu_s
                yield outcome.answer

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
