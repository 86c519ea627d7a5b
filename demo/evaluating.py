"""Quality scores as a scenario's suites give them, in order of time: repeats of the original, then the model as it is served."""

from __future__ import annotations

import heapq
import itertools
import zlib
from collections.abc import Iterator

import numpy as np

from demo.records import Score
from demo.scenarios.layout import Evaluation, Pool, Scenario

HOUR_NS = 3600 * 1_000_000_000
REPEAT_NS = 60 * 1_000_000_000


def scores(scenario: Scenario, began_ns: int, seed: int, from_hour: float) -> Iterator[Score]:
    """All scores from `from_hour` on, without an end where there is any suite."""
    pools = {pool.name: pool for pool in scenario.pools}
    suites = [_of_suite(one, pools[one.pool], began_ns, seed, from_hour) for one in scenario.evaluations]
    return heapq.merge(*suites, key=lambda score: score.at_ns)


def _of_suite(suite: Evaluation, pool: Pool, began_ns: int, seed: int, from_hour: float) -> Iterator[Score]:
    rng = np.random.default_rng([seed, zlib.crc32(f"{suite.suite} {suite.pool}".encode()), 3])
    for run in itertools.count():
        hour = from_hour + run * suite.every_hours
        is_after = suite.treated_after is not None and hour >= suite.from_hour
        treated = suite.treated_after if is_after and suite.treated_after is not None else suite.treated
        settings = [("original", suite.original)] * suite.repeats + [(pool.setting, treated)] * suite.repeats
        for place, (setting, mean) in enumerate(settings):
            yield Score(
                at_ns=began_ns + round(hour * HOUR_NS) + place * REPEAT_NS,
                suite=suite.suite,
                kind=suite.kind,
                model=pool.model,
                lever=pool.lever or "",
                setting=setting,
                run_id=f"{suite.suite}-{pool.name}-{run}",
                repeat=place % suite.repeats + 1,
                score=round(float(rng.normal(mean, suite.sd)), 5),
                better=suite.better,
                n=suite.n,
                temperature=suite.temperature,
            )
