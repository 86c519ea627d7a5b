"""Scenario files say what they play and what is true; a wrong one says where it is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from demo import formula, scenarios
from demo.scenarios import Lane, Pool, Scenario, ScenarioError, Truth


def minimal(**changed: str) -> str:
    """A scenario with one lane, as TOML, with some values changed."""
    values = {"replicas": "4", "batch": "8", "change_bucket": "512-2047", "extra": ""} | changed
    return f"""
name = "x"
what = "x"
hours = 1
noise = {{ request_cv = 0.3, block_sd = 0, replica_sd = 0 }}
day = {{ swing = 0, peak_hour = 0 }}
{values["extra"]}
[[pools]]
model = "m"
engine = "vllm"
hardware = "h"
topology = "tp1"
gpus = 1
temperature = 1
max_tokens = 100
base_step_s = 0.01
prefill_per_token_s = 1e-5
speculation = {{ setting = "ngram-4", draft_tokens = 4, acceptance = 0.5, coverage = 0.3, overhead_s = 0, verify_per_sequence_s = 1e-4 }}
[[pools.lanes]]
input_tokens = [512, 2047]
replicas = {values["replicas"]}
requests_per_s = 1
batch = {values["batch"]}
per_sequence_s = 1e-4
cache_hit = 0.5
cached_share = 0.5
output_median_tokens = 50
output_sigma = 0.5
[[changes]]
model = "m"
input_bucket = "{values["change_bucket"]}"
from_hour = 0.5
over_hours = 0
batch_factor = 2
"""


def placed(scenario: Scenario, truth: Truth) -> tuple[Pool, Lane]:
    return next(
        (pool, lane)
        for pool in scenario.pools
        for lane in pool.lanes
        if (pool.model, lane.input_bucket) == (truth.segment["model"], truth.segment["input_bucket"])
    )


@pytest.mark.parametrize("name", scenarios.names())
def test_a_scenario_is_called_as_its_file_and_has_a_history_of_twenty_hours(name: str) -> None:
    scenario = scenarios.load(name)
    assert (scenario.name, scenario.hours) == (name, 20)


@pytest.mark.parametrize("name", scenarios.names())
def test_a_segment_of_the_truth_is_one_that_the_fleet_serves(name: str) -> None:
    scenario = scenarios.load(name)
    for truth in scenario.truth:
        pool, _ = placed(scenario, truth)
        assert (pool.hardware, pool.topology) == (truth.segment["hardware"], truth.segment["topology"])


@pytest.mark.parametrize("name", scenarios.names())
def test_the_stated_gain_is_the_one_that_the_formula_gives(name: str) -> None:
    scenario = scenarios.load(name)
    for truth in scenario.truth:
        pool, lane = placed(scenario, truth)
        assert pool.speculation is not None
        changes = [change for change in scenario.changes if change.input_bucket == lane.input_bucket and change.model == pool.model]
        hours = np.arange(0, scenario.hours, 0.1)
        gains = formula.gain(pool, lane, pool.speculation, formula.batch(lane, scenario.day, changes, hours))
        from_hour = scenario.hours if truth.from_hour is None else truth.from_hour
        assert gains[hours < from_hour].mean() == pytest.approx(truth.gain, abs=0.015)
        if truth.gain_after is not None:
            assert gains[hours > from_hour + 0.5].mean() == pytest.approx(truth.gain_after, abs=0.015)


def test_a_step_grows_with_the_batch_and_verifying_grows_faster() -> None:
    scenario = scenarios.load("batch-grows")
    pool = scenario.pools[0]
    lane, speculation = pool.lanes[1], pool.speculation
    assert speculation is not None
    batches = np.arange(1.0, 100.0)
    assert (np.diff(formula.step_s(pool, lane, batches)) > 0).all()
    assert (np.diff(formula.gain(pool, lane, speculation, batches)) < 0).all()


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario 'batch-grow'; known: all-well, batch-grows; did you mean 'batch-grows'\?"):
        scenarios.load("batch-grow")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"extra": "flavor = 1"}, "here.toml: Object contains unknown field `flavor`"),
        ({"batch": "0"}, r"here.toml: Expected `float` > 0.0 - at `\$.pools\[0\].lanes\[0\].batch`"),
        ({"replicas": "3"}, "here.toml: m 512-2047: replicas is 3; with speculation it takes a multiple of 4"),
        ({"change_bucket": "1-2"}, "here.toml: no lane 'm 1-2'; known: m 512-2047"),
    ],
)
def test_what_cannot_be_played_is_refused_with_file_and_key(changed: dict[str, str], said: str) -> None:
    scenarios.parse(minimal(), "here.toml")
    with pytest.raises(ScenarioError, match=said):
        scenarios.parse(minimal(**changed), "here.toml")
