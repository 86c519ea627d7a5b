"""A row of the table `effects` as judging reads it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Effect(NamedTuple):
    """One row of `effects`: the treated arm against control. Values in the metric's unit, gain, coverage and shares as ratios."""

    metric: str
    since: datetime
    until: datetime
    blocks: int
    n_a: int
    n_b: int
    value_a: float | None
    value_b: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    basis: str
    coverage: float
    note: str | None
    trap: str | None = None
    upstream: str | None = None
    trapped_share: float | None = None

    @property
    def controlled(self) -> bool:
        """Whether the segment had a control arm at all."""
        return self.basis not in ("none", "premise")


Effects = Mapping[str, Effect]


def effect_name(metric: str) -> str:
    """The effect a metric is read from: a gain such as `net_itl_gain` stands in the row of `net_itl_s`."""
    return metric.removesuffix("_gain") + "_s" if metric.endswith("_gain") else metric
