"""A scenario in, what evidence should find of its streams out: harm within a stated delay, or nothing; and what it cannot find."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from demo_watch import Stream

from demo.scenarios.layout import Pool, Scenario, Truth
from pipeline.segments import keys_for

METRIC_OF = {"net_itl_gain": "net_itl_s", "tpot_gain": "tpot_s", "ttft_gain": "ttft_s", "e2e_gain": "e2e_s"}
LEFT_OUT = {
    "quality_drop": "scores show it, and quality gates read those",
    "benchmark_drop": "scores show it, and quality gates read those",
    "kv_usage": "there is no control arm: a level of one arm",
    "preemptions_per_request": "there is no control arm: a level of one arm",
    "prefill_busy": "there is no control arm: a level of one arm",
    "queue_share_of_ttft": "there is no control arm: a level of one arm",
    "first_above_second_draft": "a premise, read beside the effect",
    "hits_above_skips": "a premise, read beside the effect",
    "skipped_token_ratio": "a premise, read beside the effect",
    "transfer_per_read": "a premise: no gain below 0 comes of it",
    "gpu_s_per_token_gain": "a cost, which no arm's latency shows",
}
BY_BATCH = "of a batch size, which break-even answers: the segment as a whole has both"
POOLED = "of several segments together, which are judged apart"


class Expected(NamedTuple):
    """What is stated of the streams that `segment` and `metric` name.

    A harmful one is found at a gain below `limit` from `from_hour` on, at most `within_hours` later; an innocent one (`within_hours` None)
    is not accused before `from_hour`, or at all.
    """

    lever: str
    segment: dict[str, str]
    metric: str
    from_hour: float | None
    within_hours: float | None
    limit: float

    def is_of(self, stream: Stream) -> bool:
        """Whether a stream is meant."""
        keys = json.loads(stream.segment)
        named = self.segment.items() <= keys.items()
        return (self.lever, self.metric) == (stream.lever, stream.metric) and named


def changed_hour(scenario: Scenario) -> float | None:
    """When anything first changes."""
    return min((change.from_hour for change in scenario.changes), default=None)


def harmful(scenario: Scenario) -> list[Expected]:
    """The streams that lose by their lever from an hour on. One that lost a little before is to be found at a null below that."""
    found = []
    for truth in scenario.truth:
        metric = _metric(scenario, truth)
        if metric and truth.after is not None and truth.after < 0 and truth.action != "keep":
            limit = 0.0 if truth.before >= 0 else -0.1
            found.append(Expected(truth.lever, truth.segment, metric, truth.from_hour, truth.within_hours, limit))
    return found


def innocent(scenario: Scenario) -> list[Expected]:
    """The streams that are said to gain, or not to lose, until something changes for them."""
    found = []
    for truth in scenario.truth:
        metric = _metric(scenario, truth)
        if metric and truth.before >= 0:
            until = None if truth.action == "keep" else changed_hour(scenario)
            found.append(Expected(truth.lever, truth.segment, metric, until, None, 0.0))
    return found


def left_out(scenario: Scenario) -> Iterator[tuple[Truth, str]]:
    """Truths of which evidence says nothing, each with why."""
    for truth in scenario.truth:
        if "batch_bucket" in truth.segment:
            yield truth, BY_BATCH
        elif truth.question in METRIC_OF and not _is_judged(truth):
            yield truth, POOLED
        elif _metric(scenario, truth) is None:
            yield truth, LEFT_OUT[truth.question]


def is_even(scenario: Scenario) -> bool:
    """Whether both arms of each pool have as many replicas and requests: then neither waits longer where the lever does nothing."""
    return all(pool.control is None or pool.control_every == 2 for pool in scenario.pools)


def _metric(scenario: Scenario, truth: Truth) -> str | None:
    if not _is_judged(truth) or not _armed(scenario, truth):
        return None
    return METRIC_OF.get(truth.question)


def _is_judged(truth: Truth) -> bool:
    """Whether a truth's segment is one that is judged: it may leave out the temperature, where there is one."""
    asked = set(truth.segment)
    return set(keys_for(truth.lever)) - asked <= {"temperature_bucket"} and asked <= set(keys_for(truth.lever))


def _armed(scenario: Scenario, truth: Truth) -> bool:
    return any(_has_control(pool, truth) for pool in scenario.pools)


def _has_control(pool: Pool, truth: Truth) -> bool:
    return pool.lever == truth.lever and pool.control is not None and truth.segment.get("model", pool.model) == pool.model
