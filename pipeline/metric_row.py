"""What one metric's row holds: pure data, read by reports, cells, policies, pages and documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["ratio", "mean", "share", "quantile", "rate", "product", "spread", "slope", "contrast", "label"]
Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. Sums are over the requests that count: every part of its arithmetic is known, and `known_when` holds.

    | kind | its value |
    |---|---|
    | ratio | sum(numerator) / sum(denominator) |
    | mean, share | mean of the numerator; a share's is true or false |
    | quantile | p50, p95, p99 of the numerator over requests |
    | rate | sum(numerator) per second of the period reported |
    | product | mean(numerator) * sum(times) / sum(denominator) |
    | spread | sum(numerator) of the largest of `across` / mean of these sums over all of `across` |
    | slope | least-squares slope of the numerator over started_at in seconds, levels of `across` taken out |
    | contrast | needs two sets of requests: arms, degrees of parallelism, or scores; the report works it out |
    | label | a word with its evidence, worked out from other metrics |

    `percentiles_of` adds p50, p95, p99 of this per-request arithmetic, under the metric's name, to the value. A numerator `None` is not
    known of any request until somebody sets what `missing` says; an empty one is read from other tables than `requests`. Of what
    `is_configured` the arithmetic follows the configuration: no cell keeps its sums, which would be of another time's.
    """

    name: str
    title: str
    kind: Kind
    unit: str
    better: Better
    numerator: str
    formula: str
    source: str
    denominator: str = "1"
    times: str = ""
    known_when: str = ""
    across: str = ""
    percentiles_of: str = ""
    bounds: tuple[float | None, float | None] = (0.0, None)
    traps: tuple[str, ...] = ()
    missing: str = ""
    is_configured: bool = False
