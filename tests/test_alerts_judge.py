from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from effect_evidence import evident

from alerts.chain import Harm, Policy, PremiseLost, SingleArm, Trigger, code_of, kind_of
from alerts.conditions import gain_limit, is_gain_above
from alerts.effects import Effect, effect_name
from alerts.judge import Judgment, Standing, judge, stale
from alerts.policy import parse, shipped, shipped_text
from pipeline.metrics import judged

T0 = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SPECULATION = next(policy for policy in shipped() if policy.lever == "speculation")
TRIGGERS = [(policy, trigger) for policy in shipped() for trigger in policy.disable_when]
EPSILON = 1e-6


def effect(metric: str, **changes: Any) -> Effect:
    values: dict[str, Any] = {"since": T0, "until": T0, "blocks": 41, "n_a": 4000, "n_b": 400, "value_a": 0.027, "value_b": 0.031}
    values |= {"gain": 0.13, "gain_low": 0.1, "gain_high": 0.16, "basis": "control", "coverage": 1.0, "note": None}
    return evident(Effect(metric=metric, **(values | changes)))


def premise(metric: str, value: float | None, **changes: Any) -> Effect:
    none = {"n_b": 0, "value_b": None, "gain": None, "gain_low": None, "gain_high": None, "basis": "premise"}
    return effect(metric, **({**none, "value_a": value} | changes))


def gain(low: float, high: float, metric: str = "net_itl_s", **changes: Any) -> Effect:
    return effect(metric, gain=(low + high) / 2, gain_low=low, gain_high=high, **changes)


def uncontrolled(metric: str, value: float) -> Effect:
    return premise(metric, value, basis="none", note="no control arm")


def healthy(policy: Policy) -> dict[str, Effect]:
    """Effects under which nothing of a policy holds."""
    effects = {effect_name(policy.expected_benefit.metric): effect(effect_name(policy.expected_benefit.metric))}
    for trigger in policy.disable_when:
        if isinstance(trigger, PremiseLost):
            effects[trigger.metric] = premise(trigger.metric, trigger.threshold * (2.0 if trigger.is_ == "below" else 0.5))
        else:
            name = effect_name(trigger.metric)
            effects.setdefault(name, gain(-0.01, 0.01, name))
    return effects


def at(policy: Policy, trigger: Any, offset: float) -> dict[str, Effect]:
    """Healthy effects, but the trigger's number lies past (offset > 0) or short of (offset < 0) where it turns."""
    effects = healthy(policy)
    name, metric = effect_name(trigger.metric), judged()[trigger.metric]
    limit = gain_limit(trigger, metric)
    effects |= {one.metric: premise(one.metric, one.threshold + (EPSILON if one.is_ == "above" else -EPSILON)) for one in narrowed(trigger)}
    if limit is None:
        assert trigger.threshold is not None
        effects[name] = premise(name, trigger.threshold + (offset if trigger.is_ == "above" else -offset))
    elif is_gain_above(trigger, metric):
        effects[name] = gain(limit + offset, limit + 0.2, name)
    else:
        effects[name] = gain(limit - 0.2, limit - offset, name)
    if isinstance(trigger, PremiseLost):
        benefit = effect_name(policy.expected_benefit.metric)
        effects[benefit] = uncontrolled(benefit, 0.03)
    return effects


def narrowed(condition: Any) -> tuple[SingleArm, ...]:
    return tuple(getattr(condition, "where", ()))


def play(policy: Policy, blocks: list[dict[str, Effect]], standing: Standing | None = None, start: int = 0) -> list[Judgment]:
    standing = standing or Standing("on", T0)
    said = []
    for number, effects in enumerate(blocks, start + 1):
        judgment = judge(policy, effects, standing, T0 + number * BLOCK)
        cause = judgment.reason_code if judgment.state != standing.state else standing.cause
        standing = Standing(judgment.state, judgment.state_since, judgment.streak, judgment.reason_code, cause)
        said.append(judgment)
    return said


def names(case: object) -> str:
    return code_of(SPECULATION, case) if isinstance(case, Trigger) else getattr(case, "name", "")


@pytest.mark.parametrize(("policy", "trigger"), TRIGGERS, ids=names)
def test_a_trigger_just_past_its_threshold_for_its_blocks_disables(policy: Policy, trigger: Trigger) -> None:
    said = play(policy, [at(policy, trigger, EPSILON)] * trigger.for_blocks)
    assert [judgment.verdict == "disable" for judgment in said] == [False] * (trigger.for_blocks - 1) + [True]
    assert said[-1].reason_code == code_of(policy, trigger)
    assert said[-1].state == "off_recommended"
    assert said[-1].state_since == T0 + trigger.for_blocks * BLOCK


@pytest.mark.parametrize(("policy", "trigger"), TRIGGERS, ids=names)
def test_a_trigger_just_short_of_its_threshold_never_disables(policy: Policy, trigger: Trigger) -> None:
    said = play(policy, [at(policy, trigger, -EPSILON)] * (trigger.for_blocks + 2))
    assert {judgment.state for judgment in said} == {"on"}
    assert "disable" not in {judgment.verdict for judgment in said}


@pytest.mark.parametrize(("policy", "trigger"), TRIGGERS, ids=names)
def test_one_good_block_starts_the_count_again(policy: Policy, trigger: Trigger) -> None:
    bad, good = at(policy, trigger, EPSILON), at(policy, trigger, -EPSILON)
    said = play(policy, [*[bad] * (trigger.for_blocks - 1), good, *[bad] * (trigger.for_blocks - 1)])
    assert {judgment.state for judgment in said} == {"on"}


@pytest.mark.parametrize("policy", shipped(), ids=lambda policy: policy.name)
def test_re_enabling_turns_just_past_its_threshold_and_not_just_short_of_it(policy: Policy) -> None:
    off = Standing("off_recommended", T0 - timedelta(days=1), cause="harm")
    blocks = policy.re_enable_when.for_blocks
    past = play(policy, [at(policy, policy.re_enable_when, EPSILON)] * blocks, off)
    short = play(policy, [at(policy, policy.re_enable_when, -EPSILON)] * blocks, off)
    assert (past[-1].state, past[-1].verdict, past[-1].reason_code) == ("on", "keep", "recovered")
    assert [judgment.reason_code for judgment in past[:-1]] == ["recovering"] * (blocks - 1)
    assert {(judgment.state, judgment.reason_code) for judgment in short} == {("off_recommended", "hysteresis")}


def test_harm_is_told_in_numbers() -> None:
    effects = healthy(SPECULATION) | {
        "net_itl_s": effect("net_itl_s", value_a=0.031, value_b=0.027, gain=-0.15, gain_low=-0.22, gain_high=-0.09)
    }
    assert play(SPECULATION, [effects] * 3)[-1].reason == (
        "net ITL is more than 2 % worse than control's: evident, a false call on at most 5 % of days; 00:00 to 00:00 UTC: "
        "net ITL 31 ms against 27 ms in control, gain -15 % (-22..-9 %), 41 blocks; held for 3 blocks of 5 min, up to 00:15 UTC"
    )


def test_a_keep_says_what_was_not_measured() -> None:
    [said] = play(SPECULATION, [healthy(SPECULATION)])
    assert (said.verdict, said.action, said.reason_code) == ("keep", "keep", "pays")
    assert said.reason.endswith("quality not measured")


def test_an_interval_across_zero_keeps_and_does_not_claim_a_gain() -> None:
    [said] = play(SPECULATION, [healthy(SPECULATION) | {"net_itl_s": gain(-0.02, 0.04)}])
    assert (said.verdict, said.reason_code) == ("keep", "no_harm")


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        ({"blocks": 5}, "insufficient", "few_blocks"),
        ({"n_a": 99}, "insufficient", "few_requests"),
        ({"n_b": 99}, "insufficient", "few_requests"),
        ({"coverage": 0.89}, "frozen", "coverage"),
        ({"gain_low": None, "gain_high": None, "note": "too few blocks"}, "insufficient", "no_interval"),
    ],
)
def test_thin_data_is_never_a_pass_and_never_disables(changes: dict[str, Any], verdict: str, code: str) -> None:
    bad = {"gain": -0.3, "gain_low": -0.4, "gain_high": -0.2} | changes
    said = play(SPECULATION, [healthy(SPECULATION) | {"net_itl_s": effect("net_itl_s", **bad)}] * 5)
    assert {(judgment.verdict, judgment.action, judgment.reason_code, judgment.state) for judgment in said} == {
        (verdict, "hold", code, "on")
    }


@pytest.mark.parametrize("changes", [{"blocks": 6}, {"n_a": 100}, {"n_b": 100}, {"coverage": 0.9}])
def test_just_enough_data_is_judged(changes: dict[str, Any]) -> None:
    said = play(SPECULATION, [healthy(SPECULATION) | {"net_itl_s": gain(-0.4, -0.2, **changes)}] * 3)
    assert said[-1].verdict == "disable"


def test_a_block_without_the_benefit_metric_is_insufficient() -> None:
    effects = healthy(SPECULATION)
    del effects["net_itl_s"]
    [said] = play(SPECULATION, [effects])
    assert (said.verdict, said.reason_code) == ("insufficient", "no_effect")
    assert "net ITL was not measured" in said.reason


def test_a_lost_premise_beside_a_valid_control_only_stands_in_the_reason() -> None:
    effects = healthy(SPECULATION) | {"acceptance_length": premise("acceptance_length", 1.1)}
    said = play(SPECULATION, [effects] * 12)
    assert {judgment.verdict for judgment in said} == {"keep"}
    assert "premise lost: acceptance length 1.1, below the threshold of 1.25" in said[-1].reason


def test_a_control_that_is_still_too_small_does_not_let_a_premise_decide() -> None:
    effects = healthy(SPECULATION) | {
        "net_itl_s": effect("net_itl_s", blocks=2),
        "acceptance_length": premise("acceptance_length", 1.1),
    }
    assert {judgment.verdict for judgment in play(SPECULATION, [effects] * 12)} == {"insufficient"}


def test_without_control_a_lost_premise_disables_and_says_that_harm_was_not_measured() -> None:
    effects = {"net_itl_s": uncontrolled("net_itl_s", 0.03), "acceptance_length": premise("acceptance_length", 1.1)}
    said = play(SPECULATION, [effects] * 6)[-1]
    assert (said.verdict, said.reason_code) == ("disable", "premise_lost.acceptance_length")
    assert said.reason == (
        "premise lost: acceptance length 1.1, below the threshold of 1.25; basis premise: harm was not measured, no control traffic; "
        "held for 6 blocks of 5 min, up to 00:30 UTC"
    )


def test_without_control_a_holding_premise_is_insufficient_with_its_numbers() -> None:
    effects = {"net_itl_s": uncontrolled("net_itl_s", 0.03), "acceptance_length": premise("acceptance_length", 2.9)}
    [said] = play(SPECULATION, [effects])
    assert (said.verdict, said.action, said.reason_code) == ("insufficient", "hold", "no_control")
    assert "harm was not measured; acceptance length 2.9, above the threshold of 1.25; batch at admission not measured" in said.reason


def test_a_premise_known_for_too_few_requests_does_not_disable() -> None:
    effects = {"net_itl_s": uncontrolled("net_itl_s", 0.03), "acceptance_length": premise("acceptance_length", 1.1, coverage=0.5)}
    said = play(SPECULATION, [effects] * 12)
    assert {judgment.state for judgment in said} == {"on"}
    assert "acceptance length known for 50 % of requests, 90 % are needed" in said[-1].reason


def test_a_failure_mode_disables_on_its_own_even_where_the_benefit_cannot_be_judged() -> None:
    effects = healthy(SPECULATION) | {"net_itl_s": effect("net_itl_s", coverage=0.3), "ttft_s": gain(-0.6, -0.4, "ttft_s")}
    said = play(SPECULATION, [effects] * 3)
    assert [judgment.verdict for judgment in said] == ["frozen", "frozen", "disable"]
    assert said[-1].reason_code == "failure_mode"


def test_a_trigger_that_is_being_counted_goes_on_when_another_joins() -> None:
    slow_first = healthy(SPECULATION) | {"ttft_s": gain(-0.6, -0.4, "ttft_s")}
    both = slow_first | {"net_itl_s": gain(-0.3, -0.2)}
    said = play(SPECULATION, [slow_first, both, slow_first])
    assert (said[-1].verdict, said[-1].reason_code) == ("disable", "failure_mode")


def test_between_the_thresholds_the_state_stays_as_it_is() -> None:
    between = healthy(SPECULATION) | {"net_itl_s": gain(0.01, 0.04)}
    assert {judgment.state for judgment in play(SPECULATION, [between] * 20)} == {"on"}
    off = Standing("off_recommended", T0 - timedelta(days=1), cause="harm")
    assert {judgment.state for judgment in play(SPECULATION, [between] * 20, off)} == {"off_recommended"}


def test_a_recommendation_stands_for_an_hour_at_least() -> None:
    bad, good = healthy(SPECULATION) | {"net_itl_s": gain(-0.3, -0.2)}, healthy(SPECULATION)
    said = play(SPECULATION, [bad] * 3 + [good] * 15)
    off_at = said[2].state_since
    back = next(judgment for judgment in said[3:] if judgment.state == "on")
    assert back.state_since - off_at == timedelta(hours=1)
    assert "stays off for 60 min at least" in said[10].reason


def test_missing_data_does_not_take_a_recommendation_back() -> None:
    off = Standing("off_recommended", T0 - timedelta(days=1), cause="harm")
    thin = healthy(SPECULATION) | {"net_itl_s": effect("net_itl_s", coverage=0.2)}
    said = play(SPECULATION, [thin] * 10, off)
    assert {(judgment.verdict, judgment.state) for judgment in said} == {("frozen", "off_recommended")}


@pytest.mark.parametrize(("length", "state"), [(1.4, "off_recommended"), (1.6, "on")])
def test_off_by_a_premise_and_still_without_control_the_premise_turns_it_on_again(length: float, state: str) -> None:
    off = Standing("off_recommended", T0 - timedelta(days=1), cause="premise_lost.acceptance_length")
    effects = {"net_itl_s": uncontrolled("net_itl_s", 0.03), "acceptance_length": premise("acceptance_length", length)}
    assert play(SPECULATION, [effects] * 6, off)[-1].state == state


def test_off_by_harm_a_good_premise_without_control_does_not_turn_it_on_again() -> None:
    off = Standing("off_recommended", T0 - timedelta(days=1), cause="harm")
    effects = {"net_itl_s": uncontrolled("net_itl_s", 0.03), "acceptance_length": premise("acceptance_length", 3.0)}
    said = play(SPECULATION, [effects] * 12, off)
    assert {(judgment.verdict, judgment.state) for judgment in said} == {("insufficient", "off_recommended")}


def test_a_minimum_gain_disables_what_helps_too_little() -> None:
    text = shipped_text("speculation-net-itl").replace("minimum_gain = 0.0", "minimum_gain = 0.03")
    text = text.replace('kind = "harm"', 'kind = "benefit_gone"').replace("threshold = -0.02\n", "threshold = 0.03\n")
    policy = parse(text, "my.toml")
    little = healthy(SPECULATION) | {"net_itl_s": gain(0.01, 0.019)}
    assert play(policy, [little] * 3)[-1].reason_code == "benefit_gone"
    assert play(SPECULATION, [little] * 3)[-1].verdict == "keep"


def test_a_stream_whose_traffic_stopped_is_frozen_in_its_state() -> None:
    said = stale(Standing("off_recommended", T0), T0, T0 + timedelta(hours=2))
    assert (said.verdict, said.state, said.reason_code) == ("frozen", "off_recommended", "stale")
    assert said.reason == "no block since 2026-03-04T00:00:00Z, 120 min behind the newest data"


def test_every_kind_of_trigger_has_a_name() -> None:
    harm = Harm(metric="net_itl_gain", is_="below", threshold=0.0, unit="ratio", for_blocks=1, source="x")
    assert kind_of(harm) == "harm"
    assert isinstance(SPECULATION.enabling_condition, SingleArm)
