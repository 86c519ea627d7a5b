"""The percentiles whose arms are compared, as families of evidence: what share of requests exceeds control's earlier percentile.

A block of a family takes ten expected exceedances of either arm before it says anything, so those of p99 take five times as long.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.evidence_families import NO_GAIN, Family
from pipeline.inference.block_length import control_needed
from pipeline.metrics import TAILS, of_quantile

RARE_FROM = 0.99
RARE_TOGETHER = 3  # base blocks at least: then four lags reach back an hour, and the scale is known after 16 contrasts
BASES: Mapping[str, tuple[str, ...]] = {
    base: tuple(name for name in TAILS if of_quantile(name) == base) for base in dict.fromkeys(map(of_quantile, TAILS))
}
"""The percentiles of each metric that has histograms."""


def _family(name: str, metrics: tuple[str, ...], together: int = 1) -> Family:
    needed = control_needed(max(TAILS[metric] for metric in metrics))
    levels = {metric: 1 - TAILS[metric] for metric in metrics}
    return Family(name, {metric: metric for metric in metrics}, round(needed), nulls=(NO_GAIN,), together=together, levels=levels)


FAMILIES = (
    _family("tails", tuple(name for name, share in TAILS.items() if share < RARE_FROM)),
    _family("rare_tails", tuple(name for name, share in TAILS.items() if share >= RARE_FROM), RARE_TOGETHER),
)
