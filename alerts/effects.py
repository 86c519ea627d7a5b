"""A row of the table `effects` as judging reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

NULLS = (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1)  # those of `pipeline.evidence`, which a test holds equal
BLOCKS_A_CYCLE = 288  # of 300 s: a day
ALPHA = 0.05  # of a lever's segments together, and a cycle


class Effect(NamedTuple):
    """One row of `effects`: the treated arm against control. Values in the metric's unit, gain, coverage and shares as ratios.

    `evidence_below` and `evidence_above` are logarithms of M that the gain is below, or above, each of NULLS; None until a scale is known.
    """

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
    evidence_below: Sequence[float | None] | None = None
    evidence_above: Sequence[float | None] | None = None
    tests: int | None = None
    turned_blocks: int | None = None
    turned_gain: float | None = None

    @property
    def controlled(self) -> bool:
        """Whether the segment had a control arm at all."""
        return self.basis not in ("none", "premise")

    def is_evident(self, limit: float, *, above: bool) -> bool | None:
        """Whether the evidence that the gain is above, or below, the limit may be acted on for good; None where there is none to be had.

        It is read at the nearest null beyond the limit, and held against all segments of the lever (Bonferroni), over a day.
        """
        logs = self.evidence_above if above else self.evidence_below
        beyond = [
            log for log, null in zip(logs or (), NULLS, strict=False) if log is not None and (null >= limit if above else null <= limit)
        ]
        if not beyond:
            return None
        return (beyond[0] if above else beyond[-1]) >= math.log((self.tests or 1) * BLOCKS_A_CYCLE / ALPHA)


Effects = Mapping[str, Effect]


def effect_name(metric: str) -> str:
    """The effect a metric is read from: a gain such as `net_itl_gain` stands in the row of `net_itl_s`."""
    return metric.removesuffix("_gain") + "_s" if metric.endswith("_gain") else metric
