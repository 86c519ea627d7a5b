"""What a lever leaves by itself that its use compares with, how good that comparison is, which way it leans, and what it may say.

Nobody drew these comparisons by chance. They stand beside a premise, and decide only what `says` says: never what they lean to, and nothing
from groups that are not alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Grade = Literal["good", "fair", "poor", "too little"]
Leaning = Literal["up", "down", "unknown"]

PAYS, LOSES, OPEN = 1, -1, 0
GOOD_DISTANCE, FAIR_DISTANCE = 0.1, 0.25  # of means, in standard deviations: usual bounds of balance between groups
LEAST_BLOCKS = 10
LEAST_COVERAGE = 0.5

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Experiment:
    """One comparison: `treated` and `without` say which requests it takes, `leans` which way its gain errs, and `because` why.

    A gain that leans up may show that a lever loses, and not that it pays; one that leans down the other way round.
    """

    name: str
    levers: tuple[str, ...]
    treated: str
    without: str
    leans: Leaning
    because: str


EXPERIMENTS = (
    Experiment(
        name="off_steps",
        levers=("speculation",),
        treated="requests that drafted",
        without="requests on the same kind of replica for which the engine drafted nothing, or kept speculation switched off",
        leans="up",
        because="an engine stops drafting when its batch is large, and drafting switched off in place is slower than none",
    ),
    Experiment(
        name="cold_workers",
        levers=("prefix_caching", "cache_affinity"),
        treated="requests on replicas that have served for a while",
        without="requests from one to ten minutes after a replica that had served nothing for five minutes serves again",
        leans="up",
        because="a replica that starts is slow for more reasons than its empty cache",
    ),
    Experiment(
        name="rollouts",
        levers=(
            "speculation", "prefix_caching", "cache_affinity", "weight_quantization", "activation_quantization", "kv_quantization",
            "tensor_parallel", "expert_parallel", "pipeline_parallel", "disaggregation", "pool_ratio", "conditional_prefill",
        ),
        treated="requests on replicas that have the new setting already",
        without="requests on replicas that will have it later, each replica measured by its own level before",
        leans="unknown",
        because="whoever rolls out chooses which replica comes when, and what else comes with it",
    ),
    Experiment(
        name="spill",
        levers=("cache_affinity",),
        treated="a tenant's requests on the replica that served most of its requests in the hour before",
        without="the same tenants' requests on other replicas",
        leans="down",
        because="requests spill because the replica they belong to is overloaded, so those that stay wait longer",
    ),
)  # fmt: skip


def of_lever(lever: str) -> tuple[Experiment, ...]:
    """The comparisons that a lever may leave."""
    return tuple(one for one in EXPERIMENTS if lever in one.levers)


def distance(treated: tuple[Reals, Reals, Reals], without: tuple[Reals, Reals, Reals]) -> Reals:
    """How far apart the two groups' means of what they met are, in standard deviations (0 or more); NaN where one is unknown.

    Each group is (n, sum, sum of squares) of a value known before treatment, arrays of one shape.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        means, variances = zip(*(_moments(*group) for group in (treated, without)), strict=True)
        apart = np.abs(means[0] - means[1])
        spread = np.sqrt((variances[0] + variances[1]) / 2)
        return np.where(apart == 0, 0.0, apart / spread)


def grade(distances: Reals, blocks: int, coverage: float) -> Grade:
    """How good a comparison is: by its worst known distance, its blocks, and the share (0..1) of requests without that had a match.

    Without any known distance it is `poor`: that groups are alike has to be shown.
    """
    if blocks < LEAST_BLOCKS or coverage < LEAST_COVERAGE:
        return "too little"
    known = distances[np.isfinite(distances)]
    worst = known.max() if len(known) else np.inf
    return "good" if worst <= GOOD_DISTANCE else "fair" if worst <= FAIR_DISTANCE else "poor"


def says(low: float, high: float, leans: Leaning, of: Grade) -> int:
    """PAYS, LOSES or OPEN: what an interval of gains may say, given which way it leans; OPEN where the comparison is not good or fair."""
    if of not in ("good", "fair"):
        return OPEN
    if high < 0 and leans != "down":
        return LOSES
    return PAYS if low > 0 and leans != "up" else OPEN


def _moments(n: Reals, s: Reals, ss: Reals) -> tuple[Reals, Reals]:
    mean = s / n
    return mean, np.maximum(ss / n - mean**2, 0.0)
