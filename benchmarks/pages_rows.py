"""A scenario in, a data folder that keeps many times its requests out: as if its fleet were so much larger.

The scenario's hours go through the whole pipeline, to effects and verdicts. Each request is then stored as many: another id, another moment
of the same block, and times of its own (some 10 % apart). All of them are measured into the cells, which are folded and rolled up.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from collectors.recorded import Body
from demo import scenarios
from demo.fleet import Fleet
from demo.telemetry import Telemetry
from leverwatch.engine_room import EngineRoom
from leverwatch.loading import Here
from leverwatch.local import Local
from pipeline import cell_store, settle
from pipeline.fresh import rows
from pipeline.measure import BLOCK_S
from pipeline.settle import NEVER
from queries import fresh_parts

SEED = 7
HOUR = timedelta(hours=1)
TIMES = ("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s", "kv_transfer_s")
MANY = f"""
with many as (
    select r.*, c.copy, time_bucket(interval {BLOCK_S} seconds, r.started_at)
        + to_microseconds((({BLOCK_S} * 1000000) * (hash(r.request_id, c.copy) % 1000003) // 1000003)::bigint) as moved,
        exp(0.1 * (((hash(c.copy, r.request_id) % 1000003) + (hash(r.request_id, c.copy, 1) % 1000003)) / 1000003.0 - 1) * 2.45) as pace
    from requests r, range(1, $copies::bigint) c(copy) where r.started_at >= $since and r.started_at < $until
)
select * exclude (copy, moved, pace) replace (
    md5(trace_id || copy) as trace_id, request_id || '-' || copy as request_id, moved as started_at, moved + (ended_at - started_at) * pace
        as ended_at, {", ".join(f"{name} * pace as {name}" for name in TIMES)})
from many order by started_at
"""


def fill(folder: Path, scenario: str, count: int, now: datetime) -> int:
    """Stores at least that many requests of a scenario that ends now, all jobs done; gives how many it became."""
    with Local.open(folder) as connection:
        room = connection.room
        since = _played(connection, scenario, now)
        while settle.settle_next(room.store, room.edges, room.measured, NEVER, room.clock()):
            pass
        had = room.store.rows("select count(*) as n from requests")[0]["n"]
        copies = -(-count // had)
        room.drain()
        for hour in _hours(since, now):
            _multiply(room, hour, copies)
        room.drain()
        held: int = room.store.rows("select count(*) as n from requests")[0]["n"]
        return held


def _played(connection: Local, name: str, now: datetime) -> datetime:
    """Takes the scenario's telemetry in; gives when it began."""
    scenario = scenarios.load(name)
    began_ns = round((now.timestamp() - 3600 * scenario.hours) * 1e9)
    lead = 12.0
    fleet, telemetry, way = (
        Fleet(scenario, began_ns, SEED, from_hour=-lead),
        Telemetry(scenario.disorder, began_ns),
        Here(connection, "demo"),
    )
    hour = -lead
    while hour < scenario.hours:
        hour = min(hour + 1.0, scenario.hours)
        for body in telemetry.bodies(fleet.until(began_ns + round(hour * 3600e9))):
            way.put(Body(body.signal, body.content))
        connection.room.take_in()
    return datetime.fromtimestamp(began_ns / 1e9 - lead * 3600, UTC)


def _hours(since: datetime, until: datetime) -> Iterator[datetime]:
    hour = since.replace(minute=0, second=0, microsecond=0)
    while hour < until:
        yield hour
        hour += HOUR


def _multiply(room: EngineRoom, hour: datetime, copies: int) -> None:
    """Stores the copies of an hour's requests, measured, and marks their blocks."""
    more = room.store.frame(MANY, {"copies": copies, "since": hour, "until": hour + HOUR})
    if more.is_empty():
        return
    blocks = more.select(pl.col("started_at").dt.truncate(f"{BLOCK_S}s").alias("block_started_at")).unique()
    with room.store.write() as transaction:
        fresh_parts.add(room.store, transaction, "requests", rows(more))
        cell_store.add(transaction, room.measured(more), limit_segments=room.edges.limit_segments)
        transaction.insert("dirty_blocks", blocks)
