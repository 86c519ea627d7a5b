"""The bins of histograms, and SQL that reads percentiles from them: a bin is 2 % wide, so a value is known from its bin within 1 %.

Bin b holds values from FIRST * RATIO^b on and below FIRST * RATIO^(b + 1), in the metric's unit. It stands for its geometric middle.
"""

from __future__ import annotations

from queries.metric_sql import QUANTILES

FIRST = 0.002
RATIO = 1.02
ZERO_BIN = -1_000  # holds 0 and all that is below 5e-12
LAST_BIN = 3_000  # holds all from 1.2e23 on


def percentiles(source: str, by: str) -> str:
    """A query with a row per `by`: p50, p95 and p99 of a source of `by`, bin and n.

    Each lies between the same two values as `quantile_cont` over the rows does, both known within 1 %.
    """
    counted = f"sum(n) over (partition by {by} order by bin) as upto, sum(n) over (partition by {by}) as total"
    placed = f"select *, {counted} from {source}"
    return f"select {by}, {', '.join(f'{_percentile(share)} as {tag}' for tag, share in QUANTILES)} from ({placed}) group by {by}"


def _percentile(share: float) -> str:
    place = f"{share} * (total - 1)"
    low, high = (_middle(f"min(bin) filter (where upto > {side}({place}))") for side in ("floor", "ceil"))
    part = f"any_value({place} - floor({place}))"
    return f"{low} + {part} * ({high} - {low})"


def _middle(number: str) -> str:
    return f"(case when {number} <= {ZERO_BIN} then 0 else {FIRST} * pow({RATIO}, {number} + 0.5) end)"
