"""A row of the table `effects` as judging reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

NULLS = (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1)  # those of `pipeline.evidence`, which a test holds equal
BLOCKS_A_CYCLE = 288  # of 300 s: a day
LONG_BLOCKS_A_CYCLE = 72  # those of premises, of 1200 s: `pipeline.premise_evidence`
ALPHA = 0.05  # of a lever's segments together, and a cycle


class Effect(NamedTuple):
    """One row of `effects`: the treated arm against control. Values in the metric's unit, gain, coverage and shares as ratios.

    `evidence_below` and `evidence_above` are logarithms of M that the gain is below, or above, each of NULLS; None until a scale is known.
    `permission` says whether the contrast may decide, None where no rule is known, and `margin` what its replicas may make of the gain.
    `uncalibrated` says that a day of contrasts was not what their scale says: `contrast_spread`, and `contrast_neighbors` of two in a row.
    Without a control arm `grade` is how good what was compared is, and `says` what follows from it: `pays`, `loses`, or None for nothing.
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
    grade: str | None = None
    says: str | None = None
    own_value: float | None = None
    premise_evidence: Sequence[Mapping[str, float]] | None = None
    permission: str | None = None
    margin: float | None = None
    permission_reason: str | None = None
    sample_ratio_off: bool | None = None
    control_share: float | None = None
    intended_control_share: float | None = None
    uncalibrated: bool | None = None
    contrast_spread: float | None = None
    contrast_neighbors: float | None = None
    blocks_together: int | None = None

    @property
    def controlled(self) -> bool:
        """Whether the segment had a control arm, or switched the lever by a drawn schedule, which decides as one does."""
        return self.basis == "control" or (self.basis == "switchback" and self.grade == "good")

    @property
    def own(self) -> float | None:
        """Treated's own value over the last blocks, in the metric's unit: `value_a` may be of the requests that were compared."""
        return self.value_a if self.own_value is None else self.own_value

    def may_say(self, *, above: bool) -> bool:
        """Whether a gain past a limit counts: without a control arm what was compared has to say that the lever pays, or that it loses."""
        return self.controlled or self.says == ("pays" if above else "loses")

    def beyond(self, limit: float, *, above: bool) -> float:
        """A limit of the gain, moved outward by what control's replicas may differ by themselves."""
        return limit + (self.margin or 0.0) if above else limit - (self.margin or 0.0)

    def is_lost(self, threshold: float, *, above: bool) -> bool | None:
        """Whether the evidence that a premise lies above, or below, the threshold may be acted on; None where there is none to be had."""
        for told in self.premise_evidence or ():
            if told["threshold"] == threshold and told["is_above"] == above:
                return told["log_m"] >= math.log((self.tests or 1) * LONG_BLOCKS_A_CYCLE / ALPHA)
        return None

    def is_evident(self, limit: float, *, above: bool) -> bool | None:
        """Whether the evidence that the gain is above, or below, the limit may be acted on for good; None where there is none to be had.

        It is read at the nearest null beyond the limit, and held against all segments of the lever (Bonferroni), over a day.
        """
        kept = self._kept(above=above)
        beyond = [log for null, log in kept if (null >= limit if above else null <= limit)]
        return self._is_enough(beyond[0] if above else beyond[-1]) if beyond else None

    def is_evident_at_outermost(self, *, above: bool) -> bool | None:
        """Whether the gain is evidently above, or below, the outermost null that evidence is kept of; None where none is kept."""
        kept = self._kept(above=above)
        return self._is_enough(kept[-1 if above else 0][1]) if kept else None

    def _kept(self, *, above: bool) -> list[tuple[float, float]]:
        """(null, logarithm of M) of the nulls that evidence is kept of, ascending."""
        logs = self.evidence_above if above else self.evidence_below
        return [(null, log) for log, null in zip(logs or (), NULLS, strict=False) if log is not None]

    def _is_enough(self, log_m: float) -> bool:
        return log_m >= math.log((self.tests or 1) * BLOCKS_A_CYCLE / ALPHA)


Effects = Mapping[str, Effect]


def effect_name(metric: str) -> str:
    """The effect a metric is read from: a gain such as `net_itl_gain` stands in the row of `net_itl_s`."""
    return metric.removesuffix("_gain") + "_s" if metric.endswith("_gain") else metric
