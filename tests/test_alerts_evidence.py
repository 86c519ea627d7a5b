"""Evidence decides where there is any: read at the nearest null beyond a limit, and held against all segments of the lever."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest

from alerts import conditions, decided, effects
from alerts.effects import Effect
from alerts.judge import judge
from alerts.policy import shipped
from alerts.standing import Standing
from pipeline import evidence, evidence_families
from pipeline.metrics import judged

UNTIL = datetime(2026, 3, 2, 12, tzinfo=UTC)
ENOUGH = math.log(288 / 0.05)


def effect(below: list[float | None] | None, above: list[float | None] | None = None, *, tests: int = 1, gain: float = -0.02) -> Effect:
    return Effect(
        metric="net_itl_s", since=UNTIL - timedelta(hours=2), until=UNTIL, blocks=24, n_a=900, n_b=600, value_a=0.0204, value_b=0.02,
        gain=gain, gain_low=gain - 0.2, gain_high=gain + 0.2, basis="control", coverage=1.0, note=None, evidence_below=below,
        evidence_above=above or below, tests=tests, turned_blocks=9, turned_gain=-0.24,
    )  # fmt: skip


def test_the_nulls_and_the_cycle_are_those_of_the_pipeline() -> None:
    assert (effects.NULLS, effects.BLOCKS_A_CYCLE, effects.ALPHA) == (evidence_families.NULLS, evidence.BLOCKS_A_CYCLE, evidence.ALPHA)


LIMITS = [(0.0, False, 3), (0.03, False, 4), (0.05, False, 5), (0.5, False, 6), (0.03, True, 5), (-0.3, True, 0), (-0.04, False, 1)]


@pytest.mark.parametrize(("limit", "above", "place"), LIMITS)
def test_a_limit_is_read_at_the_nearest_null_beyond_it(limit: float, above: bool, place: int) -> None:
    logs = [0.0] * len(effects.NULLS)
    logs[place] = ENOUGH
    assert effect(logs, logs).is_evident(limit, above=above)
    logs[place] = ENOUGH - 0.01
    assert not effect(logs, logs).is_evident(limit, above=above)


@pytest.mark.parametrize(("limit", "above"), [(-0.2, False), (0.2, True)])
def test_beyond_the_nulls_there_is_no_evidence_to_be_had(limit: float, above: bool) -> None:
    assert effect([9.0] * 7).is_evident(limit, above=above) is None


def test_a_null_that_is_not_kept_is_passed_over() -> None:
    assert effect([None, None, None, ENOUGH, None, None, None]).is_evident(0.03, above=False)
    assert effect([None] * 7).is_evident(0.0, above=False) is None


def test_more_segments_take_more_evidence() -> None:
    assert effect([ENOUGH] * 7).is_evident(0.0, above=False)
    assert not effect([ENOUGH] * 7, tests=2).is_evident(0.0, above=False)


def test_evidence_disables_before_the_interval_of_two_hours_does_and_says_since_when() -> None:
    policy = next(policy for policy in shipped() if policy.name == "speculation-net-itl")
    harm = next(trigger for trigger in policy.disable_when if trigger.metric == "net_itl_gain")
    seen = {"net_itl_s": effect([ENOUGH] * 7)}
    assert conditions.holds(policy, harm, seen)
    assert conditions.explain(policy, harm, seen) == (
        "net ITL is more than 2 % worse than control's: evident since 11:15 UTC (gain -24 % since then), a false call on at most 5 % of "
        "days; as a description only, 10:00 to 12:00 UTC as a whole: net ITL 20.4 ms against 20 ms in control, gain -2 % (-22..+18 %), "
        "24 blocks"
    )
    assert not conditions.holds(policy, harm, {"net_itl_s": effect([ENOUGH - 1] * 7, gain=-0.5)})


def test_an_interval_without_evidence_decides_nothing_and_says_what_it_waits_for() -> None:
    policy = next(policy for policy in shipped() if policy.name == "speculation-net-itl")
    harm = next(trigger for trigger in policy.disable_when if trigger.metric == "net_itl_gain")
    seen = effect(None, gain=-0.5)
    assert conditions.holds(policy, harm, {"net_itl_s": seen}) is None
    said = judge(policy, {"net_itl_s": seen}, Standing("on", UNTIL), UNTIL)
    assert (said.verdict, said.action, said.reason_code, said.state) == ("insufficient", "hold", "unscaled", "on")
    assert "gain -50 % (-70..-30 %), 24 blocks; not decided yet: how much its blocks vary by themselves is known after 48" in said.reason
    fine = seen._replace(gain=0.3, gain_low=0.1, gain_high=0.5)
    assert conditions.holds(policy, harm, {"net_itl_s": fine}) is False
    assert judge(policy, {"net_itl_s": fine}, Standing("on", UNTIL), UNTIL).verdict == "keep", "what does not look like harm need not wait"
    assert conditions.holds(policy, policy.re_enable_when, {"net_itl_s": fine}) is None, "nothing is switched on again by an interval alone"
    switched = seen._replace(basis="switchback", grade="good")
    assert conditions.holds(policy, harm, {"net_itl_s": switched}), "a drawn schedule keeps no evidence: its interval decides"


@pytest.mark.parametrize(("log_at_edge", "holds"), [(ENOUGH, True), (ENOUGH - 0.01, False)])
def test_a_limit_past_the_outermost_null_takes_the_evidence_there_and_the_interval(log_at_edge: float, holds: bool) -> None:
    policy = next(policy for policy in shipped() if policy.name == "speculation-net-itl")
    late = next(trigger for trigger in policy.disable_when if trigger.metric == "ttft_s")
    assert conditions.gain_limit(late, judged()["ttft_s"]) == -0.25
    seen = effect([log_at_edge, *[ENOUGH] * 6], gain=-0.5)._replace(metric="ttft_s")
    assert conditions.holds(policy, late, {"ttft_s": seen}) is holds
    assert not conditions.holds(policy, late, {"ttft_s": seen._replace(gain_high=-0.2)}), "the interval is not past it"


def test_a_lever_that_has_not_turned_says_nothing_of_it() -> None:
    told = decided.by(effect([ENOUGH] * 7)._replace(turned_blocks=0, turned_gain=None), "speculation", -0.02, above=False)
    assert "evident, a false call" in told
