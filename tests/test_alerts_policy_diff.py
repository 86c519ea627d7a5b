from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from judged_history import SEGMENT, policy

from alerts.backtest_diff import otherwise, verdict_blocks
from alerts.backtest_told import Backtest, Judged, Recommendation
from alerts.chain import Harm, Policy, PremiseLost
from alerts.policy import shipped
from alerts.policy_diff import Difference, differences

OLD = policy()
ENABLING = OLD.enabling_condition
T0 = datetime(2026, 3, 4, tzinfo=UTC)


def changed(kind: type, metric: str, **values: Any) -> Policy:
    """The policy with other values in one trigger."""
    triggers = tuple(
        msgspec.structs.replace(one, **values) if isinstance(one, kind) and one.metric == metric and not one.where else one
        for one in OLD.disable_when
    )
    return policy(disable_when=triggers)


def one(new: Policy) -> Difference:
    [found] = differences(OLD, new)
    return found


def of(part: Any, **values: Any) -> Any:
    return msgspec.structs.replace(part, **values)


@pytest.mark.parametrize("shipped_one", shipped(), ids=lambda item: item.name)
def test_a_policy_does_not_differ_from_itself(shipped_one: Policy) -> None:
    assert differences(shipped_one, shipped_one) == []


@pytest.mark.parametrize(
    ("new", "text"),
    [
        (policy(dwell_s=7200.0), "dwell_s: 3600 s -> 7200 s (tightens)"),
        (policy(minimum_requests=50), "minimum_requests: 100 requests -> 50 requests (tightens)"),
        (policy(minimum_coverage=0.95), "minimum_coverage: 0.9 ratio -> 0.95 ratio (loosens)"),
        (policy(severity="critical"), "severity: warning -> critical (tightens)"),
        (policy(shadow=True), "shadow: false -> true (loosens)"),
        (policy(owner="platform"), "owner: serving -> platform (words)"),
        (policy(expires_after_s=3600.0), "expires_after_s: 86400 s -> 3600 s (changes)"),
        (policy(quality_gate=of(OLD.quality_gate, repeats=9)), "quality_gate.repeats: 5 -> 9 (tightens)"),
        (policy(re_enable_when=of(OLD.re_enable_when, threshold=0.1)), "re_enable_when threshold: 0.05 ratio -> 0.1 ratio (tightens)"),
        (policy(re_enable_when=of(OLD.re_enable_when, for_blocks=3)), "re_enable_when for_blocks: 6 blocks -> 3 blocks (loosens)"),
        (policy(enabling_condition=of(ENABLING, for_blocks=2)), "enabling_condition for_blocks: 3 blocks -> 2 blocks (loosens)"),
    ],
)  # fmt: skip
def test_each_key_is_told_with_both_values_and_what_it_does(new: Policy, text: str) -> None:
    assert one(new).text() == text


@pytest.mark.parametrize(
    ("kind", "metric", "values", "sense"),
    [
        (Harm, "net_itl_gain", {"threshold": -0.5}, "loosens"),
        (Harm, "net_itl_gain", {"threshold": 0.01}, "tightens"),
        (Harm, "net_itl_gain", {"for_blocks": 9}, "loosens"),
        (Harm, "net_itl_gain", {"for_blocks": 1}, "tightens"),
        (Harm, "net_itl_gain", {"action": "shorten"}, "changes"),
        (Harm, "net_itl_gain", {"severity": "info"}, "changes"),
        (Harm, "net_itl_gain", {"source": "elsewhere"}, "words"),
        (Harm, "net_itl_gain", {"is_": "above"}, "changes"),
        (PremiseLost, "batch_at_admission", {"threshold": 128}, "loosens"),
        (PremiseLost, "batch_at_admission", {"re_enable_at": 32}, "tightens"),
        (PremiseLost, "acceptance_length", {"re_enable_at": 1.4}, "loosens"),
    ],
)
def test_a_trigger_that_fires_sooner_tightens(kind: type, metric: str, values: dict[str, Any], sense: str) -> None:
    found = one(changed(kind, metric, **values))
    assert found.sense == sense
    assert found.key.startswith("disable_when")
    assert metric in found.key


def test_a_trigger_that_goes_loosens_and_one_that_comes_tightens() -> None:
    less = policy(disable_when=tuple(trigger for trigger in OLD.disable_when if trigger.metric != "batch_at_admission"))
    [gone], [came] = differences(OLD, less), differences(less, OLD)
    assert (gone.sense, gone.new, came.sense, came.old) == ("loosens", "", "tightens", "")
    assert gone.old == "batch_at_admission above 64 requests for 6 blocks: disable"


def test_the_order_of_triggers_counts_since_the_first_that_holds_leads() -> None:
    assert one(policy(disable_when=OLD.disable_when[::-1])).key == "disable_when order"


def test_a_gate_that_goes_loosens() -> None:
    less = policy(gates=OLD.gates[1:])
    assert [found.sense for found in differences(OLD, less)] == ["loosens"]


def rec(since: float, until: float | None, **changes: Any) -> Recommendation:
    told = {"policy": "p", "lever": "speculation", "segment": SEGMENT, "action": "disable", "severity": "warning", "shadow": False}
    told |= {"reason_code": "harm", "reason": "why"} | changes
    ends = {"fired_at": T0 + timedelta(hours=since), "ended_at": None if until is None else T0 + timedelta(hours=until)}
    return Recommendation(**told, **ends)


def tried(*made: Recommendation, **verdicts: int) -> Backtest:
    stream = Judged(
        policy="p",
        lever="speculation",
        segment=SEGMENT,
        first_block_at=T0,
        last_block_at=T0,
        blocks=sum(verdicts.values()),
        verdicts=verdicts,
    )
    return Backtest(recommendations=made, streams=(stream,))


def test_recommendations_that_overlap_are_the_same_one_and_are_left_out_where_they_are_alike() -> None:
    old = tried(rec(1, 2), rec(5, 8), rec(10, None), rec(20, 21))
    new = tried(rec(1, 2), rec(6, 8), rec(10, None, action="shorten"), rec(30, 31))
    found = [(row.old and row.old.fired_at.hour, row.new and (row.new.fired_at - T0) / timedelta(hours=1)) for row in otherwise(old, new)]
    assert found == [(5, 6), (10, 10), (20, None), (None, 30)]


def test_streams_with_other_numbers_of_verdicts_are_told() -> None:
    assert list(verdict_blocks(tried(keep=3), tried(keep=3))) == []
    assert list(verdict_blocks(tried(keep=3), tried(keep=1, disable=2))) == [
        ("speculation", SEGMENT, {"keep": 3}, {"keep": 1, "disable": 2})
    ]
