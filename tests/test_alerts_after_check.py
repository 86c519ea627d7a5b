from __future__ import annotations

import math

import pytest
from around_judging import BLOCK, SEGMENT, START, cell_rows, cells, end, flip, policy, put

from alerts import after_check
from alerts.after_check import change
from alerts.block_sums import Sum
from alerts.chain import ExpectedBenefit
from queries.store import Store

POLICIES = [policy()]


def level(block: int, mean: float) -> float:
    """About the mean: a hundredth above and below it, in turn."""
    return mean * (1.01 if block % 2 else 0.99)


def switched(store: Store, after_s: float) -> None:
    """An hour with the lever at 31 ms where control has 27; recommended and switched off; then an hour of all requests without it."""
    rows = []
    for block in range(12):
        rows += cell_rows(block, "treated", 90, {"tpot_s": level(block, 0.031)})
        rows += cell_rows(block, "control", 10, {"tpot_s": level(block, 0.027)})
        rows += cell_rows(block, "", 100, {"tpot_s": 0.03}, "")
    for block in range(12, 27):
        rows += cell_rows(block, "", 100, {"tpot_s": level(block, after_s)}, "")
    put(store, rows)
    flip(store, 11, "on", "off_recommended", reason_code="harm")
    flip(store, 14, "off_recommended", "off", reason_code="switched_off")


def test_a_switch_that_helped_is_told_in_numbers(store: Store) -> None:
    switched(store, 0.0271)
    assert after_check.follow(store, POLICIES, end(25)) == 0, "the hour after it is not over"
    assert after_check.follow(store, POLICIES, end(26)) == 1
    assert after_check.follow(store, POLICIES, end(30)) == 0, "once"
    [row] = after_check.listed(store).to_dicts()
    assert (row["metric"], row["switched_at"], row["helped"]) == ("tpot_s", START + 12 * BLOCK, True)
    assert [row[name] for name in ("before", "control_before", "after")] == pytest.approx([0.031, 0.027, 0.0271])
    assert row["gain"] == pytest.approx(1 - 0.0271 / 0.031)
    assert row["low"] < row["gain"] < row["high"]
    assert row["said"] == (
        "after speculation was switched: TPOT 27.1 ms against 31 ms treated before, gain +13 % (+12..+13 %): it helped; "
        "control had 27 ms; before and after differ in more than the lever"
    )
    assert after_check.newest(store) == {("speculation-net-itl", SEGMENT): row["said"]}


def test_a_lever_that_is_slower_off_in_place_than_never_on_is_named(store: Store) -> None:
    switched(store, 0.029)
    after_check.follow(store, POLICIES, end(26))
    [row] = after_check.listed(store).to_dicts()
    assert row["helped"] is True
    assert "that is worse than control was (gain -7.4 % " in row["said"].replace("-7 %", "-7.4 %")
    assert "vllm-project/vllm#5000" in row["said"]


def test_a_switch_that_made_it_worse_did_not_help(store: Store) -> None:
    switched(store, 0.035)
    after_check.follow(store, POLICIES, end(26))
    assert after_check.listed(store)["helped"].to_list() == [False]


def test_without_traffic_after_it_nothing_is_told(store: Store) -> None:
    cells(store, 0, "treated", 90, {"tpot_s": 0.031})
    flip(store, 0, "on", "off_recommended")
    flip(store, 3, "off_recommended", "off")
    after_check.follow(store, POLICIES, end(15))
    [row] = after_check.listed(store).to_dicts()
    assert (row["helped"], row["after"]) == (None, None)
    assert row["said"] == "after speculation was switched: TPOT not measured in the hour after it"


def test_a_lost_premise_is_checked_by_the_benefit() -> None:
    assert after_check.metric_of(policy(), "failure_mode") == "ttft_s"
    assert after_check.metric_of(policy(), "premise_lost") == "tpot_s"
    assert after_check.metric_of(policy(expected_benefit=ExpectedBenefit(metric="ttft_s_p95", minimum_gain=0.0)), "gone") == "ttft_s"


def test_the_interval_is_by_blocks_and_a_single_one_has_none() -> None:
    before, after = ([Sum(10, value, 1.0) for value in values] for values in ((0.9, 1.0, 1.1), (0.5, 0.5, 0.5)))
    found = change(before, after, "lower")
    assert found is not None
    # deviation of the mean of 0.9, 1, 1.1 is 0.1 / sqrt(3); t with 2 degrees of freedom 4.3027
    width = 4.3027 * 0.1 / math.sqrt(3)
    assert found.gain == pytest.approx(0.5)
    assert (found.low, found.high) == pytest.approx((1 - 0.5 * math.exp(width), 1 - 0.5 * math.exp(-width)), abs=1e-4)
    assert change(before[:1], after, "lower") == (pytest.approx(0.4444, abs=1e-3), None, None)
    assert change([], after, "lower") is None
    higher = change(before, after, "higher")
    assert higher is not None
    assert higher.gain == pytest.approx(-0.5)
