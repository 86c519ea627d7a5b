"""Plays a scenario to a receiver: its history up to now as fast as it is taken, then life at life's speed until told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from demo.engines.exports import Exports
from demo.fleet import Fleet
from demo.scenarios import Scenario
from demo.sender import Sender, SendError

NS = 1_000_000_000
HOUR_NS = 3600 * NS
SAY_EVERY_HOURS = 2
TICK_S = 1.0


@dataclass(frozen=True, slots=True)
class Played:
    """What was sent, and how many of its spans the receiver said it rejected."""

    requests: int
    spans: int
    rejected: int

    def __str__(self) -> str:
        return f"{self.requests:,} requests, {self.spans:,} spans" + (f", {self.rejected:,} of them rejected" if self.rejected else "")


def play(
    scenario: Scenario,
    endpoint: str,
    *,
    now: datetime,
    seed: int,
    say: Callable[[str], None],
    stop: threading.Event,
    speed: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] | None = None,
) -> Played:
    """Sends the scenario's history that ends at `now`, then goes on, `speed` times as fast as the clock, until `stop` is set.

    `endpoint` is a gRPC address. What happens while the history is being sent belongs to the life after it. `sleep` defaults to waiting
    for `stop`. Raises SendError when the receiver stays away, unless `stop` was set meanwhile.
    """
    wait, began_s, now_ns = sleep or stop.wait, clock(), _unix_ns(now)
    fleet = Fleet(scenario, now_ns - int(scenario.hours * HOUR_NS), seed)
    with Sender(endpoint, give_up=stop.is_set, clock=clock, sleep=wait) as sender:
        run = _Run(fleet, sender, stop)
        try:
            _history(run, scenario, now_ns, say)
            if not stop.is_set():
                say(f"history sent in {clock() - began_s:.0f} s: {run.played()}; life goes on at {speed:g} times its speed")
            while not stop.is_set():
                run.catch_up(now_ns + int((clock() - began_s) * speed * NS))
                wait(TICK_S)
        except SendError:
            if not stop.is_set():
                raise
    return run.played()


class _Run:
    """Sends what the fleet has to say, and counts it."""

    def __init__(self, fleet: Fleet, sender: Sender, stop: threading.Event) -> None:
        self._fleet, self._sender, self.stop = fleet, sender, stop
        self._exports = Exports()
        self._spans = self._rejected = 0

    def catch_up(self, at_ns: int) -> None:
        """Sends the spans that ended before `at_ns` and were not sent yet; leaves off when told to stop."""
        for body, spans in self._exports.bodies(self._fleet.until(at_ns)):
            if self.stop.is_set():
                return
            self._rejected += self._sender.send(body)
            self._spans += spans

    def played(self) -> Played:
        return Played(self._fleet.requests, self._spans, self._rejected)


def _history(run: _Run, scenario: Scenario, now_ns: int, say: Callable[[str], None]) -> None:
    say(f"{scenario.name}: {scenario.what}")
    hour = 0
    while (left_hours := scenario.hours - hour) > 0 and not run.stop.is_set():
        run.catch_up(now_ns - int(max(left_hours - 1, 0) * HOUR_NS))
        hour += 1
        if hour % SAY_EVERY_HOURS == 0:
            say(f"hour {hour} of {scenario.hours:g}: {run.played()}")


def _unix_ns(at: datetime) -> int:
    """Exact, where a float of seconds would not be."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
