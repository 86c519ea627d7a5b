"""Each condition of each shipped policy, driven just past and just short of its threshold: what is said changes, and by that alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import policy_drive
import pytest
from policy_drive import NEAR, T0, Named, alone, at, conditions, driven, healthy, play

from alerts.chain import Advice, Gate, Policy, PremiseLost, Trigger, code_of
from alerts.effects import effect_name
from alerts.judge import Standing
from alerts.policy import shipped
from alerts.standing import Seen

SHIPPED = shipped()
CASES = [(policy, named) for policy in SHIPPED for named in conditions(policy)]
SWITCHED_OFF = Seen(in_use=False, used="no treated request for 2 hours")


def of(kind: Any) -> Any:
    chosen = [(policy, named) for policy, named in CASES if isinstance(named.condition, kind)]
    return pytest.mark.parametrize(("policy", "named"), chosen, ids=label)


def label(case: object) -> str:
    return case.name if isinstance(case, Policy) else getattr(case, "key", "")


@pytest.mark.parametrize("policy", SHIPPED, ids=label)
def test_a_lever_of_which_nothing_holds_is_kept(policy: Policy) -> None:
    (said,) = play(policy, healthy(policy), 1)
    assert (said.verdict, said.action, said.reason_code, said.state) == ("keep", "keep", "pays", "on")


@of(Trigger)
def test_a_trigger_past_its_threshold_for_its_blocks_advises_its_action(policy: Policy, named: Named) -> None:
    trigger = named.condition
    alone_on_its_metric = _only(policy, trigger)
    past = play(alone_on_its_metric, at(policy, trigger, NEAR), trigger.for_blocks)
    short = play(alone_on_its_metric, at(policy, trigger, -NEAR), trigger.for_blocks)
    assert [one.state for one in past] == ["on"] * (trigger.for_blocks - 1) + ["off_recommended"]
    assert (past[-1].verdict, past[-1].action, past[-1].reason_code) == ("disable", trigger.action, code_of(alone_on_its_metric, trigger))
    assert {one.state for one in short} == {"on"}
    assert "disable" not in {one.verdict for one in short}


@of(Trigger)
def test_a_trigger_among_all_of_its_policy_turns_it_at_its_threshold_and_not_before(policy: Policy, named: Named) -> None:
    past = play(policy, at(policy, named.condition, NEAR), named.condition.for_blocks)
    short = play(policy, at(policy, named.condition, -NEAR), named.condition.for_blocks)
    assert (past[-1].verdict, past[-1].state) == ("disable", "off_recommended")
    assert {one.state for one in short} == {"on"}


@pytest.mark.parametrize(("policy", "named"), [case for case in CASES if ".where" in case[1].key], ids=label)
def test_what_narrows_a_condition_decides_whether_it_speaks(policy: Policy, named: Named) -> None:
    owner = next(one.condition for one in conditions(policy) if one.key == named.key.split(".")[0])
    blocks = owner.for_blocks
    held = at(policy, owner, NEAR)
    past = play(policy, held | {named.condition.metric: driven(named.condition, NEAR)}, blocks)[-1]
    short = play(policy, held | {named.condition.metric: driven(named.condition, -NEAR)}, blocks)[-1]
    if isinstance(owner, Advice):
        assert (owner.advice in past.reason, owner.advice in short.reason) == (True, False)
        return
    assert (past.action, past.reason_code) == (owner.action, code_of(policy, owner))
    assert short.action != owner.action


@of(Gate)
def test_a_gate_that_is_broken_holds_a_lever_that_pays(policy: Policy, named: Named) -> None:
    gate = named.condition
    rest = policy_drive.without(policy, effect_name(gate.metric))
    gated = msgspec.structs.replace(rest, gates=(gate,))
    past, short = play(gated, at(policy, gate, NEAR), gate.for_blocks)[-1], play(gated, at(policy, gate, -NEAR), gate.for_blocks)[-1]
    assert (past.verdict, past.action, past.reason_code, past.state) == ("keep", "hold", f"gate.{gate.covers}", "on")
    assert (short.verdict, short.action) == ("keep", "keep")


@of(Advice)
def test_advice_is_given_past_its_threshold_and_switches_nothing(policy: Policy, named: Named) -> None:
    advice = named.condition
    rest = msgspec.structs.replace(
        policy,
        gates=tuple(gate for gate in policy.gates if gate.metric != advice.metric),
        disable_when=tuple(trigger for trigger in policy.disable_when if trigger.metric != advice.metric),
    )
    past, short = (play(rest, at(policy, advice, offset), advice.for_blocks)[-1] for offset in (NEAR, -NEAR))
    assert (advice.advice in past.reason, advice.advice in short.reason) == (True, False)
    assert past[:3] == short[:3] == ("keep", "keep", "pays")


@pytest.mark.parametrize("policy", SHIPPED, ids=label)
def test_a_recommendation_is_taken_back_past_the_threshold_for_turning_on_again(policy: Policy) -> None:
    back = policy.re_enable_when
    before = Standing("off_recommended", T0 - timedelta(days=1), cause="harm", advised=policy.disable_when[0].action)
    past, short = (play(policy, at(policy, back, offset), back.for_blocks, before) for offset in (NEAR, -NEAR))
    assert [one.state for one in past] == ["off_recommended"] * (back.for_blocks - 1) + ["on"]
    assert {one.state for one in short} == {"off_recommended"}


@pytest.mark.parametrize("policy", SHIPPED, ids=label)
def test_a_lever_that_is_off_may_return_only_where_its_enabling_condition_holds(policy: Policy) -> None:
    back, enabling = policy.re_enable_when, policy.enabling_condition
    before = Standing("off", T0 - timedelta(days=1), cause="harm", advised="disable")
    rest = policy_drive.without(policy, enabling.metric)
    good = at(policy, back, 0.05)
    said = [
        play(rest, good | {enabling.metric: driven(enabling, offset)}, back.for_blocks, before, SWITCHED_OFF)[-1]
        for offset in (NEAR, -NEAR)
    ]
    assert [(one.state, one.action) for one in said] == [("probation", "enable"), ("off", said[1].action)]
    assert "enabling condition" in said[1].reason


@pytest.mark.parametrize("policy", SHIPPED, ids=label)
def test_a_gain_past_the_least_that_is_expected_pays_and_one_short_of_it_does_no_harm(policy: Policy) -> None:
    name, least = effect_name(policy.expected_benefit.metric), policy.expected_benefit.minimum_gain
    seen = healthy(policy)
    pays, even = (play(policy, seen | {name: policy_drive.compared(name, least + low, 0.5)}, 1)[0] for low in (NEAR, -NEAR))
    assert (pays.reason_code, even.reason_code) == ("pays", "no_harm")


@pytest.mark.parametrize(("policy", "trigger"), [(p, t) for p in SHIPPED for t in p.disable_when if isinstance(t, PremiseLost)], ids=label)
def test_a_lost_premise_turns_no_lever_whose_control_says_that_it_pays(policy: Policy, trigger: PremiseLost) -> None:
    lost = healthy(policy) | {trigger.metric: driven(trigger, NEAR)} | {one.metric: driven(one, NEAR) for one in trigger.where}
    assert {one.state for one in play(policy, lost, trigger.for_blocks + 2)} == {"on"}


RESTORED = [(p, t) for p in SHIPPED for t in p.disable_when if getattr(t, "re_enable_at", None) is not None]


@pytest.mark.parametrize(("policy", "trigger"), RESTORED, ids=label)
def test_a_value_past_where_it_is_good_again_takes_the_recommendation_back(policy: Policy, trigger: Any) -> None:
    lone = _only(policy, trigger)
    before = Standing("off_recommended", T0 - timedelta(days=1), cause=code_of(lone, trigger), advised=trigger.action)
    benefit = effect_name(policy.expected_benefit.metric)
    better = NEAR if trigger.is_ == "below" else -NEAR
    seen = healthy(policy) | {benefit: policy_drive.uncontrolled(benefit)}
    past, short = (seen | {trigger.metric: alone(trigger.metric, trigger.re_enable_at + offset)} for offset in (better, -better))
    blocks = policy.re_enable_when.for_blocks
    assert play(lone, past, blocks, before)[-1].state == "on"
    assert play(lone, short, blocks, before)[-1].state == "off_recommended"


def _only(policy: Policy, trigger: Trigger) -> Policy:
    return msgspec.structs.replace(policy, disable_when=(trigger,))
