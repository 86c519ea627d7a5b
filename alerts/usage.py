"""Cells by block in, whether treated traffic of a stream is still there, gone or back, and which setting it has, out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from alerts import settings, wording
from alerts.settings import InUse
from alerts.traffic import told
from pipeline.segments import TOPOLOGY_LEVERS
from queries import files
from queries.store import Store

BLOCK_S = settings.BLOCK_S
BLOCK = settings.BLOCK
OFF_SHARE, OFF_BLOCKS, LEAST_REQUESTS = 0.05, 3, 100
ENOUGH = 20  # treated requests that tell in one block that a lever is back
LOOK_BACK_BLOCKS, BLOCKS_BEFORE = 24, 12
_SPAN_S = 2**33  # longer than time is counted: a number for each place and second
Key = tuple[str, str]
Places = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


class Usage(NamedTuple):
    """Whether a lever is in use in a segment: False where treated traffic is gone, None where that is not known.

    The counts are over the newest blocks that are alike in that, which began at `since`. `setting` is that of treated requests, since
    `set_at`; None where it is not known. `said` has the numbers.
    """

    in_use: bool | None
    treated_n: int
    all_n: int
    since: datetime | None
    setting: str | None = None
    set_at: datetime | None = None
    said: str = ""

    def set_since(self, moment: datetime) -> str | None:
        """The setting, where it was changed after a moment."""
        return self.setting if self.set_at is not None and self.set_at >= moment and self.setting != settings.OFF else None


class Blocks:
    """The blocks that segments had traffic in, as arrays; what they say as of a block's end is told of all segments together."""

    def __init__(self, frame: pl.DataFrame, off_shares: Reals) -> None:
        """`frame` has a row per segment, by its place among the shares, and block: `place`, `until`, `treated_n`, `all_n`, in order."""
        self._until, self._count = frame["until"], len(off_shares)
        place, treated = frame["place"].to_numpy().astype(np.int64), frame["treated_n"].to_numpy()
        self._keys = place * _SPAN_S + (frame["until"].dt.epoch("s")).to_numpy()
        self._is_off = treated < off_shares[place] * frame["all_n"].to_numpy()
        begins = np.flatnonzero(np.diff(place, prepend=-1).astype(np.bool_) | np.diff(self._is_off, prepend=False))
        self._run = np.repeat(begins, np.diff(begins, append=len(place)))  # where the blocks that are alike begin
        self._treated, self._all = (np.concatenate(([0], np.cumsum(frame[name].to_numpy()))) for name in ("treated_n", "all_n"))
        self._told: tuple[datetime | None, list[Seen]] = (None, [])

    def at(self, until: datetime) -> list[Seen]:
        """What each segment's newest blocks that are alike say as of a block's end, by its place; from the blocks of two hours alone."""
        if self._told[0] != until:
            self._told = until, self._tell(until)
        return self._told[1]

    def _tell(self, until: datetime) -> list[Seen]:
        end, first = (self._after(moment) for moment in (until, until - LOOK_BACK_BLOCKS * BLOCK))
        having = np.flatnonzero(end > first)
        end, first = end[having], first[having]
        start = np.maximum(self._run[end - 1], first) if len(having) else end
        columns = (
            self._until[start].to_list(),
            (self._until[end - 1] == until).to_list(),
            (end - start).tolist(),
            (self._treated[end] - self._treated[start]).tolist(),
            (self._all[end] - self._all[start]).tolist(),
            self._is_off[end - 1].tolist(),
        )
        found = [NO_TRAFFIC] * self._count
        for place, row in zip(having.tolist(), zip(*columns, strict=True), strict=True):
            found[place] = Seen(*row)
        return found

    def _after(self, moment: datetime) -> Places:
        """For each segment the number of the first row that is later than a moment."""
        return np.searchsorted(self._keys, np.arange(self._count) * _SPAN_S + int(moment.timestamp()), side="right")


class Seen(NamedTuple):
    """The newest blocks of a segment that are alike: when the first of them ended, whether the last is the very block, and the counts."""

    first_ended_at: datetime | None
    has_block: bool
    blocks: int
    treated_n: int
    all_n: int
    is_off: bool


NO_TRAFFIC = Seen(None, False, 0, 0, 0, False)


class Trail(NamedTuple):
    """What is known of one segment over some blocks. A block counts as without the lever below a share of its requests."""

    lever: str
    segment: str
    place: int
    blocks: Blocks
    used: InUse

    def at(self, until: datetime) -> Usage:
        """The usage as of a block's end, by the blocks of two hours: the same whatever else was read."""
        seen = self.blocks.at(until)[self.place]
        setting, set_at = self.used.at(self.lever, told(self.segment), until) or (None, None)
        if seen.first_ended_at is None:
            return Usage(None, 0, 0, None, setting, set_at, "no traffic")
        said = f"{seen.treated_n} of {seen.all_n} requests treated in {wording.blocks(seen.blocks)}"
        is_long = seen.blocks >= OFF_BLOCKS
        is_told = is_long and seen.all_n >= LEAST_REQUESTS if seen.is_off else is_long or seen.treated_n >= ENOUGH
        in_use = not seen.is_off if is_told else None
        return Usage(in_use, seen.treated_n, seen.all_n, seen.first_ended_at - BLOCK, setting, set_at, said)

    def has_block(self, until: datetime) -> bool:
        """Whether there were requests in the very block that ends then."""
        return self.blocks.at(until)[self.place].has_block


def read(store: Store, keys_since: Mapping[Key, datetime], since: datetime, until: datetime) -> dict[Key, Trail]:
    """For each lever and segment, whose state began at a moment, what its traffic was in the blocks that end after `since`, up to `until`.

    A lever counts as gone below a twentieth of the share that it had before its state began: one that is tried on few requests stays.
    """
    if not keys_since:
        return {}
    frame = _frame(store, keys_since, since - LOOK_BACK_BLOCKS * BLOCK, until)
    earlier = frame.filter("is_before").group_by("place").agg(pl.col("treated_n", "all_n").sum())
    shares = np.full(len(keys_since), OFF_SHARE)
    for place, treated_n, all_n in earlier.rows():
        if treated_n:  # else it is not stored any more, or the lever was not there
            shares[place] *= treated_n / all_n
    blocks, used = Blocks(frame.filter(~pl.col("is_before")), shares), settings.in_use(store)
    return {key: Trail(*key, place, blocks, used) for place, key in enumerate(keys_since)}


def _frame(store: Store, keys_since: Mapping[Key, datetime], since: datetime, until: datetime) -> pl.DataFrame:
    """One row per segment, by the number of its key, and block that had traffic: `place`, `is_before`, `until`, `treated_n`, `all_n`.

    A segment's requests are those of its arms, and those around it that state no arm where the lever is gone there as a whole: of requests
    without a mark nobody knows the temperature, which a segment of speculation has; where others there are treated they are of replicas
    that never had the lever.
    """
    moments_s = [int(moment.timestamp()) for moment in keys_since.values()]
    asked: dict[str, Any] = {"levers": [lever for lever, _ in keys_since], "segments": [segment for _, segment in keys_since]}
    asked |= {"moments_s": moments_s, "since": since, "until": until, "before_s": BLOCKS_BEFORE * BLOCK_S, "block_s": BLOCK_S}
    frame = store.frame(files.question("usage_cells"), asked | {"topology_levers": list(TOPOLOGY_LEVERS)})
    around = pl.col("around_n")
    unmarked = pl.when(pl.col("around_treated_n") < OFF_SHARE * around).then(pl.max_horizontal(0, around - pl.col("around_marked_n")))
    all_n = pl.col("own_n") + unmarked.otherwise(0)
    return frame.select("place", "is_before", "until", "treated_n", all_n.alias("all_n")).filter(pl.col("all_n") > 0)
