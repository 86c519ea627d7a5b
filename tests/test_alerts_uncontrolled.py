"""Without a control arm: what may decide, what stands beside, and what is shown and never acted on."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from effect_evidence import evident
from hypothesis import given
from hypothesis import strategies as st

from alerts import effects
from alerts.chain import Policy
from alerts.effects import Effect
from alerts.judge import Judgment, Standing, judge
from alerts.policy import shipped
from alerts.sums import ask
from pipeline import premise_evidence
from pipeline.inference import before_after

T0 = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SPECULATION = next(policy for policy in shipped() if policy.lever == "speculation")
POLICIES = shipped()
ENOUGH = math.log(72 / 0.05)
METRICS = ("net_itl_s", "tpot_s", "ttft_s", "error_rate")


def effect(metric: str, basis: str, low: float | None = None, high: float | None = None, **changes: Any) -> Effect:
    gain = None if low is None or high is None else (low + high) / 2
    values: dict[str, Any] = {"since": T0, "until": T0, "blocks": 40, "n_a": 4000, "n_b": 400, "value_a": 0.031, "value_b": 0.027}
    values |= {"gain": gain, "gain_low": low, "gain_high": high, "basis": basis, "coverage": 1.0, "note": f"{basis} note"}
    return evident(Effect(metric=metric, **(values | changes)))


def premise(value: float, log_m: float | None = None, **changes: Any) -> Effect:
    told = None if log_m is None else [{"threshold": 1.25, "is_above": False, "log_m": log_m}]
    return effect("acceptance_length", "premise", value_a=value, n_b=0, premise_evidence=told, tests=1, **changes)


def after(policy: Policy, seen: dict[str, Effect], blocks: int = 12, before: Standing | None = None) -> Judgment:
    """What a policy says after so many blocks of the same effects."""
    standing = before or Standing("on", T0)
    for number in range(1, blocks + 1):
        found = judge(policy, seen, standing, T0 + number * BLOCK)
        standing = Standing(found.state, found.state_since, found.streak, found.reason_code, standing.cause)
    return found


def net(basis: str, low: float, high: float, **changes: Any) -> dict[str, Effect]:
    return {"net_itl_s": effect("net_itl_s", basis, low, high, **changes)}


def test_the_cycle_of_premises_is_that_of_the_pipeline() -> None:
    assert (effects.LONG_BLOCKS_A_CYCLE, effects.ALPHA) == (premise_evidence.BLOCKS_A_CYCLE, premise_evidence.ALPHA)


def test_a_drawn_switchback_decides_as_a_control_arm_does_and_the_reason_names_it() -> None:
    found = after(SPECULATION, net("switchback", -0.2, -0.1, grade="good", says="loses"), 3)
    assert (found.verdict, found.reason_code, found.state) == ("disable", "harm", "off_recommended")
    assert "net ITL 31 ms against 27 ms without it, gain -15 % (-20..-10 %), 40 blocks; basis switchback (switchback note)" in found.reason
    assert after(SPECULATION, net("switchback", 0.1, 0.2, grade="good", says="pays")).reason_code == "pays"
    assert after(SPECULATION, net("switchback", -0.1, 0.1, grade="good")).reason_code == "no_harm"


@pytest.mark.parametrize(("grade", "says"), [("poor", None), ("fair", None), ("too little", None)])
def test_a_switchback_that_says_nothing_decides_nothing(grade: str, says: str | None) -> None:
    found = after(SPECULATION, net("switchback", -0.2, -0.1, grade=grade, says=says))
    assert (found.verdict, found.reason_code) == ("insufficient", "no_control")


def test_a_natural_experiment_disables_only_where_it_says_that_the_lever_loses() -> None:
    loses = after(SPECULATION, net("off_steps", -0.2, -0.1, grade="good", says="loses"))
    assert (loses.verdict, loses.reason_code) == ("disable", "harm")
    assert "basis off_steps (off_steps note)" in loses.reason
    silent = after(SPECULATION, net("spill", -0.2, -0.1, grade="good"))
    assert (silent.verdict, silent.reason_code) == ("insufficient", "no_control")
    assert "not compared with control; gain -15 % (-20..-10 %), basis spill (spill note): harm was not measured" in silent.reason
    pays = after(SPECULATION, net("rollouts", 0.1, 0.2, grade="fair", says="pays"))
    assert (pays.verdict, pays.reason_code) == ("keep", "pays")
    few = after(SPECULATION, net("off_steps", -0.2, -0.1, grade="good", says="loses", n_b=10))
    assert few.reason_code == "few_requests"


def test_a_lost_premise_still_acts_beside_a_comparison_that_says_nothing_and_not_against_one_that_says_it_pays() -> None:
    lost = {"acceptance_length": premise(1.1)}
    silent = after(SPECULATION, lost | net("off_steps", 0.1, 0.2, grade="good"))
    assert (silent.verdict, silent.reason_code) == ("disable", "premise_lost.acceptance_length")
    assert "harm was not measured" in silent.reason
    assert after(SPECULATION, lost | net("rollouts", 0.1, 0.2, grade="good", says="pays")).reason_code == "pays"


def test_evidence_of_a_premise_decides_where_there_is_any() -> None:
    bare = {"net_itl_s": effect("net_itl_s", "none")}
    assert after(SPECULATION, bare | {"acceptance_length": premise(1.1, ENOUGH - 0.1)}).verdict == "insufficient"
    lost = after(SPECULATION, bare | {"acceptance_length": premise(1.3, ENOUGH)})
    assert (lost.verdict, lost.reason_code) == ("disable", "premise_lost.acceptance_length")
    many = bare | {"acceptance_length": premise(1.1, ENOUGH)._replace(tests=2)}
    assert after(SPECULATION, many).verdict == "insufficient"
    other = premise(1.1)._replace(premise_evidence=[{"threshold": 1.5, "is_above": True, "log_m": 0.0}])
    assert after(SPECULATION, bare | {"acceptance_length": other}).verdict == "disable"  # no evidence of this threshold: its value tells


def test_a_premise_is_back_by_evidence_too() -> None:
    off = Standing("off_recommended", T0 - timedelta(days=1), 0, "hysteresis", "premise_lost.acceptance_length")
    back = [{"threshold": 1.5, "is_above": True, "log_m": ENOUGH}, {"threshold": 1.25, "is_above": False, "log_m": -9.0}]
    seen = {"net_itl_s": effect("net_itl_s", "none"), "acceptance_length": premise(1.45)._replace(premise_evidence=back)}
    assert after(SPECULATION, seen, 6, off).reason_code == "recovered"
    back[0]["log_m"] = ENOUGH - 0.1
    assert after(SPECULATION, seen, 6, off).reason_code == "hysteresis"


gains = st.one_of(st.none(), st.floats(-5, 1))


@given(
    policy=st.sampled_from(POLICIES),
    values=st.tuples(gains, gains, st.floats(0, 1e3), st.floats(0, 1e3)),
    counts=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 300)),
)
def test_before_and_after_never_disables_whatever_the_numbers(
    policy: Policy, values: tuple[float | None, float | None, float, float], counts: tuple[int, int, int]
) -> None:
    low, high, value_a, value_b = values
    n_a, n_b, blocks = counts
    same = {"n_a": n_a, "blocks": blocks, "own_value": 0.03}
    shown = {
        name: effect(name, before_after.BASIS, low, high, value_a=value_a, value_b=value_b, n_b=n_b, note=before_after.NOTE, **same)
        for name in METRICS
    }
    bare = {name: effect(name, "none", value_a=0.03, value_b=None, n_b=0, **(same | {"own_value": None})) for name in METRICS}
    for state in ("on", "off_recommended"):
        standing = Standing(state, T0 - timedelta(days=1))
        found, plain = after(policy, shown, before=standing), after(policy, bare, before=standing)
        assert (found.state, found.verdict, found.reason_code) == (plain.state, plain.verdict, plain.reason_code)


def test_the_sums_behind_a_natural_experiment_are_not_those_of_two_arms() -> None:
    assert ask(None, "speculation", '{"model":"m"}', effect("tpot_s", "off_steps")) is None  # type: ignore[arg-type]
