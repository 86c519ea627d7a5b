"""A scenario in, the plays in which its streams are tried out: as it is, and with levers that do nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import demo_cells
import polars as pl
from demo_truths import changed_hour, harmful, is_even
from demo_wired import wired_cells

from demo import scenarios
from demo.scenarios.layout import Disorder, Mix, Pool, Scenario
from pipeline.evidence_streams import LAGS
from pipeline.inference.block_length import LEAST_CONTROL
from pipeline.measure import BLOCK_S

CYCLE_HOURS, WIRED_HOURS = 24.0, 15.0
"""In which no stream is to be accused; the same of what is played over the wire, which takes ten times as long."""
SPARE_HOURS = 1.0
STORED_HOURS = 24.0
LIMIT_HOURS = 23.0
"""Of a play in which something changes: after a day a stream's blocks may become longer, and its evidence begins anew."""
TWIN = "-twin"


@dataclass(frozen=True, slots=True)
class Play:
    """Hours of a scenario that are played; of its twin, in which no lever does anything, where `is_twin`."""

    scenario: Scenario
    from_hour: float
    until_hour: float
    is_twin: bool = False

    @property
    def name(self) -> str:
        """The scenario's, marked where it is the twin."""
        return self.scenario.name + TWIN * self.is_twin

    def cells(self, seed: int) -> pl.DataFrame:
        """What evidence reads of the play. What is told in disorder is played over the wire: what is made of that is the product's."""
        if self.scenario.disorder != Disorder():
            return wired_cells(self.scenario, seed, self.from_hour, self.until_hour)
        return demo_cells.cells(demo_cells.twin(self.scenario) if self.is_twin else self.scenario, seed, self.from_hour, self.until_hour)

    def stored(self, seed: int) -> pl.DataFrame:
        """What a file keeps of the play: pairs that have both arms, in the last day of it."""
        cells = self.cells(seed).filter(pl.col("block_started_at") >= demo_cells.BEGAN + timedelta(hours=self.until_hour - STORED_HOURS))
        both = cells.group_by("lever", "segment").agg(pl.col("arm").n_unique().alias("arms")).filter(pl.col("arms") > 1)
        return cells.join(both, on=["lever", "segment"], how="semi", maintain_order="left")


def plays(scenario: Scenario) -> Iterator[Play]:
    """None where no pool has a control; where something changes, up to the end of the stated delay; else a cycle, and one of the twin."""
    if all(pool.control is None for pool in scenario.pools):
        return
    lead = lead_hours(scenario)
    if changed_hour(scenario) is not None:
        ends = [(one.from_hour or 0.0) + (one.within_hours or 0.0) for one in harmful(scenario)]
        until = max(ends, default=scenario.hours)
        yield Play(scenario, max(-lead, until - LIMIT_HOURS), until)
    elif scenario.disorder != Disorder():
        yield Play(scenario, -lead, WIRED_HOURS)
    else:
        yield Play(scenario, -lead, CYCLE_HOURS)
        if is_even(scenario):
            yield Play(scenario, -lead, CYCLE_HOURS, is_twin=True)


def lead_hours(scenario: Scenario) -> float:
    """How long before its hour 0 a scenario is played, so that the scale of each of its streams is known there."""
    pools = {pool.name: pool for pool in scenario.pools if pool.control is not None}
    blocks = max(_blocks(mix, pools[mix.pool]) for mix in scenario.traffic if mix.pool in pools)
    return math.ceil(4 * LAGS * blocks * BLOCK_S / 3600 + SPARE_HOURS)


def named(name: str) -> Play:
    """The play of that name."""
    return next(play for play in plays(scenarios.load(name.removesuffix(TWIN))) if play.name == name)


def _blocks(mix: Mix, pool: Pool) -> int:
    """How many blocks of a mix are taken together, so that they hold enough requests of control."""
    return math.ceil(LEAST_CONTROL / (mix.requests_per_s * BLOCK_S / pool.control_every))
