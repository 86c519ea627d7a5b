"""A scenario and a seed in, what evidence reads of its cells out: played over the wire and stored, as a server would have it."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from demo_cells import BEGAN, BEGAN_NS, HOUR_NS, KEYS, RAW

from collectors.recorded import Body
from demo.fleet import Fleet
from demo.scenarios.layout import Scenario
from demo.telemetry import Telemetry
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here
from leverwatch.local import Local
from pipeline import settle
from pipeline.evidence_families import ARMS, SUMS
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.settle import NEVER
from queries import files

SLICE_HOURS = 1.0


def wired_cells(scenario: Scenario, seed: int, from_hour: float, until_hour: float) -> pl.DataFrame:
    """What `demo_cells.cells` gives, by the other way: encoded, decoded, assembled, checked, settled and read by the query that serves."""
    fleet = Fleet(scenario, BEGAN_NS, seed, from_hour=from_hour)
    telemetry = Telemetry(scenario.disorder, BEGAN_NS)
    with tempfile.TemporaryDirectory() as folder, Local.open(Path(folder)) as connection:
        way, hour = Here(connection, "demo"), from_hour
        while hour < until_hour:
            hour = min(hour + SLICE_HOURS, until_hour)
            for body in telemetry.bodies(fleet.until(BEGAN_NS + round(hour * HOUR_NS))):
                way.put(Body(body.signal, body.content))
            connection.room.take_in()
        _settle(connection.room)
        return _read(connection.room, BEGAN + timedelta(hours=from_hour), BEGAN + timedelta(hours=until_hour))


def _settle(room: EngineRoom) -> None:
    while settle.settle_next(room.store, room.edges, room.measured, NEVER, room.clock()):
        pass


def _read(room: EngineRoom, since: datetime, until: datetime) -> pl.DataFrame:
    found = room.store.frame(files.question("compare_cells"), {"since": since, "until": until, "metrics": [REQUESTS, *RAW], "alone": []})
    whole = pl.col("block_started_at") + timedelta(seconds=BLOCK_S) <= until
    return found.filter(pl.col("arm").is_in(ARMS) & whole).select(*KEYS, *SUMS).sort("block_started_at", *KEYS[:4])
