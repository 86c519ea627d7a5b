"""The engine room of a server on a lake: it takes in what others receive and make there, judges, delivers and shows as on its own store."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from collectors.lake_batch import LakeReader
from collectors.lake_sink import LakeSink, Pace
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom, utc_now
from leverwatch.lake_reading import LakeReading
from leverwatch.moving import refuse_own_rows
from pipeline import hour_spans, jobs, settle
from queries import cells_rolled
from queries.lake_moving import MovedError


class LakeRoom(EngineRoom):
    """A data folder that follows a lake. What is received goes to the lake, and comes back from there."""

    def __init__(self, folder: Path, config: Config, clock: Callable[[], datetime] = utc_now, sql_behind_s: float = 0.0) -> None:
        super().__init__(folder, config, clock, sql_behind_s)
        try:
            refuse_own_rows(self.store, f"`leverwatch migrate --from {folder} --to {config.store.uri} --switch` gives them to the lake")
        except MovedError:
            super().close()
            raise
        self.reading = LakeReading(self.store, config.store, self.edges.limit_segments)

    def steps(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        """The jobs in order: what is judged was loaded, settled and compared by others."""
        return (("take", self._take), ("roll", self._roll), *self.judging(), ("retain", lambda: self.house.step(self.clock())))

    @functools.cached_property
    def sink(self) -> LakeSink:
        """What receivers hand bodies to. Opened when it is first asked for: only a server receives."""
        asked = self.config.store
        pace = Pace(asked.commit_interval_s, asked.commit_bytes, asked.limit_backlog_bytes)
        return LakeSink(self.reading.lake, LakeReader(self.deployed), pace)

    def warnings(self) -> dict[str, str]:
        """What is not as it should be with the lake."""
        problem = self.reading.problem
        return super().warnings() | ({"lake": problem} if problem else {})

    def close(self) -> None:
        """Stores what waits for the lake, then lets everything go."""
        if "sink" in self.__dict__:
            self.sink.close()
        super().close()

    def _take(self) -> int:
        taken = self.reading.take(self.clock())
        if taken:
            self._last_arrival = time.monotonic()
        return taken

    def _roll(self) -> int:
        """Sums up hours that are over and that are finished in the lake."""
        mark = jobs.watermark(self.store)
        return cells_rolled.roll_next(self.store, mark - settle.LAG - hour_spans.AROUND) if mark else 0


def opened(folder: Path, config: Config, sql_behind_s: float = 0.0) -> EngineRoom:
    """The engine room that a configuration asks for. Raises StoreError, LakeError."""
    kind = LakeRoom if config.store.is_lake else EngineRoom
    return kind(folder, config, sql_behind_s=sql_behind_s)
