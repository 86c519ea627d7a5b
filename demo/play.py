"""Plays a scenario to a receiver: its history up to now as fast as it is taken, then life at life's speed until told to stop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from demo.fleet import Arrivals, Fleet
from demo.pools import worker_names
from demo.scenarios.layout import Scenario
from demo.sender import Sender, SendError
from demo.telemetry import Telemetry

NS = 1_000_000_000
HOUR_NS = 3600 * NS
SLICE_NS = 300 * NS
SAY_EVERY_S = 5.0
TICK_S = 1.0


@dataclass(slots=True)
class Played:
    """What was sent, how many of it the receiver said it rejected, and up to which moment, in Unix nanoseconds, it tells what happened."""

    requests: int = 0
    until_ns: int = 0
    items: Counter[str] = field(default_factory=Counter)
    rejected: int = 0

    def __str__(self) -> str:
        said = f"{self.requests:,} requests, {self.items['traces']:,} spans, {self.items['metrics']:,} samples"
        return said + (f", {self.rejected:,} of them rejected" if self.rejected else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: a scenario whose history is `hours` long and ends at `now`, of which the last `scenario.hours` are its own hours;
    before them it is as at its hour 0. `arrivals` are in place of its mixes."""

    scenario: Scenario
    hours: float
    now: datetime
    seed: int
    arrivals: Arrivals | None = None

    @property
    def began(self) -> datetime:
        """The scenario's hour 0."""
        return self.now - timedelta(hours=self.scenario.hours)

    @property
    def began_ns(self) -> int:
        """The scenario's hour 0, in Unix nanoseconds."""
        return unix_ns(self.began)

    def fleet(self) -> Fleet:
        """The fleet at the history's beginning."""
        return Fleet(self.scenario, self.began_ns, self.seed, from_hour=self.scenario.hours - self.hours, arrivals=self.arrivals)


def play(
    plan: Plan,
    endpoint: str,
    *,
    say: Callable[[str], None],
    stop: threading.Event,
    speed: float = 1.0,
    show: Callable[[Mapping[str, str]], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] | None = None,
) -> Played:
    """Sends the plan's history, then goes on, `speed` times as fast as the clock, until `stop` is set.

    `endpoint` is a gRPC address. What happens while the history is being sent belongs to the life after it. In life `show` is given each
    replica's page of metrics, to be scraped; without it, and of what happened before the first was shown, samples are sent as in the
    history. `sleep` defaults to waiting for `stop`. Raises SendError when the receiver stays away, unless `stop` was set meanwhile.
    """
    wait, began_s, now_ns = sleep or stop.wait, clock(), unix_ns(plan.now)
    with Sender(endpoint, give_up=stop.is_set, clock=clock, sleep=wait) as sender:
        run = _Run(plan, sender, stop)
        try:
            _history(run, plan, say, clock)
            if not stop.is_set():
                pace = "in real time" if speed == 1 else f"{speed:g} times as fast"
                say(f"history sent in {clock() - began_s:.0f} s: {run.played}; life goes on {pace}")
            is_shown = False
            while not stop.is_set():
                run.catch_up(now_ns + int((clock() - began_s) * speed * NS), scraped=not is_shown)
                if show is not None:
                    show(run.pages)
                    is_shown = True
                wait(TICK_S)
        except SendError:
            if not stop.is_set():
                raise
    return run.played


class _Run:
    """Sends what the fleet has to say, and counts it."""

    def __init__(self, plan: Plan, sender: Sender, stop: threading.Event) -> None:
        self._fleet, self._sender, self.stop = plan.fleet(), sender, stop
        self._telemetry = Telemetry(plan.scenario.disorder, plan.began_ns)
        self._until_ns = unix_ns(plan.now) - int(plan.hours * HOUR_NS)
        self.played = Played(until_ns=self._until_ns)

    @property
    def pages(self) -> Mapping[str, str]:
        """Each replica's page, as it was last looked at."""
        return self._telemetry.texts

    def catch_up(self, at_ns: int, *, scraped: bool = True) -> None:
        """Sends what happened before `at_ns` and was not sent yet, a little at a time; leaves off when told to stop."""
        while self._until_ns < at_ns and not self.stop.is_set():
            self._until_ns = min(self._until_ns + SLICE_NS, at_ns)
            self._send(self._until_ns, scraped=scraped)

    def _send(self, at_ns: int, *, scraped: bool) -> None:
        for body in self._telemetry.bodies(self._fleet.until(at_ns), scraped=scraped):
            if self.stop.is_set():
                return
            self.played.rejected += self._sender.send(body)
            self.played.items[body.signal] += body.items
        self.played.requests, self.played.until_ns = self._fleet.requests, at_ns


def _history(run: _Run, plan: Plan, say: Callable[[str], None], clock: Callable[[], float]) -> None:
    now_ns, said_s = unix_ns(plan.now), clock()
    at_ns = now_ns - int(plan.hours * HOUR_NS)
    while at_ns < now_ns and not run.stop.is_set():
        at_ns = min(at_ns + SLICE_NS, now_ns)
        run.catch_up(at_ns)
        if clock() - said_s >= SAY_EVERY_S or at_ns == now_ns:
            said_s = clock()
            hour, own = plan.scenario.hours - (now_ns - at_ns) / HOUR_NS, plan.scenario.hours
            say(f"hour {hour:.1f} (the scenario begins at 0 and ends at {own:g}): {run.played}")


def unix_ns(at: datetime) -> int:
    """A moment in Unix nanoseconds; exact, where a float of seconds would not be."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


def replicas(scenario: Scenario) -> list[str]:
    """The names of all replicas of a scenario."""
    return [name for pool in scenario.pools for group in worker_names(pool) for name in group]
