"""The four states: what leads from one to the next, what is advised in each, and what never moves a stream."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from test_alerts_judge import BLOCK, SPECULATION, T0, effect, gain, healthy, premise, uncontrolled

from alerts.chain import Advice, Gate
from alerts.effects import Effect
from alerts.judge import Judgment, Standing, after, judge, stale
from alerts.standing import NOTHING_SEEN, Seen

ADVICE = Advice(
    metric="skipped_token_ratio", is_="below", threshold=0.1, unit="ratio", for_blocks=2, source="test", advice="put the stable part first"
)
GATE = Gate(metric="ttft_s_p95", is_="above", relative_to_control=1.5, unit="ratio", for_blocks=2, source="test", covers="latency")
POLICY = msgspec.structs.replace(SPECULATION, gates=(GATE,), advise_when=(ADVICE,))
GONE = Seen(in_use=False, used="0 of 512 requests treated in 3 blocks")
THERE = Seen(in_use=True, used="480 of 512 requests treated in 3 blocks")
OFF = Standing("off", T0 - timedelta(days=1), cause="harm", advised="disable")
RECOMMENDED = Standing("off_recommended", T0 - timedelta(days=1), cause="harm", advised="disable", confirmed_at=T0)
WAITING = Standing("probation", T0, cause="harm", advised="enable")
TRIED = Standing("probation", T0, cause="harm")
GOOD, BAD = gain(0.1, 0.2), gain(-0.3, -0.2)
SLOW = gain(-0.9, -0.7, "ttft_s_p95")


def seen_by(net: Effect, **others: Effect) -> dict[str, Effect]:
    return healthy(SPECULATION) | {"net_itl_s": net, "batch_at_admission": premise("batch_at_admission", 8.0)} | others


def play(effects: dict[str, Effect], blocks: int, standing: Standing, seen: Seen = NOTHING_SEEN, start: int = 0) -> list[Judgment]:
    """What is said of so many blocks alike, whose windows move on with them."""
    said = []
    for number in range(start + 1, start + blocks + 1):
        until = T0 + number * BLOCK
        moved = {name: one._replace(since=until - 24 * BLOCK, until=until) for name, one in effects.items()}
        judgment = judge(POLICY, moved, standing, until, seen)
        standing = after(standing, judgment, until)
        said.append(judgment)
    return said


def told(judgment: Judgment) -> tuple[str, str, str, str]:
    return judgment.verdict, judgment.action, judgment.reason_code, judgment.state


def test_a_recommendation_that_was_followed_is_off_and_asks_for_nothing() -> None:
    [said] = play(seen_by(BAD), 1, RECOMMENDED, GONE)
    assert told(said) == ("disable", "hold", "switched_off", "off")
    assert said.reason == "switched off: 0 of 512 requests treated in 3 blocks"


def test_what_is_off_without_treated_traffic_stays_off_and_says_that_nothing_can_be_seen() -> None:
    said = play({}, 400, OFF, GONE)
    assert {told(one) for one in said} == {("insufficient", "hold", "off_unseen", "off")}
    assert "its return cannot be seen: net ITL gain not measured" in said[0].reason


def test_what_is_off_and_good_again_on_the_traffic_that_is_kept_may_come_back() -> None:
    said = play(seen_by(GOOD), SPECULATION.re_enable_when.for_blocks, OFF, GONE)
    assert {told(one) for one in said[:-1]} == {("disable", "hold", "recovering", "off")}
    assert told(said[-1]) == ("keep", "enable", "may_return", "probation")
    assert "batch at admission 8, below the threshold of 64" in said[-1].reason


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"batch_at_admission": premise("batch_at_admission", 80.0)}, "the enabling condition does not hold: batch at admission 80"),
        ({"ttft_s_p95": SLOW}, "the gate on latency is broken: TTFT p95"),
    ],
)
def test_a_broken_gate_or_traffic_that_does_not_enable_it_keeps_a_lever_off(changed: dict[str, Effect], why: str) -> None:
    said = play(seen_by(GOOD, **changed), 20, OFF, GONE)
    assert {told(one) for one in said} == {("disable", "hold", "hysteresis", "off")}
    assert why in said[-1].reason


def test_an_enabling_condition_that_is_not_known_does_not_enable() -> None:
    effects = seen_by(GOOD)
    del effects["batch_at_admission"]
    assert {one.state for one in play(effects, 20, OFF, GONE)} == {"off"}


def test_treated_traffic_that_comes_back_without_advice_is_on_probation() -> None:
    [said] = play(seen_by(BAD), 1, OFF, THERE)
    assert told(said) == ("insufficient", "hold", "back_in_use", "probation")


def test_advice_to_enable_stands_until_it_is_followed_and_is_withdrawn_where_the_numbers_turn() -> None:
    assert {told(one) for one in play(seen_by(GOOD), 300, WAITING, GONE)} == {("keep", "enable", "may_return", "probation")}
    assert told(play(seen_by(BAD), 1, WAITING, GONE)[0]) == ("disable", "hold", "withdrawn", "off")
    assert told(play(seen_by(GOOD, ttft_s_p95=SLOW), 1, WAITING, GONE)[0]) == ("disable", "hold", "withdrawn", "off")


def test_probation_begins_when_the_lever_is_back_and_ends_once_all_numbers_are_of_after_it() -> None:
    said = play(seen_by(GOOD), 30, WAITING, THERE)
    assert {told(one) for one in said[:24]} == {("insufficient", "hold", "probation", "probation")}
    assert said[0].state_since == T0 + BLOCK
    assert "still of requests from before it" in said[0].reason
    assert told(said[24]) == ("keep", "keep", "back", "on")


def test_a_trigger_on_probation_counts_only_where_it_is_of_requests_since() -> None:
    said = play(seen_by(BAD), 40, TRIED, THERE)
    assert {one.state for one in said[:25]} == {"probation"}
    assert [one.reason_code for one in said[23:26]] == ["harm_pending", "harm_pending", "harm"]
    assert told(said[25]) == ("disable", "disable", "harm", "off_recommended")


def test_evidence_from_before_a_trial_does_not_end_it() -> None:
    """Evidence of a loss fades slowly: the gain of the window itself has to be a loss too."""
    logs = effect("net_itl_s", gain=0.1, gain_low=0.05, gain_high=0.15, evidence_below=[99.0] * 7, evidence_above=[-9.0] * 7)
    assert {one.state for one in play(seen_by(logs), 23, TRIED, THERE)} == {"probation"}
    assert play(seen_by(logs), 26, TRIED, THERE)[-1].state == "on"


def test_thin_data_neither_ends_nor_breaks_a_probation() -> None:
    said = play(seen_by(gain(0.1, 0.2, coverage=0.2)), 100, TRIED, THERE)
    assert {(one.verdict, one.state) for one in said} == {("frozen", "probation")}


def test_a_lever_that_is_switched_off_again_is_off() -> None:
    assert told(play(seen_by(GOOD), 1, TRIED, GONE)[0]) == ("disable", "hold", "switched_off", "off")


def test_without_control_a_premise_that_is_known_ends_a_probation() -> None:
    alone = seen_by(uncontrolled("net_itl_s", 0.03))
    tried = TRIED._replace(cause="premise_lost.acceptance_length")
    assert play(alone, 30, tried, THERE)[-1].state == "on"
    nothing_known = {"net_itl_s": uncontrolled("net_itl_s", 0.03)}
    assert play(nothing_known, 30, tried, THERE)[-1].state == "probation"


def test_setting_it_otherwise_follows_other_advice_than_to_disable() -> None:
    shortened = Seen(in_use=True, setting="eagle-1", used="set at noon")
    advised = RECOMMENDED._replace(advised="shorten", cause="harm.shorten")
    [said] = play(seen_by(BAD), 1, advised, shortened)
    assert told(said) == ("insufficient", "hold", "set_otherwise", "probation")
    assert play(seen_by(BAD), 1, RECOMMENDED, shortened)[0].state == "off_recommended"


def test_advice_to_shorten_becomes_advice_to_disable_where_that_trigger_holds_for_its_blocks() -> None:
    advised = RECOMMENDED._replace(advised="shorten", cause="premise_lost.conditional_acceptance_at_2.shorten")
    said = play(seen_by(BAD), 3, advised, THERE)
    assert [told(one)[:3] for one in said] == [
        ("disable", "shorten", "harm_pending"),
        ("disable", "shorten", "harm_pending"),
        ("disable", "disable", "harm"),
    ]
    assert [one.is_raised for one in said] == [False, False, True]
    assert said[2].state_since == T0 + 3 * BLOCK
    assert after(advised, said[2], T0 + 3 * BLOCK).advised == "disable"


def test_a_recommendation_keeps_the_action_that_was_advised() -> None:
    later = effect(
        "conditional_acceptance_at_2", basis="premise", value_a=0.1, n_b=0, value_b=None, gain=None, gain_low=None, gain_high=None
    )
    first = later._replace(metric="conditional_acceptance_at_1", value_a=0.8)
    effects = seen_by(BAD, conditional_acceptance_at_2=later, conditional_acceptance_at_1=first)
    said = play(effects, 5, Standing("on", T0), THERE)
    assert told(said[2]) == ("disable", "shorten", "harm.shorten", "off_recommended")
    assert {one.action for one in said[2:]} == {"shorten"}


def test_a_broken_gate_turns_keep_into_hold_after_its_blocks_and_is_told_in_numbers() -> None:
    said = play(seen_by(GOOD, ttft_s_p95=SLOW), 3, Standing("on", T0))
    assert [told(one)[:3] for one in said] == [("keep", "keep", "pays"), ("keep", "hold", "gate.latency"), ("keep", "hold", "gate.latency")]
    assert said[1].reason.startswith("the gate on latency is broken: TTFT p95")
    assert play(seen_by(GOOD), 1, after(Standing("on", T0), said[2]))[0].reason_code == "pays"


def test_a_gate_that_holds_now_and_then_is_counted_anew() -> None:
    standing, codes = Standing("on", T0), []
    for number in range(6):
        judgment = judge(POLICY, seen_by(GOOD, ttft_s_p95=SLOW if number % 2 else gain(0.0, 0.1, "ttft_s_p95")), standing, T0)
        standing = after(standing, judgment)
        codes.append(judgment.reason_code)
    assert set(codes) == {"pays"}


def test_advice_is_said_in_the_reason_and_is_no_switch() -> None:
    little = premise("skipped_token_ratio", 0.04)
    said = play(seen_by(GOOD, skipped_token_ratio=little), 2, Standing("on", T0))
    assert "advice" not in said[0].reason
    assert said[1].reason.endswith("advice: put the stable part first (skipped token ratio 4 %, below the threshold of 10 %)")
    assert told(said[1])[:3] == ("keep", "keep", "pays")


@pytest.mark.parametrize("standing", [Standing("on", T0), RECOMMENDED, OFF, TRIED, WAITING])
def test_whatever_was_not_measured_moves_no_stream(standing: Standing) -> None:
    assert {one.state for one in play({}, 50, standing)} == {standing.state}
    assert stale(standing, T0, T0 + timedelta(hours=9)).state == standing.state


def test_a_frozen_recommendation_says_since_when_nothing_has_confirmed_it() -> None:
    [first] = play(seen_by(BAD), 1, RECOMMENDED)
    standing = after(RECOMMENDED, first, T0 + BLOCK)
    [said] = play(seen_by(gain(-0.3, -0.2, coverage=0.2)), 1, standing, start=1)
    assert told(said) == ("frozen", "hold", "coverage", "off_recommended")
    assert said.reason.endswith("recommended since 2026-03-03T00:00:00Z, not confirmed since 2026-03-04T00:05:00Z")
    assert "not confirmed since" in stale(standing, T0, T0 + timedelta(hours=2)).reason


def refused(low: float, high: float, **changes: Any) -> Effect:
    return gain(low, high, permission="refused", permission_reason="control does not rotate", **changes)


def test_beside_a_control_that_is_refused_a_lost_premise_disables_as_without_one_and_says_so() -> None:
    effects = seen_by(refused(-0.1, 0.1), acceptance_length=premise("acceptance_length", 1.1))
    said = play(effects, 6, Standing("on", T0))[-1]
    assert told(said) == ("disable", "disable", "premise_lost.acceptance_length", "off_recommended")
    assert "basis premise: harm was not measured, control may not decide: control does not rotate; held for 6 blocks" in said.reason


def test_beside_a_control_that_is_refused_only_the_premise_takes_its_recommendation_back() -> None:
    back = seen_by(refused(0.2, 0.3), acceptance_length=premise("acceptance_length", 1.6))
    by_premise = RECOMMENDED._replace(cause="premise_lost.acceptance_length")
    assert play(back, 6, by_premise)[-1].state == "on"
    assert {one.state for one in play(back, 20, RECOMMENDED)} == {"off_recommended"}


def test_what_turned_a_lever_off_by_itself_has_to_be_read_before_it_is_turned_on_again() -> None:
    effects = seen_by(GOOD)
    late = RECOMMENDED._replace(cause="failure_mode")
    assert play(effects, 6, late)[-1].state == "on"
    del effects["ttft_s"]
    assert {told(one) for one in play(effects, 20, late)} == {("insufficient", "hold", "no_recovery_reading", "off_recommended")}


def scores(gain_value: float | None) -> Effect:
    ends = {} if gain_value is None else {"gain": gain_value, "gain_low": gain_value - 0.02, "gain_high": gain_value + 0.02}
    says = None if gain_value is None else "loses" if gain_value < -0.02 else "pays"
    none = {"gain": None, "gain_low": None, "gain_high": None}
    return effect("quality", blocks=5, n_a=5, n_b=5, basis="evaluations", says=says, **(none | ends))


def test_a_breach_of_quality_acts_on_its_own_and_its_sentence_is_the_reason() -> None:
    breach = Seen(quality="quality in qa: 0.79 against 0.88 of the original")
    [said] = play(seen_by(GOOD, quality=scores(-0.1)), 1, Standing("on", T0), breach)
    assert told(said)[:3] == ("disable", "disable", "quality")
    assert said.reason.startswith("quality in qa: 0.79 against 0.88 of the original; net ITL")


@pytest.mark.parametrize("sentence", ["quality in qa: 2 repeats of the original, 5 are needed", "quality not measured: no scores"])
def test_a_keep_says_what_the_quality_gate_could_not_tell(sentence: str) -> None:
    [said] = play(seen_by(GOOD, quality=scores(None)), 1, Standing("on", T0), Seen(quality=sentence, quality_doubt=True))
    assert told(said)[:3] == ("keep", "keep", "pays")
    assert said.reason.endswith(sentence)


def test_without_control_a_breach_is_over_when_newer_scores_say_so() -> None:
    alone = {"net_itl_s": uncontrolled("net_itl_s", 0.03)}
    breached = RECOMMENDED._replace(cause="quality")
    assert {one.state for one in play(alone | {"quality": scores(-0.1)}, 20, breached)} == {"off_recommended"}
    assert {one.state for one in play(alone | {"quality": scores(None)}, 20, breached)} == {"off_recommended"}
    assert play(alone | {"quality": scores(0.0)}, 6, breached)[-1].state == "on"


def test_what_has_to_be_judged_again_is_said_beside_a_keep() -> None:
    [said] = play(seen_by(GOOD), 1, Standing("on", T0), Seen(again="to be judged again: kv_quantization went from fp8 to bf16"))
    assert said.reason.endswith("quality not measured; to be judged again: kv_quantization went from fp8 to bf16")
