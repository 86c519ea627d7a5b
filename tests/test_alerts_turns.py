"""Levers that interact are changed one at a time: in which order, on which traffic, until when, and what is said of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from effect_evidence import evident

from alerts import rounds, turns
from alerts.chain import Policy
from alerts.effects import Effect
from alerts.policy import shipped
from alerts.rounds import Due
from alerts.standing import Judgment, Seen, Standing, after
from alerts.traffic import Traffic
from alerts.turns import Open

T0 = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SHARED = {"model": "m", "hardware": "h100", "topology": "tp4", "input_bucket": "<512"}
SEGMENT = json.dumps(SHARED, sort_keys=True)
WARM = json.dumps(SHARED | {"temperature_bucket": "0.3-0.8"}, sort_keys=True)
ELSEWHERE = json.dumps(SHARED | {"model": "other"}, sort_keys=True)
BASE = next(policy for policy in shipped() if policy.name == "speculation-net-itl")
QUALITY = Seen(quality="quality in qa: 0.7 against 0.9 of the original")


def policy(lever: str, **changes: Any) -> Policy:
    harm = BASE.disable_when[0]
    quality = next(trigger for trigger in BASE.disable_when if trigger.metric == "quality")
    once = tuple(msgspec.structs.replace(trigger, for_blocks=1) for trigger in (harm, quality))
    plain: dict[str, Any] = {"name": lever, "lever": lever, "disable_when": once, "gates": (), "advise_when": (), "goes_before": ()}
    return msgspec.structs.replace(BASE, **(plain | {"revalidates": ()} | changes))


SPECULATION = policy("speculation", revalidates=("prefix_caching", "kv_quantization"))
CACHING, KV, TP = policy("prefix_caching"), policy("kv_quantization"), policy("tensor_parallel")
ALL = (SPECULATION, CACHING, KV, TP)


def effects(gain: float, quality: float | None = None) -> dict[str, Effect]:
    common: dict[str, Any] = {"since": T0, "until": T0, "blocks": 24, "n_a": 4000, "n_b": 400, "value_a": 0.03, "value_b": 0.02}
    net = Effect("net_itl_s", **common, gain=gain, gain_low=gain - 0.05, gain_high=gain + 0.05, basis="control", coverage=1.0, note=None)
    if quality is None:
        return {"net_itl_s": evident(net)}
    ends = {"gain": quality, "gain_low": quality - 0.01, "gain_high": quality + 0.01, "says": "loses"}
    return {"net_itl_s": evident(net), "quality": net._replace(metric="quality", basis="evaluations", **ends)}


def due(one: Policy, gain: float = -0.3, segment: str = SEGMENT, quality: float | None = None, before: Standing | None = None) -> Due:
    return Due(one, segment, before or Standing("on", T0), effects(gain, quality), QUALITY if quality else Seen())


def judged(*dues: Due, standing: tuple[Open, ...] = (), until: datetime = T0 + BLOCK) -> list[Judgment]:
    return rounds.judged(dues, standing, turns.interacting(ALL), until)


def verdicts(said: list[Judgment]) -> list[str]:
    return [one.verdict for one in said]


def test_levers_interact_whichever_of_them_names_the_other() -> None:
    interacts = turns.interacting((*ALL, policy("disaggregation", goes_before=("pool_ratio",))))
    assert interacts["speculation"] == {"prefix_caching", "kv_quantization"}
    assert interacts["prefix_caching"] == interacts["kv_quantization"] == {"speculation"}
    assert interacts["pool_ratio"] == {"disaggregation"}
    assert "tensor_parallel" not in interacts


def test_of_two_that_interact_the_larger_loss_goes_first_and_the_other_says_for_whom_it_waits() -> None:
    said = judged(due(CACHING, -0.2), due(SPECULATION, -0.4))
    assert verdicts(said) == ["conflicted", "disable"]
    assert (said[0].action, said[0].reason_code, said[0].state) == ("hold", "harm_waits", "on")
    assert said[0].reason.endswith(f"waits for speculation (disable) on {SEGMENT}: its loss is the larger, gain -40 %, here -20 %")
    assert verdicts(judged(due(CACHING, -0.4), due(SPECULATION, -0.2))) == ["disable", "conflicted"]


def test_levers_that_share_no_budget_do_not_wait_for_each_other() -> None:
    assert verdicts(judged(due(CACHING), due(KV), due(TP))) == ["disable"] * 3


@pytest.mark.parametrize(("segment", "verdict"), [(WARM, "conflicted"), ("{}", "conflicted"), (ELSEWHERE, "disable")])
def test_only_segments_whose_keys_do_not_contradict_share_traffic(segment: str, verdict: str) -> None:
    assert verdicts(judged(due(SPECULATION, -0.4), due(CACHING, -0.2, segment))) == ["disable", verdict]


def test_the_segment_of_all_others_is_no_traffic_that_could_be_shared() -> None:
    others = '{"segment":"other"}'
    assert verdicts(judged(due(SPECULATION, -0.4), due(CACHING, -0.2, others))) == ["disable", "disable"]
    assert verdicts(judged(due(SPECULATION, -0.4, others), due(CACHING, -0.2))) == ["disable", "disable"]


def test_quality_goes_first_whatever_is_lost() -> None:
    said = judged(due(SPECULATION, -0.6), due(CACHING, 0.2, quality=-0.1))
    assert verdicts(said) == ["conflicted", "disable"]
    assert said[0].reason.endswith("quality goes first")


def test_what_goes_before_another_is_recommended_first() -> None:
    first = policy("prefix_caching", goes_before=("speculation",))
    said = judged(due(SPECULATION, -0.6), due(first, -0.1))
    assert verdicts(said) == ["conflicted", "disable"]
    assert said[0].reason.endswith("prefix_caching goes before speculation")


def test_what_goes_before_another_elsewhere_changes_no_order_here() -> None:
    first = policy("prefix_caching", goes_before=("speculation",))
    assert verdicts(judged(due(SPECULATION, -0.6), due(KV, -0.3), due(first, -0.1, ELSEWHERE))) == ["disable", "conflicted", "disable"]


def test_levers_that_go_before_each_other_in_a_circle_are_taken_by_their_loss() -> None:
    one, other = policy("speculation", goes_before=("prefix_caching",)), policy("prefix_caching", goes_before=("speculation",))
    interacts = turns.interacting((one, other))
    said = rounds.judged([due(one, -0.2), due(other, -0.3)], (), interacts, T0 + BLOCK)
    assert sorted(verdicts(said)) == ["conflicted", "disable"]


def standing_of(one: Policy, segment: str = SEGMENT) -> Open:
    return Open(one, segment, T0, "disable")


def test_a_recommendation_that_stands_is_waited_for_and_its_turn_comes_when_it_is_over() -> None:
    [waits] = judged(due(CACHING), standing=(standing_of(SPECULATION),))
    assert (waits.verdict, waits.streak) == ("conflicted", 1)
    assert waits.reason.endswith("recommended since 2026-03-04T00:00:00Z, and levers that interact are changed one at a time")
    [then] = judged(due(CACHING, before=after(Standing("on", T0), waits)))
    assert (then.verdict, then.state) == ("disable", "off_recommended")


def test_a_trigger_of_several_blocks_keeps_its_count_while_it_waits() -> None:
    slow = policy("prefix_caching", disable_when=BASE.disable_when[:1])
    standing, said = Standing("on", T0), []
    for number in range(1, 6):
        opened = (standing_of(SPECULATION),) if number < 5 else ()
        [one] = judged(due(slow, before=standing), standing=opened, until=T0 + number * BLOCK)
        standing = after(standing, one)
        said.append(one.reason_code)
    assert said == ["harm_pending", "harm_pending", "harm_waits", "harm_waits", "harm"]


def test_one_that_is_resolved_or_switched_in_the_same_block_is_not_waited_for() -> None:
    there = Standing("off_recommended", T0 - timedelta(days=1), cause="harm", advised="disable")
    switched = due(SPECULATION, before=there)._replace(seen=Seen(in_use=False, used="0 of 300"))
    assert [one.state for one in judged(due(CACHING), switched, standing=(standing_of(SPECULATION),))] == ["off_recommended", "off"]
    still = due(SPECULATION, before=there._replace(state_since=T0))
    assert verdicts(judged(due(CACHING), still, standing=(standing_of(SPECULATION),))) == ["conflicted", "disable"]


def test_one_that_has_expired_or_is_in_shadow_is_not_waited_for() -> None:
    there = Standing("off_recommended", T0)
    assert turns.is_open(there, SPECULATION, T0 + timedelta(hours=23))
    assert not turns.is_open(there, SPECULATION, T0 + timedelta(hours=24))
    assert not turns.is_open(there, policy("speculation", shadow=True), T0 + BLOCK)
    assert not turns.is_open(Standing("off", T0), SPECULATION, T0 + BLOCK)


def test_a_policy_in_shadow_holds_nobody_back() -> None:
    shadow = policy("speculation", shadow=True, revalidates=("prefix_caching",))
    assert verdicts(judged(due(shadow, -0.6), due(CACHING, -0.1))) == ["disable", "disable"]


def test_a_lever_that_may_come_back_waits_for_what_is_to_be_taken_back() -> None:
    back = Standing("off", T0 - timedelta(days=1), 5, "recovering", "harm", "disable")
    enabling = due(CACHING, 0.3, before=back)
    enabling.effects["batch_at_admission"] = enabling.effects["net_itl_s"]._replace(
        metric="batch_at_admission", value_a=4.0, basis="premise"
    )  # type: ignore[index]
    [alone] = judged(enabling)
    assert (alone.action, alone.state) == ("enable", "probation")
    said = judged(enabling, due(SPECULATION, -0.2))
    assert [(one.verdict, one.state) for one in said] == [("conflicted", "off"), ("disable", "off_recommended")]
    [then] = judged(enabling._replace(before=after(back, said[0])))
    assert (then.action, then.state) == ("enable", "probation")


def test_two_policies_of_one_lever_do_not_wait_for_each_other() -> None:
    other = policy("speculation", name="mine")
    assert verdicts(judged(due(SPECULATION), due(other))) == ["disable", "disable"]


def test_the_order_of_judgments_is_that_in_which_streams_came_and_makes_no_difference() -> None:
    dues = [due(CACHING, -0.2), due(SPECULATION, -0.4), due(KV, -0.3), due(TP, 0.2), due(CACHING, -0.2, ELSEWHERE)]
    forward, backward = judged(*dues), judged(*reversed(dues))
    assert verdicts(forward) == ["conflicted", "disable", "conflicted", "keep", "disable"]
    assert backward[::-1] == forward


def test_traffic_is_found_whether_it_was_added_before_or_after_the_first_look() -> None:
    traffic: Traffic[str] = Traffic()
    traffic.add("speculation", WARM, "warm")
    assert traffic.of(["speculation"], SEGMENT) == ["warm"]
    traffic.add("speculation", json.dumps({"model": "m", "temperature_bucket": "<0.3"}), "cold")
    assert traffic.of(["speculation"], SEGMENT) == ["warm", "cold"]
    assert traffic.of(["speculation"], ELSEWHERE) == []
    assert traffic.of(["prefix_caching"], SEGMENT) == []


HOUR = rounds.hour_of("speculation", SEGMENT)
AT = T0 + timedelta(hours=HOUR)


def widened(*dues: Due, until: datetime = AT, standing: tuple[Open, ...] = ()) -> list[Judgment]:
    def ready(_lever: str, segments: Any, _until: datetime) -> dict[str, str]:
        return dict.fromkeys(segments, "may get more traffic")

    return rounds.judged(dues, standing, turns.interacting(ALL), until, widening=ready)


def test_more_traffic_is_advised_where_a_lever_pays_in_its_hour_of_the_day() -> None:
    [said] = widened(due(SPECULATION, 0.3))
    assert (said.verdict, said.action, said.reason_code, said.state, said.is_widened) == ("keep", "widen", "widen", "on", True)
    assert said.reason.startswith("may get more traffic; net ITL")
    for moment in (AT + BLOCK, AT + timedelta(hours=1)):
        assert not widened(due(SPECULATION, 0.3), until=moment)[0].is_widened


def test_more_traffic_is_never_advised_beside_anything_that_is_under_way() -> None:
    good = due(SPECULATION, 0.3)
    gated = good.before._replace(counts={"gate.latency.ttft_s_p95": 1})
    trial = Standing("probation", T0 - timedelta(days=9))
    mine = policy("speculation", name="mine")
    assert widened(due(SPECULATION, 0.3, before=gated))[0].is_widened  # it is this block's gates that count
    assert not widened(due(SPECULATION, 0.3, before=trial))[0].is_widened
    assert not widened(good._replace(seen=Seen(quality="2 of 5 repeats", quality_doubt=True)))[0].is_widened
    assert not widened(good._replace(seen=Seen(again="to be judged again")))[0].is_widened
    assert not widened(good, standing=(standing_of(CACHING),))[0].is_widened
    assert not any(one.is_widened for one in widened(good, due(mine, -0.3)))
    assert not any(one.is_widened for one in widened(good, due(CACHING, -0.3)))
    assert not widened(due(SPECULATION, 0.0))[0].is_widened
