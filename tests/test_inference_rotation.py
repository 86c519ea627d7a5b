"""Control replicas that stay carry their own speed into the contrast: the rule refuses, or widens the null, as it says."""

from __future__ import annotations

import numpy as np
import pytest
from inference_days import SCENARIOS, Scenario, days
from inference_watch import watch

from pipeline.inference import contrast, rotation

BLOCK_S = 300.0
BLOCKS, REPLICAS = 288, 40


def rotating(every_blocks: int, at_once: int = 2, replicas: int = REPLICAS, pool: int | None = None) -> np.ndarray:
    """Which replica is in control: `at_once` of them, the next ones after each stay, of a pool that takes its turn."""
    turn = (np.arange(BLOCKS) // every_blocks)[:, None] * at_once + np.arange(at_once)
    flags = np.zeros((BLOCKS, replicas), bool)
    np.put_along_axis(flags, turn % (pool or replicas), True, axis=1)
    return flags


def observe(control: np.ndarray, treated: np.ndarray) -> rotation.Replicas:
    return rotation.observe(100.0 * treated, 100.0 * control, BLOCK_S)


def permitted_of(control: np.ndarray, treated: np.ndarray) -> rotation.Permission:
    return rotation.permission(observe(control, treated))


def permitted(control: np.ndarray, **known: float) -> rotation.Permission:
    return rotation.permission(observe(control, ~control), **known)


@pytest.mark.parametrize("at_once", [1, 2, 6])
def test_replicas_of_forty_that_rotate_every_30_minutes_may_decide(at_once: int) -> None:
    found = permitted(rotating(6, at_once=at_once))
    assert (found.decides, found.basis, found.margin) == (True, "rotating", 0.0)


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (rotating(BLOCKS), "two fixed replicas"),
        (rotating(8), "40 minutes"),
        (rotating(BLOCKS, at_once=20), "half of all, fixed"),
        (rotating(6, pool=4), "four of forty take turns"),
        (np.zeros((BLOCKS, REPLICAS), bool), "no control at all"),
    ],
)
def test_fixed_slow_or_few_control_replicas_refuse_to_decide(control: np.ndarray, why: str) -> None:
    found = permitted(control)
    assert (found.decides, found.basis) == (False, "refused"), why
    assert "needs control to rotate within 30 min through all replicas or 6 of them" in found.reason


@pytest.mark.parametrize(("replicas", "at_once"), [(2, 1), (4, 1), (4, 2), (8, 4)])
def test_a_whole_small_fleet_that_takes_turns_may_decide(replicas: int, at_once: int) -> None:
    assert permitted(rotating(6, at_once, replicas)).basis == "rotating"


@pytest.mark.parametrize(("replicas", "at_once", "needed"), [(2, 1, 7), (4, 1, 19), (4, 2, 7), (40, 2, 13)])
def test_a_fresh_rotation_decides_once_control_has_gone_through_enough_replicas(replicas: int, at_once: int, needed: int) -> None:
    """`needed` blocks: every replica of a small fleet has begun its turn, or six of a large one."""
    control = rotating(6, at_once, replicas)
    assert permitted(control[: needed - 1]).basis == "unseen"
    assert permitted(control[:needed]).basis == "rotating"


def test_a_fixed_control_is_told_from_a_fresh_rotation_after_35_minutes() -> None:
    control = rotating(BLOCKS, 1, 2)
    assert permitted(control[:7]).basis == "unseen"
    assert "known in 60 min at the latest" in permitted(control[:6]).reason
    assert permitted(control[:8]).basis == "refused"


def test_a_rotation_that_stops_decides_no_longer_and_one_that_was_late_once_goes_on() -> None:
    control = rotating(6, 1, 4)
    control[200:] = control[200]
    assert permitted(control[:205]).basis == "rotating"
    assert permitted(control[:206]).basis == "refused"
    late = np.concatenate([rotating(6, 1, 4)[:102], np.repeat(rotating(6, 1, 4)[102:103], 13, axis=0), rotating(6, 1, 4)[108:]])
    assert permitted(late[:115]).basis == "refused"
    assert permitted(late).basis == "rotating"


def test_a_stray_request_moves_no_replica() -> None:
    control = rotating(BLOCKS, 1, 2)
    strays = rotation.observe(100.0 * ~control + 2.0 * control, 100.0 * control + 2.0 * ~control, BLOCK_S)
    assert (strays.different, strays.longest_stay_s) == (1, 86_400)


def test_pools_are_told_apart() -> None:
    """Three pools side by side: one rotates, one is fixed, and in one the arms are split by request."""
    control = np.concatenate([rotating(6, 1, 4), rotating(BLOCKS, 1, 3), np.ones((BLOCKS, 2), bool)], axis=1)
    treated = ~control
    treated[:, 7:] = True
    seats, stays, first = rotation.Seats.start(9), [], np.array([0, 4, 7])
    for row in range(BLOCKS):
        seats = rotation.step(seats, 50.0 * treated[row], 50.0 * control[row], rotation.shares(50.0 * control, first)[row])
        stays.append(seats.stay)
    seen = rotation.observed(rotation.Seen(50.0 * treated, 50.0 * control, np.array(stays), first, BLOCK_S))
    assert [rotation.permission(one).basis for one in seen] == ["rotating", "refused", "same_replicas"]
    alone = [observe(control[:, pool], treated[:, pool]) for pool in (slice(4), slice(4, 7), slice(7, 9))]
    assert seen == alone


def test_arms_that_are_split_by_request_share_their_replicas_and_may_decide() -> None:
    everywhere = np.ones((BLOCKS, 8), bool)
    found = rotation.permission(observe(everywhere, everywhere))
    assert (found.decides, found.basis, found.margin) == (True, "same_replicas", 0.0)


def test_a_rotation_within_a_block_is_not_taken_for_a_longer_stay() -> None:
    """A stay of 30 minutes that begins in mid-block touches seven blocks, and shares the first and last with the other arm."""
    control, treated = rotating(6), ~rotating(6)
    control[6::6] |= control[5:-1:6]
    treated[::6] |= control[::6]
    assert observe(control, treated).longest_stay_s == 1_800


def test_silence_does_not_pass_for_a_rotation() -> None:
    control = rotating(BLOCKS)
    control[::3] = False
    treated = np.zeros_like(control)
    treated[:, 2:] = True
    seen = observe(control, treated)
    assert seen.different == 2
    assert seen.longest_stay_s > 23 * 3600


def test_a_replica_that_only_serves_in_control_leaves_it_while_others_have_its_requests() -> None:
    """As a prefill worker of a split group, which answers requests only while its group serves as control."""
    control = rotating(6, 2, 4)
    treated = ~control
    treated[:, ::2] = False
    assert observe(control, treated).longest_stay_s == 1_800
    assert permitted_of(control, treated).basis == "rotating"


def test_a_replica_that_is_gone_for_good_does_not_prolong_its_stay() -> None:
    control, treated = rotating(6), ~rotating(6)
    control[6:, :2] = treated[6:, :2] = False
    assert observe(control, treated).longest_stay_s == 1_800


def test_six_fixed_replicas_decide_once_an_a_a_period_gave_their_offsets() -> None:
    control = rotating(BLOCKS, at_once=6)
    assert permitted(control).basis == "refused"
    assert permitted(control, is_calibrated=True).basis == "offsets_subtracted"
    assert permitted(rotating(BLOCKS, at_once=5), is_calibrated=True).basis == "refused"


def test_fixed_replicas_of_a_known_spread_decide_only_beyond_the_widened_null() -> None:
    found = permitted(rotating(BLOCKS), replica_sd=0.02)
    assert found.basis == "widened_null"
    assert found.margin == pytest.approx(3 * 0.02 * np.sqrt(1 / 2 + 1 / 38))
    assert "above 4.4 %" in found.reason


def test_the_widened_null_covers_what_fixed_replicas_do_on_their_own() -> None:
    """Scenario N8: 2 % between replicas, two of forty fixed; the offset of the arms passes zero always, the margin almost never."""
    draws = np.random.default_rng(8).normal(0, 0.02, (2_000, 40))
    harm = draws[:, 2:].mean(axis=1) - draws[:, :2].mean(axis=1)
    assert (harm > 0).mean() > 0.45
    assert (harm > rotation.margin(0.02, 2, 38)).mean() < 0.005


def test_a_spread_that_is_told_from_six_replicas_widens_the_null_by_enough() -> None:
    """Two of eight are control: with the spread of six the margin is passed as a t of 5 degrees of freedom passes 3, on 1.5 % of fleets."""
    draws = np.random.default_rng(9).normal(0, 0.02, (4_000, 8))
    margins = np.array([rotation.margin(rotation.replica_sd(np.tile(1 + fleet, (12, 1))), 2, 6) for fleet in draws[:, 2:]])
    harm = draws[:, 2:].mean(axis=1) - draws[:, :2].mean(axis=1)
    assert (harm > margins).mean() == pytest.approx(0.015, abs=0.006)


def test_one_control_replica_of_eight_that_moves_on_every_half_hour_alarms_as_seldom_as_promised() -> None:
    """Of 40 days more than 6 have a probability of 1.4 % at a rate of 5 %; docs/tails.md has more days and fleets."""
    turning = days(Scenario(rate_per_min=20.0, controls=1, rotation_min=30, replica_sd=0.02, replicas=8), range(9_000, 9_040))
    assert max(watch(turning, 5).at_all()) <= 6 / 40


def test_fixed_control_replicas_alarm_without_the_rule_and_not_against_the_widened_null() -> None:
    """Of 30 days more than 5 have a probability of 0.3 % at a rate of 5 %."""
    fixed = days(SCENARIOS["N8 fixed control"], range(8_000, 8_030))
    widened = contrast.theta0(-rotation.margin(0.02, 2, 38), 1.0)
    assert sum(watch(fixed, 5).at_all()) > 0.2
    assert watch(fixed, 5, theta0=float(widened)).at_all()[0] <= 5 / 30


def test_the_spread_between_replicas_is_hardly_wider_for_noise_over_a_day() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.05, (BLOCKS, REPLICAS))
    noise[rng.random(noise.shape) < 0.1] = np.nan
    assert rotation.replica_sd(1 + noise) < 0.005
    assert rotation.replica_sd(1 + noise + rng.normal(0, 0.02, REPLICAS)) == pytest.approx(0.02, rel=0.35)
    assert np.isnan(rotation.replica_sd(noise[:, :5]))
