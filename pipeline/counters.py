"""Samples of counters in, how far each had counted at any moment out: through falls, new series and new names, and never across a gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.series import DELTA

Ints = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
LONGEST_GAP_S = 300.0  # between two samples that lie further apart nothing is said to be known
_OF = ("replica", "signal", "sender")


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The moments at which replicas were sampled, in order of place and time: most counters of an engine share one."""

    places: Ints
    times_us: Ints

    def enclosing(self, places: Ints, since_us: Ints, until_us: Ints) -> Windows:
        """The samples next to the ends of windows, each at its place."""
        before, behind = self._search(places, since_us, "right") - 1, self._search(places, until_us, "left")
        is_inside = self._holds(before, places) & self._holds(behind, places) & (before < behind)
        before, behind = np.where(is_inside, before, 0), np.where(is_inside, behind, min(1, len(self.places) - 1))
        return Windows(before, behind, self._part(before, since_us), self._part(behind - 1, until_us), is_inside)

    def around(self, places: Ints, at_us: Ints) -> tuple[Ints, Ints]:
        """The moments of the two samples that enclose each moment; where there are none, both are that moment."""
        behind = self._search(places, at_us, "left")
        is_inside = self._holds(behind - 1, places) & self._holds(behind, places)
        behind = np.where(is_inside, behind, 0)
        return np.where(is_inside, self.times_us[behind - 1], at_us), np.where(is_inside, self.times_us[behind], at_us)

    def _search(self, places: Ints, at_us: Ints, side: Literal["left", "right"]) -> Ints:
        """Where moments stand among the samples; times outside theirs are all the same to it, so that keys stay small."""
        first = self.times_us.min() - 1
        width = self.times_us.max() - first + 2
        asked = places * width + np.clip(at_us - first, 0, width - 1)
        found: Ints = np.searchsorted(self.places * width + (self.times_us - first), asked, side=side)
        return found

    def _holds(self, rows: Ints, places: Ints) -> Mask:
        inside = (rows >= 0) & (rows < len(self.places))
        held: Mask = inside & (self.places[np.where(inside, rows, 0)] == places)
        return held

    def _part(self, before: Ints, at_us: Ints) -> Reals:
        """How far a moment lies from one sample to the next, 0 to 1."""
        start = self.times_us[before]
        span = np.maximum(self.times_us[np.minimum(before + 1, len(self.times_us) - 1)] - start, 1)
        part: Reals = np.clip((at_us - start) / span, 0.0, 1.0)
        return part


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows among the samples of a grid: the samples before their start and behind their end, and how far into the outermost intervals
    they reach. `is_inside` where samples enclose them."""

    before: Ints
    behind: Ints
    start_part: Reals
    end_part: Reals
    is_inside: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """How far one signal has counted at each moment of its grid, in between a straight line. `breaks` are intervals, up to each moment,
    in which nobody knows what was counted."""

    grid: Grid
    totals: Reals
    breaks: Ints

    def grown(self, windows: Windows) -> Reals:
        """How far it counted within windows of its grid; NaN where samples do not enclose one, or something in it is unknown."""
        first, last = windows.before, windows.behind
        start = self.totals[first] + windows.start_part * (self.totals[np.minimum(first + 1, last)] - self.totals[first])
        end = self.totals[last - 1] + windows.end_part * (self.totals[last] - self.totals[last - 1])
        return np.where(windows.is_inside & (self.breaks[first] == self.breaks[last]), np.maximum(end - start, 0.0), np.nan)


def counters(samples: pl.DataFrame, replicas: pl.Series) -> dict[str, list[Counter]]:
    """The counters of each signal; places are numbers of `replicas`. Several where ranks of one replica are sampled apart: they add up.

    `samples` as `series.counted` gives them.
    """
    moments = _moments(samples.filter(pl.col("kind") == "counter"))
    place = pl.col("replica").replace_strict(replicas, pl.int_range(len(replicas), eager=True), default=None, return_dtype=pl.Int64)
    moments = moments.with_columns(place.alias("place")).drop_nulls("place")
    way = (pl.col("sender").rank("dense").over("replica", "signal") - 1).alias("way")
    found: dict[str, list[Counter]] = {}
    grids: list[Grid] = []
    for (signal, _), rows in moments.with_columns(way).sort("place", "observed_at").group_by("signal", "way", maintain_order=True):
        found.setdefault(str(signal), []).append(_counter(rows, grids))
    return found


def _counter(rows: pl.DataFrame, grids: list[Grid]) -> Counter:
    mine = Grid(rows["place"].to_numpy(), rows["observed_at"].dt.epoch("us").to_numpy())
    same = [one for one in grids if np.array_equal(one.times_us, mine.times_us) and np.array_equal(one.places, mine.places)]
    if not same:
        grids.append(mine)
    unknown = rows["growth"].is_null().cast(pl.Int64).cum_sum()
    return Counter(same[0] if same else mine, rows["growth"].fill_null(0.0).cum_sum().to_numpy(), unknown.to_numpy())


def _moments(samples: pl.DataFrame) -> pl.DataFrame:
    """(replica, signal, sender, observed_at, growth): how far a signal counted since the moment before; null where that is unknown."""
    before = pl.when(pl.col("series") == pl.col("series").shift()).then(pl.col("value").shift())
    grown = pl.when(pl.col("value") >= before).then(pl.col("value") - before).otherwise(pl.col("value"))
    is_delta = pl.col("told").str.contains(DELTA, literal=True)
    samples = samples.with_columns(before.alias("before"), pl.when(is_delta).then(pl.col("value")).otherwise(grown).alias("grown"))
    moments = samples.group_by(*_OF, "name", "observed_at").agg(
        pl.col("grown").sum(), pl.col("value").sum(), pl.len().cast(pl.Int64).alias("series"),
        (pl.col("before").is_null() & ~is_delta).sum().cast(pl.Int64).alias("fresh"),
    )  # fmt: skip
    return _with_growth(moments.sort(*_OF, "observed_at"))


def _with_growth(moments: pl.DataFrame) -> pl.DataFrame:
    """A series that appears beside others began at 0, one that takes the place of another goes on from there; of a new name who knows."""
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in (*_OF, "name")).fill_null(False)
    is_replaced = (pl.col("fresh") > 0) & (pl.col("series").shift() > pl.col("series") - pl.col("fresh"))
    change = pl.col("value") - pl.col("value").shift()
    replaced = pl.when(change >= 0).then(change).otherwise(pl.col("value"))
    gap_s = (pl.col("observed_at") - pl.col("observed_at").shift()).dt.total_microseconds() / 1e6
    growth = pl.when(same & (gap_s <= LONGEST_GAP_S)).then(pl.when(is_replaced).then(replaced).otherwise("grown"))
    return moments.select(*_OF, "observed_at", growth.alias("growth"))
