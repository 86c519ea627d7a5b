"""What every shipped policy's file says of itself: sources, units, an order of keys, and levers that wait for each other in one way."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from policy_drive import conditions
from test_alerts_policies_parts import FILES, RAW, tables

from alerts.carried import CARRIED
from alerts.chain import COVERED, Harm, Policy
from alerts.effects import effect_name
from alerts.levers import ACTIONS, LEVERS
from alerts.policy import shipped
from pipeline.metrics import judged

SHIPPED = shipped()
TOP = [
    "name", "lever", "owner", "version", "revalidates", "goes_before", "minimum_blocks", "minimum_requests", "minimum_coverage", "dwell_s",
    "measured_bottleneck", "enabling_condition", "receiving_budget", "expected_benefit", "failure_mode", "quality_gate", "disable_when",
    "gates", "advise_when", "rollback", "re_enable_when",
]  # fmt: skip
INSIDE = [
    "kind", "covers", "phase", "resource", "budget", "suite", "metric", "minimum_gain", "is", "threshold", "relative_to_control", "unit",
    "for_blocks", "re_enable_at", "action", "severity", "advice", "max_age_days", "repeats", "source", "steps", "because", "engine",
    "where",
]  # fmt: skip
SAYS = ("judgment", "arithmetic", "arXiv", "as the trigger", "the same blog", "a difference that repeats")
CITES = re.compile(r"#\d+|arXiv \d|blog of \d{4}|Dynamo's planner|gateway-api-inference-extension|--[a-z-]+ [0-9.]+|M/D/1")


def named(case: object) -> str:
    return getattr(case, "name", "") or getattr(case, "stem", "")


def test_every_lever_has_a_shipped_policy() -> None:
    assert {policy.lever for policy in SHIPPED} == set(LEVERS)


def test_policies_have_names_of_their_own() -> None:
    assert len({policy.name for policy in SHIPPED}) == len(SHIPPED)


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_a_lever_is_advised_every_action_that_fits_it(policy: Policy) -> None:
    assert {trigger.action for trigger in policy.disable_when} >= set(ACTIONS.get(policy.lever, ("disable",)))


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_gates_cover_latency_by_a_percentile_and_everything_else(policy: Policy) -> None:
    assert {gate.covers for gate in policy.gates} == set(COVERED)
    assert all(re.search(r"_p9\d$", gate.metric) for gate in policy.gates if gate.covers == "latency")


def test_caching_is_gated_by_what_is_skipped_and_never_by_hits() -> None:
    policy = next(one for one in SHIPPED if one.lever == "prefix_caching")
    looked_at = {one.metric for _, one in conditions(policy)}
    assert "skipped_token_ratio" in {gate.metric for gate in policy.gates}
    assert "cache_hit_rate" not in looked_at


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_each_number_says_where_it_is_from_or_why_it_was_judged_so(policy: Policy) -> None:
    for key, one in conditions(policy):
        assert one.source.startswith(SAYS) or CITES.search(one.source), (policy.name, key, one.source)
        assert len(one.source) > 40, (policy.name, key)


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_each_number_has_the_unit_of_its_metric_and_is_one_that_effects_carry(policy: Policy) -> None:
    for key, one in conditions(policy):
        relative = getattr(one, "relative_to_control", None) is not None
        assert one.unit == ("ratio" if relative else judged()[one.metric].unit), (policy.name, key)
        assert effect_name(one.metric) in CARRIED, (policy.name, key)


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_each_part_says_in_words_what_its_numbers_stand_for(policy: Policy) -> None:
    chain = (
        "measured_bottleneck",
        "enabling_condition",
        "receiving_budget",
        "expected_benefit",
        "failure_mode",
        "quality_gate",
        "rollback",
    )
    assert all(len(getattr(policy, part).because) > 25 for part in chain)
    assert policy.revalidates
    assert len(policy.rollback.steps) >= 3
    assert policy.rollback.engine


@pytest.mark.parametrize("name", RAW)
def test_keys_stand_in_the_order_of_the_chain(name: str) -> None:
    raw = RAW[name]
    assert list(raw) == [key for key in TOP if key in raw]
    for path, table in tables(raw):
        if path and path != "rollback.engine":
            order = ["suite", "kind"] if path == "quality_gate" else []
            ordered = order + [key for key in INSIDE if key not in order]
            assert list(table) == [key for key in ordered if key in table], path


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_file_has_the_name_of_its_lever_and_begins_with_what_the_lever_is_about(path: Path) -> None:
    assert RAW[path.stem]["lever"] == path.stem
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert sum(line.startswith("#") for line in lines) >= 3


def test_levers_wait_for_each_other_in_one_way_only() -> None:
    before = {policy.lever: set(policy.goes_before) for policy in SHIPPED}
    left = dict(before)
    while left:
        first = sorted(lever for lever in left if not any(lever in left[other] for other in left if other != lever))
        assert first, f"these wait for each other: {sorted(left)}"
        for lever in first:
            del left[lever]


def test_what_goes_before_another_shares_a_budget_with_it() -> None:
    shares = {policy.lever: set(policy.revalidates) for policy in SHIPPED}
    apart = [
        (one.lever, other)
        for one in SHIPPED
        for other in one.goes_before
        if other not in shares[one.lever] and one.lever not in shares[other]
    ]
    assert apart == []


def test_precision_is_restored_newest_first_and_its_steps_say_so() -> None:
    by_lever: dict[str, Any] = {policy.lever: policy for policy in SHIPPED}
    order = ("kv_quantization", "activation_quantization", "weight_quantization")
    assert all(later in by_lever[first].goes_before for first, later in pairwise(order))
    assert all(any("newest first" in step for step in by_lever[lever].rollback.steps) for lever in order)


def test_lower_degrees_are_chosen_by_measured_cost() -> None:
    lowered = [policy for policy in SHIPPED if "lower_degree" in {trigger.action for trigger in policy.disable_when}]
    assert {policy.lever for policy in lowered} == {"tensor_parallel", "expert_parallel", "pipeline_parallel"}
    assert all(any("gpu_s_per_output_token" in step for step in policy.rollback.steps) for policy in lowered)


@pytest.mark.parametrize("policy", SHIPPED, ids=named)
def test_what_acts_without_control_says_where_it_is_over(policy: Policy) -> None:
    alone = [one for one in policy.disable_when if getattr(one, "threshold", None) is not None and not isinstance(one, Harm)]
    assert all(one.re_enable_at is not None for one in alone)
