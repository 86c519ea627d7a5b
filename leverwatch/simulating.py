"""Public traces in, run through the simulator, and the exports out that its fleet would have sent; every other recorded file as it is.

What comes of a trace is simulated, not measured: its models and replicas are named so.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collectors import recorded
from collectors.recorded import Body
from collectors.recorded_kinds import NotLoadedError
from demo.fleet import Event, Fleet
from demo.records import Request
from demo.telemetry import Telemetry
from demo.traffic import traces
from demo.traffic.asked import TraceError
from demo.traffic.azure import AFTER, FIRST
from demo.traffic.traces import Trace

NS = 1_000_000_000
STEP_NS = 60 * NS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_ANSWERS = timedelta(minutes=5)
"""From the last arrival of a trace without times of its own to the moment of the load."""
PATIENCE_S = 86400.0
"""Of the simulated fleet, for what is still waiting after the last arrival."""
QUIET_S = 2.0
SAY_EVERY_S = 5.0
YEARS = f"of the years {FIRST.year} to {AFTER.year - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulator:
    """Reads recorded files, and plays those that are public traces: `speed` times as fast as life, the first request at `began`.

    Without `began` a trace keeps its own times, or ends at `now` where it has none. `told` gets a sentence a trace, `progress` one every
    few seconds of work. The same file played the same way gives the same ids.
    """

    now: datetime
    began: datetime | None = None
    speed: float = 1.0
    seed: int = 1
    told: Callable[[str], None]
    progress: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Raises TraceError for a beginning that no store holds."""
        if self.began is not None and not FIRST <= self.began < AFTER:
            msg = f"began {self.began.isoformat()}: a moment {YEARS} is taken"
            raise TraceError(msg)

    def bodies(self, path: Path, kind: str = "") -> Iterator[Body | NotLoadedError]:
        """The bodies of a file in order, as `collectors.recorded.bodies` gives them; of a trace, those that its simulated fleet sends.

        Raises:
            OSError: the file cannot be read.
        """
        of_trace = traces.kind_of(path) if not kind else kind if kind in traces.KINDS else None
        if of_trace is None:
            yield from recorded.bodies(path, kind)
            return
        try:
            trace = traces.opened(path, self.speed, kind=of_trace)
        except TraceError as error:
            yield NotLoadedError(str(error))
            return
        yield from (NotLoadedError(why) for why in trace.unread)
        yield from self._played(path, trace)

    def _played(self, path: Path, trace: Trace) -> Iterator[Body | NotLoadedError]:
        began_ns = self._began_ns(trace)
        if why := _beyond(trace, began_ns):
            yield NotLoadedError(f"{path}: {why}; a moment {YEARS} is taken")
            return
        fleet = Fleet(trace.fleet, began_ns, self._seed(path, began_ns), arrivals=trace.block)
        telemetry = Telemetry(trace.fleet.disorder, began_ns)
        ended_ns = began_ns
        for events in self._steps(path, trace, fleet, began_ns):
            ended_ns = max([ended_ns, *(event.ended_ns for event in events if isinstance(event, Request))])
            for body in telemetry.bodies(events):
                yield Body(body.signal, body.content)
        if fleet.requests < trace.requests:
            waiting = f"{trace.requests - fleet.requests:,} of {trace.requests:,} requests wait a day after the last one came"
            yield NotLoadedError(f"{path}: {waiting}: at speed {trace.speed:g} it is too much for {trace.fleet.what}")
        self.told(f"{path}: {fleet.requests:,} requests simulated, {_shown(began_ns)} to {_shown(ended_ns)}{_left_out(trace)}")

    def _steps(self, path: Path, trace: Trace, fleet: Fleet, began_ns: int) -> Iterator[list[Event]]:
        """What happens, a minute after another, until every request is served."""
        say_s = self.clock() + QUIET_S
        at_ns, until_ns = began_ns, began_ns + round((trace.duration_s + PATIENCE_S) * NS)
        while fleet.requests < trace.requests and at_ns < until_ns:
            at_ns += STEP_NS
            yield fleet.until(at_ns)
            if self.clock() >= say_s:
                self.progress(f"{path}: {fleet.requests:,} of {trace.requests:,} requests simulated")
                say_s = self.clock() + SAY_EVERY_S

    def _began_ns(self, trace: Trace) -> int:
        if self.began is not None:
            return _unix_ns(self.began)
        if trace.began_ns is not None:
            return trace.began_ns
        return _unix_ns(self.now - LAST_ANSWERS) - round(trace.duration_s * NS)

    def _seed(self, path: Path, began_ns: int) -> int:
        """Of the ids and of all chance: another one for another content, beginning, speed or seed."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        played = f"{began_ns} {self.speed!r} {self.seed}".encode()
        return int.from_bytes(hashlib.blake2b(digest + played, digest_size=7).digest(), "big")


def _beyond(trace: Trace, began_ns: int) -> str | None:
    """Why a trace's first or last request is outside of the years that are taken."""
    last_ns = began_ns + round(trace.duration_s * NS)
    if began_ns < _unix_ns(FIRST):
        return f"it would begin at {_shown(began_ns)}"
    return f"its last request would come at {_shown(last_ns)}" if last_ns >= _unix_ns(AFTER) else None


def _left_out(trace: Trace) -> str:
    lines = len(trace.unread)
    return f"; {lines:,} {'line was' if lines == 1 else 'lines were'} not read" if lines else ""


def _unix_ns(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1) * 1000


def _shown(at_ns: int) -> str:
    return (EPOCH + timedelta(microseconds=at_ns // 1000)).isoformat(timespec="seconds").replace("+00:00", "Z")
