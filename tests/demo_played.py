"""A scenario played into a folder: its fleet's bodies loaded as a server would load them, and its truths asked of what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from collectors.recorded import Body
from demo import questions
from demo.fleet import Fleet
from demo.scenarios.layout import Scenario, Truth
from demo.telemetry import Telemetry
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here
from leverwatch.local import Local
from pipeline import settle
from pipeline.settle import NEVER

BEGAN = datetime(2026, 3, 2, 6, tzinfo=UTC)
BEGAN_NS = int(BEGAN.timestamp()) * 1_000_000_000
HOUR_NS = 3_600_000_000_000
SLICE_HOURS = 0.25


@contextmanager
def loaded(scenario: Scenario, folder: Path, seed: int = 1) -> Iterator[tuple[Local, Fleet]]:
    """The folder with the scenario's hours, from its hour 0 on, and the fleet that was played."""
    fleet = Fleet(scenario, BEGAN_NS, seed)
    telemetry = Telemetry(scenario.disorder, BEGAN_NS)
    with Local.open(folder) as connection:
        way = Here(connection, "demo")
        for slice_ in range(1, int(scenario.hours / SLICE_HOURS) + 1):
            for body in telemetry.bodies(fleet.until(BEGAN_NS + int(slice_ * SLICE_HOURS * HOUR_NS))):
                way.put(Body(body.signal, body.content))
        _settled(connection.room)
        yield connection, fleet


def _settled(room: EngineRoom) -> None:
    """Loads, assembles and settles all of it: what requests say needs no comparing and no judging, which take as long again."""
    room.take_in()
    while settle.settle_next(room.store, room.edges, room.measured, NEVER, room.clock()):
        pass


def told(connection: Local, scenario: Scenario, truth: Truth) -> dict[str, float]:
    """What the store says of a truth in each of its periods, by plain SQL."""
    periods = questions.periods(scenario, truth, BEGAN)
    return {name: connection.sql(questions.filled(truth, *period)).item() for name, period in periods.items()}


def ended(scenario: Scenario) -> datetime:
    """The end of the scenario's hours."""
    return BEGAN + timedelta(hours=scenario.hours)
