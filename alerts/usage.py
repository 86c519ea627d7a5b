"""Cells by block in, whether treated traffic of a stream is still there, gone or back, and which setting it has, out."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

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
LOOK_BACK_BLOCKS = 24
Key = tuple[str, str]


class Count(NamedTuple):
    """A block of a segment that had traffic: the requests that were treated, of all."""

    until: datetime
    treated_n: int
    all_n: int


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


class Trail(NamedTuple):
    """What is known of one segment over some blocks. A block counts as without the lever below `off_share` of its requests."""

    lever: str
    segment: str
    counts: Sequence[Count]
    off_share: float
    used: InUse

    def at(self, until: datetime) -> Usage:
        """The usage as of a block's end, by the blocks of two hours: the same whatever else was read."""
        first, end = (bisect_right(self.counts, moment, key=_ended_at) for moment in (until - LOOK_BACK_BLOCKS * BLOCK, until))
        start = end
        while start > first and self._is_like(self.counts[start - 1], self.counts[end - 1], until):
            start -= 1
        alike = self.counts[start:end]
        treated_n, all_n = sum(count.treated_n for count in alike), sum(count.all_n for count in alike)
        setting, set_at = self.used.at(self.lever, told(self.segment), until) or (None, None)
        if not alike:
            return Usage(None, 0, 0, None, setting, set_at, "no traffic")
        said = f"{treated_n} of {all_n} requests treated in {wording.blocks(len(alike))}"
        is_off = self._is_off(alike[-1])
        is_long = len(alike) >= OFF_BLOCKS
        is_told = is_long and all_n >= LEAST_REQUESTS if is_off else is_long or treated_n >= ENOUGH
        return Usage(not is_off if is_told else None, treated_n, all_n, alike[0].until - BLOCK, setting, set_at, said)

    def _is_like(self, count: Count, last: Count, until: datetime) -> bool:
        """Whether a block of the hours before a moment is as the last one: however far back was read, the same is told."""
        return count.until > until - LOOK_BACK_BLOCKS * BLOCK and self._is_off(count) == self._is_off(last)

    def _is_off(self, count: Count) -> bool:
        return count.treated_n < self.off_share * count.all_n


def read(store: Store, keys_since: Mapping[Key, datetime], since: datetime, until: datetime) -> dict[Key, Trail]:
    """For each lever and segment, whose state began at a moment, what its traffic was in the blocks that end after `since`, up to `until`.

    A lever counts as gone below a twentieth of the share that it had before its state began: one that is tried on few requests stays.
    """
    if not keys_since:
        return {}
    recent = _counts(store, list(keys_since), since - LOOK_BACK_BLOCKS * BLOCK, until)
    before = _shares_before(store, keys_since)
    used = settings.in_use(store)
    return {key: Trail(*key, recent.get(key, ()), OFF_SHARE * before.get(key, 1.0), used) for key in keys_since}


def _ended_at(count: Count) -> datetime:
    return count.until


def _shares_before(store: Store, keys_since: Mapping[Key, datetime]) -> dict[Key, float]:
    """The treated share of each segment in the hour before its state began, where that is still stored."""
    found: dict[Key, float] = {}
    for moment in sorted(set(keys_since.values())):
        keys = [key for key, since in keys_since.items() if since == moment]
        summed = _frame(store, keys, moment - 12 * BLOCK, moment).group_by("lever", "segment").agg(pl.col("treated_n", "all_n").sum())
        found |= {(lever, segment): treated_n / all_n for lever, segment, treated_n, all_n in summed.rows() if treated_n}
    return found


def _counts(store: Store, keys: Sequence[Key], since: datetime, until: datetime) -> dict[Key, list[Count]]:
    found: dict[Key, list[Count]] = {}
    for lever, segment, *count in _frame(store, keys, since, until).rows():
        found.setdefault((lever, segment), []).append(Count(*count))
    return found


def _frame(store: Store, keys: Sequence[Key], since: datetime, until: datetime) -> pl.DataFrame:
    """One row per segment and block that had traffic: `lever`, `segment`, `until`, `treated_n`, `all_n`.

    A segment's requests are those of its arms, and those around it that state no arm where the lever is gone there as a whole: of requests
    without a mark nobody knows the temperature, which a segment of speculation has; where others there are treated they are of replicas
    that never had the lever.
    """
    asked = {"levers": [lever for lever, _ in keys], "segments": [segment for _, segment in keys], "since": since, "until": until}
    frame = store.frame(files.question("usage_cells"), asked | {"block_s": BLOCK_S, "topology_levers": list(TOPOLOGY_LEVERS)})
    around = pl.col("around_n")
    unmarked = pl.when(pl.col("around_treated_n") < OFF_SHARE * around).then(pl.max_horizontal(0, around - pl.col("around_marked_n")))
    all_n = pl.col("own_n") + unmarked.otherwise(0)
    return frame.select("lever", "segment", "until", "treated_n", all_n.alias("all_n")).filter(pl.col("all_n") > 0)
