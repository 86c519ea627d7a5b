"""A scenario and its cells in, how its streams fared out: which was accused when, and whether what harms was found in time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import demo_truths
import msgspec
import polars as pl
from demo_cells import BEGAN
from demo_truths import Expected
from demo_watch import Said, Stream, first

from demo.scenarios.layout import Scenario

BLOCKS_A_CYCLE = 288
CYCLE_HOURS = 24.0
NEVER = 1e6


class Accused(msgspec.Struct, frozen=True):
    """The hours at which a stream was first accused on its own, and so that an action may be latched; None is never."""

    alone: float | None
    latched: float | None


class Found(msgspec.Struct, frozen=True):
    """Harm that is stated from an hour on, and when it was found; None is not within the stated delay."""

    from_hour: float
    within_hours: float
    limit: float
    at: Accused


class Fared(msgspec.Struct, frozen=True):
    """A stream's trial. `is_stated` where the scenario says that it gains; `gain` is that of sums, until anything changes.

    `cycles` is how much of a cycle it was watched for, while nothing had changed for it; `harm` and `benefit` are accusations in it, at a
    gain of 0.
    """

    lever: str
    segment: str
    metric: str
    is_stated: bool
    gain: float | None
    cycles: float
    harm: Accused
    benefit: Accused
    found: tuple[Found, ...] = ()


def trial(scenario: Scenario, cells: pl.DataFrame, watched: dict[Stream, list[Said]], *, is_twin: bool = False) -> list[Fared]:
    """How each stream fared that was watched. In a twin no lever does anything, whatever the scenario states."""
    changed = None if is_twin else demo_truths.changed_hour(scenario)
    guilty = [] if is_twin else demo_truths.harmful(scenario)
    return [
        _fared(stream, said, _gain(cells, stream, changed), _innocent(scenario, stream), guilty, changed)
        for stream, said in watched.items()
    ]


def _innocent(scenario: Scenario, stream: Stream) -> list[Expected]:
    return [one for one in demo_truths.innocent(scenario) if one.is_of(stream)]


def _fared(
    stream: Stream, said: list[Said], gain: float | None, stated: list[Expected], guilty: Iterable[Expected], changed: float | None
) -> Fared:
    always = changed is None or any(one.from_hour is None for one in stated)
    until = min(said[0].hour + CYCLE_HOURS, NEVER if changed is None or always else changed)
    seen = sum(one.hour <= until for one in said)
    found = tuple(_found(said, one, changed or 0.0) for one in guilty if one.is_of(stream))
    harm, benefit = (_accused(said, -NEVER, until, above=above) for above in (False, True))
    return Fared(*stream, bool(stated), gain, seen / BLOCKS_A_CYCLE, harm, benefit, found)


def _found(said: list[Said], one: Expected, changed: float) -> Found:
    from_hour, within = one.from_hour or 0.0, one.within_hours or 0.0
    return Found(from_hour, within, one.limit, _accused(said, changed, from_hour + within, limit=one.limit))


def _accused(said: list[Said], since: float, until: float, *, limit: float = 0.0, above: bool = False) -> Accused:
    alone, latched = (first(said, since, until, limit=limit, above=above, alone=alone) for alone in (True, False))
    return Accused(alone, latched)


def _gain(cells: pl.DataFrame, stream: Stream, until_hour: float | None) -> float | None:
    """The stream's gain by plain sums over all blocks that began before the hour."""
    until = BEGAN + timedelta(hours=NEVER if until_hour is None else until_hour)
    mine = cells.filter((pl.col("lever") == stream.lever) & (pl.col("segment") == stream.segment) & (pl.col("block_started_at") < until))
    sums = {(metric, arm): row for metric, arm, *row in mine.group_by("metric", "arm").agg(pl.col("n", "num", "den").sum()).iter_rows()}
    raw = "tpot_s" if stream.metric == "net_itl_s" else stream.metric
    if any((raw, arm) not in sums for arm in ("treated", "control")):
        return None
    (n, num, den), (_, num_c, den_c) = sums[raw, "treated"], sums[raw, "control"]
    if stream.metric == "net_itl_s":
        (n_t, ttft_t, _), (n_c, ttft_c, _) = sums["ttft_s", "treated"], sums["ttft_s", "control"]
        num += n * max(0.0, ttft_t / n_t - ttft_c / n_c)
    return 1 - (num / den) / (num_c / den_c) if num_c else None
