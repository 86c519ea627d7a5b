"""What a contrast may not decide is said with its numbers and decided by nobody; what fixed replicas may make of a gain does not count."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from effect_evidence import evident

from alerts.effects import BLOCKS_A_CYCLE, NULLS, Effect
from alerts.judge import Standing, judge
from alerts.policy import shipped
from alerts.wording import compared

T0 = datetime(2026, 3, 4, tzinfo=UTC)
POLICY = next(policy for policy in shipped() if policy.lever == "speculation")
ENOUGH = math.log(BLOCKS_A_CYCLE / 0.05)
ON, OFF = Standing("on", T0), Standing("off_recommended", T0, cause="harm")
WHY = "2 of 8 replicas in control at once, 2 different ones, longest stay 600 min: needs control to rotate"


def effect(low: float, high: float, metric: str = "net_itl_s", **said: Any) -> Effect:
    values: dict[str, Any] = {"since": T0, "until": T0, "blocks": 24, "n_a": 4000, "n_b": 400, "value_a": 0.035, "value_b": 0.031}
    values |= {"gain": (low + high) / 2, "gain_low": low, "gain_high": high, "basis": "control", "coverage": 1.0, "note": None}
    return evident(Effect(metric=metric, **(values | said)))


def refused(low: float, high: float, metric: str = "net_itl_s", **said: Any) -> Effect:
    return effect(low, high, metric, permission="refused", permission_reason=WHY, **said)


def judged(*effects: Effect, before: Standing = ON, blocks: int = 8) -> list[tuple[str, str, str]]:
    """(verdict, action, reason code) of so many blocks alike."""
    said, standing = [], before
    for _ in range(blocks):
        one = judge(POLICY, {each.metric: each for each in effects}, standing, T0)
        said.append((one.verdict, one.action, one.reason_code))
        standing = Standing(one.state, one.state_since, one.streak, one.reason_code, standing.cause)
    return said


def test_a_loss_against_a_fixed_control_disables_nothing_and_says_the_numbers_and_what_it_takes() -> None:
    assert set(judged(refused(-0.3, -0.2, evidence_below=[ENOUGH] * len(NULLS)))) == {("insufficient", "hold", "fixed_control")}
    reason = judge(POLICY, {"net_itl_s": refused(-0.3, -0.2)}, ON, T0).reason
    assert "gain -25 % (-30..-20 %), 24 blocks" in reason
    assert "needs control to rotate" in reason


def test_a_gain_against_a_fixed_control_turns_nothing_on_again() -> None:
    assert set(judged(refused(0.2, 0.3, evidence_above=[ENOUGH] * len(NULLS)), before=OFF)) == {("insufficient", "hold", "fixed_control")}


def test_a_contrast_that_is_refused_fails_by_no_trigger_and_another_that_may_decide_still_does() -> None:
    fine, late = effect(0.1, 0.2), effect(-0.6, -0.4, "ttft_s")
    assert judged(fine, late)[-1][:2] == ("disable", "disable")
    assert judged(refused(0.1, 0.2), late)[2] == ("disable", "disable", "failure_mode")
    assert judged(fine, refused(-0.6, -0.4, "ttft_s"))[-1] == ("keep", "keep", "pays")


def test_control_that_was_not_watched_for_long_is_not_accused() -> None:
    fresh = effect(-0.3, -0.2, permission="unseen", permission_reason="known in 25 min at the latest")
    assert set(judged(fresh)) == {("insufficient", "hold", "rotation_unseen")}
    assert "25 min" in judge(POLICY, {"net_itl_s": fresh}, ON, T0).reason
    assert judged(fresh._replace(blocks=3))[0][2] == "few_blocks"


@pytest.mark.parametrize(("high", "is_harm"), [(-0.11, True), (-0.05, False)])
def test_a_widened_null_is_passed_only_beyond_its_margin(high: float, is_harm: bool) -> None:
    said = judged(effect(high - 0.1, high, permission="widened_null", margin=0.04))
    assert (said[-1][2] in ("harm", "hysteresis")) == is_harm


def test_evidence_is_read_at_the_null_beyond_the_margin() -> None:
    """Of NULLS the nearest at or beyond -2 % and -3 % is -5 %, and above 5 % and 3 % it is 10 %."""
    below = [ENOUGH if null >= -0.02 else 0.0 for null in NULLS]
    above = [ENOUGH if null <= 0.05 else 0.0 for null in NULLS]
    plain = effect(-0.3, 0.3, evidence_below=below, evidence_above=above)
    assert judged(plain)[-1][0] == "disable"
    assert judged(plain._replace(margin=0.03))[-1][0] == "keep"
    back = effect(-0.3, 0.3, evidence_below=[0.0] * len(NULLS), evidence_above=above)
    assert judged(back, before=OFF)[0][2] == "recovering"
    assert judged(back._replace(margin=0.03), before=OFF)[0][2] == "hysteresis"


def test_a_gain_pays_only_beyond_the_margin_and_the_reason_names_it() -> None:
    within = effect(0.02, 0.06, permission="widened_null", margin=0.04)
    assert judged(within)[-1] == ("keep", "keep", "no_harm")
    assert judged(effect(0.05, 0.09, permission="widened_null", margin=0.04))[-1] == ("keep", "keep", "pays")
    assert compared(within).endswith("24 blocks; fixed control replicas may make 4.0 % of it by themselves")
    assert compared(effect(0.02, 0.06, margin=0.0)).endswith("24 blocks")


@pytest.mark.parametrize("before", [ON, OFF])
def test_arms_that_are_split_otherwise_than_intended_freeze_in_the_state_they_are(before: Standing) -> None:
    off = effect(-0.3, -0.2, sample_ratio_off=True, control_share=0.041, intended_control_share=0.05, permission="same_replicas")
    assert set(judged(off, before=before)) == {("frozen", "hold", "sample_ratio")}
    assert "control got 4.1 % of the last hours' requests, 5 % were intended" in judge(POLICY, {"net_itl_s": off}, before, T0).reason


def test_effects_of_which_no_rule_is_known_decide_as_they_did() -> None:
    assert judged(effect(-0.3, -0.2))[-1][0] == "disable"
