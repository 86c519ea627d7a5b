"""A small fleet's bodies in; the same in a data folder that one process owns, and in a lake, out: what becomes of them can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
from demo_dispatches import SCENARIO

from collectors.lake_batch import LakeReader
from collectors.lake_sink import LakeSink, Pace
from demo import scenarios
from demo.fleet import Fleet
from demo.telemetry import Telemetry
from leverwatch import deployment
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.store_settings import StoreConfig
from leverwatch.work_settings import work_of
from leverwatch.work_tasks import Work
from pipeline import jobs, sampling, settle
from pipeline.uncontrolled_job import Configured
from queries.lake import Lake

HOUR = datetime(2026, 3, 2, 7, tzinfo=UTC)
NOW = HOUR + timedelta(hours=2)
MINUTE = timedelta(minutes=1)
BEFORE = timedelta(minutes=6, milliseconds=2278)  # a pair then has a leg on either side of the hour's edge
SENDER = "10.0.0.1"
NO_OPTIONS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Said:
    """One export: its signal, its content, and when it was received."""

    signal: str
    content: bytes
    received_at: datetime

    @property
    def received_unix_nano(self) -> int:
        """When it was received, in nanoseconds."""
        return int(self.received_at.timestamp() * 1e9)


def fleet(minutes: int, before: timedelta = BEFORE) -> list[Said]:
    """What a fleet of pairs that speculate says that starts so long before the hour, minute by minute."""
    split = "[pools.serving.split]\nprefill = 1\ndecode = 1\nlink_bytes_per_s = 25e9"
    speculation = "speculation = { draft_tokens = 4, acceptance = [0.7, 0.6] }"
    text = SCENARIO.format(engine="vllm", lever="speculation", rate=1.0, speculation=speculation, split=split, split_control="")
    scenario, began = scenarios.parse(text, "small.toml"), HOUR - before
    began_ns = int(began.timestamp() * 1e9)
    playing, telemetry = Fleet(scenario, began_ns, 7), Telemetry(scenario.disorder, began_ns)
    said: list[Said] = []
    for minute in range(1, minutes + 1):
        at = began + minute * MINUTE
        said += [Said(body.signal, body.content, at) for body in telemetry.bodies(playing.until(int(at.timestamp() * 1e9)))]
    return said


def config_of(lake: Path | str, options: Mapping[str, str] = NO_OPTIONS) -> Config:
    """The configuration of every process on a lake."""
    return Config(store=StoreConfig(kind="delta", uri=str(lake), options=dict(options)))


def work(lake: Path | str, kept: Path, options: Mapping[str, str] = NO_OPTIONS) -> Work:
    """What tasks on a lake go by."""
    return work_of(config_of(lake, options), kept)


def received(room: EngineRoom, said: Iterable[Said]) -> None:
    """Loads and assembles bodies, and settles them by the block, as a lake's hours are."""
    for one in said:
        room.spool.append(one.signal, SENDER, one.received_unix_nano, one.content).result(10)
    room.take_in()
    mark = jobs.watermark(room.store)
    sampling.sample_next(room.store, mark)
    blocks = room.store.frame("select distinct time_bucket(interval 300 second, started_at) as since from requests order by all")
    for since in blocks["since"]:
        while settle.settle_next(room.store, room.edges, room.measured, since + jobs.BLOCK - timedelta(microseconds=1), NOW):
            pass


def compared(room: EngineRoom) -> None:
    """Compares the blocks that have closed."""
    while jobs.compare_next(room.store, edges=room.edges, configured=Configured(room.schedule.current(), room.rounds.watched)):
        pass


def collected(where: Path | str, said: Sequence[Said], options: Mapping[str, str] = NO_OPTIONS) -> Lake:
    """Puts bodies into a lake as a collector does."""
    lake = Lake.open(str(where), options)
    sink = LakeSink(lake, LakeReader(deployment.of(Config())), Pace(interval_s=0.001))
    waiting = [sink.append(one.signal, SENDER, one.received_unix_nano, one.content) for one in said]
    for done in waiting:
        done.result(30)
    sink.close()
    return lake


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with maps as sorted pairs, and lists as text: what can be sorted and compared."""
    pairs = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    maps = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Map)]
    return frame.with_columns(pl.col(maps).cast(pairs).list.sort())
