"""What a process did since it started in, families of Prometheus out: exports, jobs, pages, deliveries, tasks."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric as Family

from alerts.deliver import Tried
from collectors.door import Handled
from leverwatch.observe.counts import LONG_S, Counts, Durations, Levels


class DoorNumbers:
    """Exports, by what became of them."""

    def __init__(self) -> None:
        labels, what = ("signal", "outcome"), "Exports, scrapes and posts that came to the door"
        outcomes = "taken, unsound, too_large, backlog, disk, unwritable, lake, stopping or failed"
        self.exports = Counts("leverwatch_exports", f"{what}, by what became of them: {outcomes}.", labels)
        self.items = Counts("leverwatch_export_items", "Spans, points and records that were taken.", ("signal",))
        self.size_bytes = Counts("leverwatch_export_bytes", f"Bytes of exports, inflated, by what became of them: {outcomes}.", labels)
        self.acks = Durations("leverwatch_export_ack_seconds", "Seconds from a body at the door to its acknowledgement.", ("signal",))

    def note(self, handled: Handled) -> None:
        """Counts one."""
        signal, outcome = handled.signal, handled.outcome
        self.exports.add(signal, outcome)
        self.size_bytes.add(signal, outcome, n=handled.size_bytes)
        if outcome == "taken":
            self.items.add(signal, n=handled.items)
            self.acks.add(handled.elapsed_s, signal)

    def families(self) -> Iterator[Family]:
        """All of them."""
        yield from (one.family() for one in (self.exports, self.items, self.size_bytes, self.acks))


class JobNumbers:
    """Jobs, and the rounds that they run in."""

    def __init__(self) -> None:
        says = "Seconds that a job took, of runs that did something; `judge` is judging."
        self.runs = Durations("leverwatch_job_seconds", says, ("name",), LONG_S)
        self.failures = Counts("leverwatch_job_failures", "Runs of a job that failed; it is tried again in the next round.", ("name",))
        self.failing = Levels("leverwatch_job_failing", "1 while a job's newest run failed, 0 where it went through.", ("name",))
        says = "When a job last went through, doing something or nothing, in seconds since 1970."
        self.succeeded = Levels("leverwatch_job_last_success_timestamp_seconds", says, ("name",))

    def went(self, job: str, elapsed_s: float, done: int, now_s: float) -> None:
        """A run went through."""
        if done:
            self.runs.add(elapsed_s, job)
        self.failing.put(0, job)
        self.succeeded.put(now_s, job)

    def failed(self, job: str, elapsed_s: float) -> None:
        """A run failed."""
        self.runs.add(elapsed_s, job)
        self.failures.add(job)
        self.failing.put(1, job)

    def families(self) -> Iterator[Family]:
        """All of them."""
        yield from (one.family() for one in (self.runs, self.failures, self.failing, self.succeeded))


class PageNumbers:
    """Pages and calls of the API."""

    def __init__(self) -> None:
        self.seconds = Durations("leverwatch_http_request_seconds", "Seconds from a call to the end of its answer.", ("route",))
        says = "Pages, figures and calls of the API that were answered, by the status's first digit."
        self.answers = Counts("leverwatch_http_requests", says, ("route", "method", "status"))

    def note(self, route: str, method: str, status: int, elapsed_s: float) -> None:
        """Counts one."""
        self.seconds.add(elapsed_s, route)
        self.answers.add(route, method, f"{status // 100}xx")

    def families(self) -> Iterator[Family]:
        """All of them."""
        yield from (self.seconds.family(), self.answers.family())


class DeliveryNumbers:
    """Attempts to deliver."""

    def __init__(self) -> None:
        says = "Attempts to send notices: delivered, retrying, failed (given up) or gone (the receiver answered 410)."
        self.attempts = Counts("leverwatch_delivery_attempts", says, ("receiver", "outcome"))
        self.seconds = Durations("leverwatch_delivery_seconds", "Seconds that an attempt took.", ("receiver",), LONG_S)

    def note(self, tried: Tried) -> None:
        """Counts one."""
        self.attempts.add(tried.receiver, tried.outcome)
        self.seconds.add(tried.elapsed_s, tried.receiver)

    def families(self) -> Iterator[Family]:
        """All of them."""
        yield from (self.attempts.family(), self.seconds.family())


class WorkNumbers:
    """Rounds and tasks of `leverwatch work`."""

    def __init__(self) -> None:
        self.rounds = Counts("leverwatch_work_rounds", "Rounds: done, incomplete (a task failed) or failed.", ("outcome",))
        self.round_seconds = Durations("leverwatch_work_round_seconds", "Seconds that a round took.", (), LONG_S)
        says = "When a round last ended without a failed task, in seconds since 1970."
        self.succeeded = Levels("leverwatch_work_last_success_timestamp_seconds", says, ())
        self.failing = Levels("leverwatch_work_failing_tasks", "Tasks that failed in the newest round.", ())
        self.tasks = Counts("leverwatch_work_tasks", "Tasks by kind: done or failed.", ("task", "outcome"))
        self.task_seconds = Durations("leverwatch_work_task_seconds", "Seconds that a task took where it ran.", ("task",), LONG_S)

    def task(self, kind: str, elapsed_s: float, *, is_failed: bool) -> None:
        """Counts a task."""
        self.tasks.add(kind, "failed" if is_failed else "done")
        self.task_seconds.add(elapsed_s, kind)

    def round(self, elapsed_s: float, failed: int | None, now_s: float) -> None:
        """Counts a round: how many of its tasks failed, None where it could not be done at all."""
        self.rounds.add("failed" if failed is None else "incomplete" if failed else "done")
        self.round_seconds.add(elapsed_s)
        if failed is not None:
            self.failing.put(failed)
        if failed == 0:
            self.succeeded.put(now_s)

    def families(self) -> Iterator[Family]:
        """All of them."""
        every = (self.rounds, self.round_seconds, self.succeeded, self.failing, self.tasks, self.task_seconds)
        yield from (one.family() for one in every)
