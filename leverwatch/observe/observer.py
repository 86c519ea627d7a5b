"""What happens in one process in, its numbers and its spans out: what jobs, doors, pages and couriers tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from alerts.deliver import Tried
from collectors.door import Handled
from leverwatch.observe.numbers import DeliveryNumbers, DoorNumbers, JobNumbers, PageNumbers, WorkNumbers
from leverwatch.observe.tracing import OFF, Mark, Tracing, Value


@dataclass(slots=True)
class Run:
    """A job or a round that runs: what it did, and of a worker's round how many tasks failed."""

    mark: Mark
    done: int = 0
    failed: int = 0


@dataclass(slots=True)
class Observer:
    """The numbers of one process, and where its spans go: nowhere until `tracing` is another."""

    tracing: Tracing = OFF
    door: DoorNumbers = field(default_factory=DoorNumbers)
    jobs: JobNumbers = field(default_factory=JobNumbers)
    pages: PageNumbers = field(default_factory=PageNumbers)
    deliveries: DeliveryNumbers = field(default_factory=DeliveryNumbers)
    work: WorkNumbers = field(default_factory=WorkNumbers)
    clock_s: Callable[[], float] = time.time

    def handled(self, handled: Handled) -> None:
        """What became of a body at the door. One with spans of a Leverwatch gets no span: it would come back, and get one again."""
        self.door.note(handled)
        if self.tracing.is_on and not handled.is_own and self.tracing.wants_export():
            facts: dict[str, Value] = {
                "leverwatch.signal": handled.signal,
                "leverwatch.outcome": handled.outcome,
                "leverwatch.items": handled.items,
            }
            error = "" if handled.outcome == "taken" else handled.outcome
            self.tracing.told("receive", handled.elapsed_s, "server", facts | {"leverwatch.size_bytes": handled.size_bytes}, error)

    def tried(self, tried: Tried) -> None:
        """What came of an attempt to deliver."""
        self.deliveries.note(tried)
        if self.tracing.is_on:
            facts: dict[str, Value] = {
                "leverwatch.receiver": tried.receiver,
                "leverwatch.receiver_kind": tried.kind,
                "leverwatch.outcome": tried.outcome,
            }
            status = {} if tried.status_code is None else {"http.response.status_code": tried.status_code}
            error = "" if tried.outcome == "delivered" else str(tried.status_code or tried.outcome)
            self.tracing.told("deliver", tried.elapsed_s, "client", {**facts, "leverwatch.notices": tried.notices, **status}, error)

    @contextmanager
    def round(self) -> Iterator[Run]:
        """A round of jobs; one in which nothing was done has no span."""
        with self.tracing.span("round") as mark:
            run = Run(mark)
            yield run
            if not run.done:
                mark.pass_over()

    @contextmanager
    def job(self, name: str) -> Iterator[Run]:
        """One run of a job. What it raises is counted, and raised."""
        began_s = time.perf_counter()
        with self.tracing.span(f"job {name}", facts={"leverwatch.job": name}) as mark:
            run = Run(mark)
            try:
                yield run
            except BaseException as error:
                self.jobs.failed(name, time.perf_counter() - began_s)
                mark.fail(type(error).__name__)
                raise
            self.jobs.went(name, time.perf_counter() - began_s, run.done, self.clock_s())
            if run.done:
                mark.say(done=run.done)
            else:
                mark.pass_over()

    @contextmanager
    def work_round(self) -> Iterator[Run]:
        """A round of `leverwatch work`. What it raises is counted, and raised."""
        began_s = time.perf_counter()
        with self.tracing.span("round") as mark:
            run = Run(mark)
            try:
                yield run
            except BaseException as error:
                self.work.round(time.perf_counter() - began_s, None, self.clock_s())
                mark.fail(type(error).__name__)
                raise
            self.work.round(time.perf_counter() - began_s, run.failed, self.clock_s())
            if not run.done:
                mark.pass_over()

    def task(self, kind: str, name: str, elapsed_s: float, error: str) -> None:
        """What became of a task of `leverwatch work`."""
        self.work.task(kind, elapsed_s, is_failed=bool(error))
        facts = {"leverwatch.task": kind, "leverwatch.of": name}
        self.tracing.told(f"task {kind}", elapsed_s, "internal", facts, error.partition(":")[0])
