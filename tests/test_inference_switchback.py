"""Pairs of a drawn order: false alarms as rare as stated under shared drift, the effect found, what a switch leaves behind left out."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest

from pipeline import schedule
from pipeline.inference import interval, switchback
from pipeline.inference.contrast import Sums
from pipeline.inference.switchback import Differences, Pairs, Periods
from pipeline.schedule import Plan

Reals = npt.NDArray[np.float64]
SINCE = datetime(2026, 11, 29, tzinfo=UTC)
BLOCK_S = 300
DAY_BLOCKS = 288
ALPHA = 0.05


def periods(runs: int, plan: Plan, seed: int) -> list[Periods]:
    """A day's schedule of one replica, drawn anew for each run."""
    pairs = 86_400 // (2 * plan.period_s)
    return [
        schedule.arrays(schedule.planned("speculation", ["r"], SINCE, pairs, plan, seed + run), "speculation", {"r": 0})
        for run in range(runs)
    ]


def drift(runs: int, seed: int) -> Reals:
    """The fleet's own level (runs, blocks), as a logarithm: AR(.98) a minute of 10 %, and a day's swing of 15 %."""
    drawn = np.random.default_rng(seed)
    level, minutes = drawn.normal(0, 0.1, runs), []
    for _ in range(1440):
        level = 0.98 * level + drawn.normal(0, 0.1 * np.sqrt(1 - 0.98**2), runs)
        minutes.append(level)
    swing = 0.15 * np.sin(2 * np.pi * np.arange(DAY_BLOCKS) / DAY_BLOCKS)
    return np.array(minutes).T.reshape(runs, DAY_BLOCKS, 5).mean(axis=2) + swing


def cells(level: Reals, effect: Reals, seed: int, n: float = 400.0) -> Sums:
    """A mean over `n` requests of a coefficient of variation of 0.5, in each block."""
    noise = np.random.default_rng(seed).normal(0, 0.5 / np.sqrt(n), level.shape)
    mean = 0.025 * np.exp(level) * (1 + effect) * (1 + noise)
    full = np.full_like(mean, n)
    return Sums(full, n * mean, full, n * mean**2 * 1.25, full, n * mean)


def day(plan: Plan, effect: float, runs: int = 60, seed: int = 1, carry: float = 0.0) -> list[Differences]:
    """Each run's differences after a day; `carry` is the effect that the block after a switch still has of the setting before."""
    starts = SINCE.timestamp() + BLOCK_S * np.arange(DAY_BLOCKS, dtype=np.float64)
    level, found = drift(runs, seed), []
    for run, told in enumerate(periods(runs, plan, seed)):
        whole = replace(told, since_s=told.since_s - plan.burn_in_s)
        place = switchback.placed(whole, np.zeros(DAY_BLOCKS, np.int64), starts, BLOCK_S)
        is_on = np.where(place >= 0, told.is_treated[place], False)
        after = np.r_[False, is_on[:-1]]
        mixed = effect * np.where(is_on != after, (1 - carry) * is_on + carry * after, is_on)
        rows = cells(level[run], mixed, seed * 1000 + run)
        places = switchback.placed(told, np.zeros(DAY_BLOCKS, np.int64), starts, BLOCK_S)
        pairs = switchback.paired(told, places, np.zeros(DAY_BLOCKS, np.int64), rows, 1)
        found.append(switchback.differences(pairs))
    return found


def ever_excludes_none(found: list[Differences]) -> float:
    """The share of runs whose interval left 0 out after some pair."""
    running, ever = interval.Running.start(len(found)), np.zeros(len(found), bool)
    for place in range(found[0].difference.shape[1]):
        running = running.add(np.array([of.difference[0, place] for of in found]))
        low, high = interval.avt(running.n, running.mean(), running.variance(), ALPHA)
        ever |= (low > 0) | (high < 0)
    return float(ever.mean())


@pytest.mark.parametrize("plan", [Plan(600, 0, 0), Plan(900, 300, 0)], ids=["10 minutes", "15 minutes"])
def test_no_effect_is_seen_falsely_as_rarely_as_stated_and_one_of_10_percent_always(plan: Plan) -> None:
    nothing = day(plan, 0.0)
    assert ever_excludes_none(nothing) <= 7 / 60  # more come by chance once in 100
    by_order = [switchback.log_e_of_order(of.difference, 0.1).max() >= np.log(1 / ALPHA) for of in nothing]
    assert np.mean(by_order) <= 7 / 60
    harm = day(plan, 0.10, runs=20)
    assert ever_excludes_none(harm) == 1.0
    assert np.mean([switchback.log_e_of_order(of.difference, 0.1)[0, -1] >= np.log(1 / ALPHA) for of in harm]) >= 0.9


def test_the_gain_is_that_of_the_lever_where_what_a_switch_leaves_behind_is_not_measured() -> None:
    kept, dropped = (day(Plan(900, burn_in_s, 0), -0.2, runs=40, carry=0.8) for burn_in_s in (0, 300))
    gains = [np.nanmean([of.gain for of in found]) for found in (kept, dropped)]
    assert gains[1] == pytest.approx(0.2, abs=0.01)
    assert gains[0] < 0.17


def test_blocks_that_reach_beyond_the_measured_time_are_in_no_period() -> None:
    told = Periods(np.array([0, 0]), np.array([1, 1]), np.array([True, False]), np.array([300.0, 1200.0]), np.array([900.0, 1790.0]))
    starts = np.arange(0, 2100, 300, dtype=np.float64)
    assert switchback.placed(told, np.zeros(7, np.int64), starts, BLOCK_S).tolist() == [-1, 0, 0, -1, 1, -1, -1]
    assert switchback.placed(told, np.ones(7, np.int64), starts, BLOCK_S).tolist() == [-1] * 7


def both() -> tuple[Periods, Pairs]:
    """Two streams on two replicas in two pairs; the second pair is numbered lower."""
    told = Periods(
        np.array([0, 0, 1, 1, 0, 0]), np.array([7, 7, 7, 7, 3, 3]), np.array([True, False, False, True, True, False]),
        np.array([0.0, 300, 300, 600, 900, 1200]), np.array([300.0, 600, 600, 900, 1200, 1500]),
    )  # fmt: skip
    places, streams = np.array([0, 1, 2, 3, 4, 5, -1, 0]), np.array([0, 0, 0, 0, 0, 0, 0, 1])
    n = np.array([10.0, 20, 30, 40, 50, 60, 999, 70])
    return told, switchback.paired(told, places, streams, Sums(n, 2 * n, n, 4 * n, n, 2 * n), 2)


def test_replicas_are_taken_together_by_pair_and_pairs_stand_in_time() -> None:
    _, pairs = both()
    assert pairs.numbers.tolist() == [7, 3]
    assert pairs.ended_s.tolist() == [900, 1500]
    assert pairs.treated.n.tolist() == [[50, 50], [70, 0]]
    assert pairs.control.num.tolist() == [[100, 120], [0, 0]]


def test_a_replicas_pair_counts_as_a_whole_or_not_at_all() -> None:
    told, _ = both()
    places, nothing = np.array([0, 1, 2, 3, 4, -1, 0]), np.zeros(7, bool)
    assert switchback.whole(told, places, nothing).tolist() == [0, 1, 2, 3, -1, -1, 0]  # of the last pair one period has no block
    wrong = np.array([False, False, False, True, False, True, False])
    assert switchback.whole(told, places, wrong).tolist() == [0, 1, -1, -1, -1, -1, 0]
    assert switchback.whole(told, np.full(3, -1), np.ones(3, bool)).tolist() == [-1, -1, -1]


def test_a_pair_of_which_an_arm_is_missing_says_nothing_and_the_first_only_teaches() -> None:
    _, pairs = both()
    told = switchback.differences(pairs)
    np.testing.assert_array_equal(np.isnan(told.difference), [[True, False], [True, True]])
    assert told.gain[0, 1] == pytest.approx(0.0)


def test_cells_in_any_order_give_the_same_pairs() -> None:
    told, pairs = both()
    turned = np.array([5, 3, 7, 0, 6, 2, 4, 1])
    places, streams = np.array([0, 1, 2, 3, 4, 5, -1, 0])[turned], np.array([0, 0, 0, 0, 0, 0, 0, 1])[turned]
    n = np.array([10.0, 20, 30, 40, 50, 60, 999, 70])[turned]
    again = switchback.paired(told, places, streams, Sums(n, 2 * n, n, 4 * n, n, 2 * n), 2)
    np.testing.assert_array_equal(again.treated.num_sq, pairs.treated.num_sq)
    np.testing.assert_array_equal(again.control.num_den, pairs.control.num_den)


def test_the_evidence_of_the_order_grows_with_one_sign_and_a_missing_pair_leaves_it() -> None:
    steady = switchback.log_e_of_order(np.full((1, 20), 0.1), 0.1)[0]
    assert steady[-1] > np.log(20)
    assert switchback.log_e_of_order(np.full((1, 20), -0.1), 0.1)[0, -1] < 0
    holed = switchback.log_e_of_order(np.array([[0.1, np.nan, 0.1]]), 0.1)[0]
    assert holed[0] == holed[1] == steady[0]
