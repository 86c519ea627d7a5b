"""Control replicas that stay carry their own speed into the contrast: the rule refuses, or widens the null, as it says."""

from __future__ import annotations

import numpy as np
import pytest
from inference_days import SCENARIOS, days
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


def permitted(control: np.ndarray, **known: float) -> rotation.Permission:
    return rotation.permission(rotation.observe(control, ~control, BLOCK_S), **known)


def test_two_of_forty_replicas_that_rotate_every_30_minutes_may_decide() -> None:
    found = permitted(rotating(6))
    assert (found.decides, found.basis, found.margin) == (True, "rotating", 0.0)


@pytest.mark.parametrize(
    ("control", "why"),
    [
        (rotating(BLOCKS), "two fixed replicas"),
        (rotating(7), "35 minutes"),
        (rotating(6, at_once=1), "one at a time"),
        (rotating(6, pool=4), "four of forty take turns"),
        (np.zeros((BLOCKS, REPLICAS), bool), "no control at all"),
    ],
)
def test_fixed_slow_lone_or_few_control_replicas_refuse_to_decide(control: np.ndarray, why: str) -> None:
    found = permitted(control)
    assert (found.decides, found.basis) == (False, "refused"), why
    assert "needs 2 that rotate within 30 min" in found.reason


def test_a_whole_small_fleet_that_takes_turns_may_decide() -> None:
    assert permitted(rotating(6, replicas=4)).basis == "rotating"


def test_arms_that_are_split_by_request_share_their_replicas_and_may_decide() -> None:
    everywhere = np.ones((BLOCKS, 8), bool)
    found = rotation.permission(rotation.observe(everywhere, everywhere, BLOCK_S))
    assert (found.decides, found.basis, found.margin) == (True, "same_replicas", 0.0)


def test_a_rotation_within_a_block_is_not_taken_for_a_longer_stay() -> None:
    """A stay of 30 minutes that begins in mid-block touches seven blocks, and shares the first and last with the other arm."""
    control, treated = rotating(6), ~rotating(6)
    control[6::6] |= control[5:-1:6]
    treated[::6] |= control[::6]
    assert rotation.observe(control, treated, BLOCK_S).longest_stay_s == 1_800


def test_silence_does_not_pass_for_a_rotation() -> None:
    control = rotating(BLOCKS)
    control[::3] = False
    treated = np.zeros_like(control)
    treated[:, 2:] = True
    seen = rotation.observe(control, treated, BLOCK_S)
    assert seen.changes == 0
    assert seen.longest_stay_s > 23 * 3600


def test_a_replica_that_is_gone_for_good_does_not_prolong_its_stay() -> None:
    control, treated = rotating(6), ~rotating(6)
    control[6:, :2] = treated[6:, :2] = False
    assert rotation.observe(control, treated, BLOCK_S).longest_stay_s == 1_800


def test_six_fixed_replicas_decide_once_an_a_a_period_gave_their_offsets() -> None:
    control = rotating(BLOCKS, at_once=6)
    assert permitted(control).basis == "refused"
    assert permitted(control, is_calibrated=True).basis == "offsets_subtracted"
    assert permitted(rotating(BLOCKS, at_once=5), is_calibrated=True).basis == "refused"


def test_fixed_replicas_of_a_known_spread_decide_only_beyond_the_widened_null() -> None:
    found = permitted(rotating(BLOCKS), replica_sd=0.02)
    assert found.basis == "widened_null"
    assert found.margin == pytest.approx(3 * 0.02 * np.sqrt(1 / 2 + 1 / 38))
    assert "above 4.4%" in found.reason


def test_the_widened_null_covers_what_fixed_replicas_do_on_their_own() -> None:
    """Scenario N8: 2 % between replicas, two of forty fixed; the offset of the arms passes zero always, the margin almost never."""
    draws = np.random.default_rng(8).normal(0, 0.02, (2_000, 40))
    harm = draws[:, 2:].mean(axis=1) - draws[:, :2].mean(axis=1)
    assert (harm > 0).mean() > 0.45
    assert (harm > rotation.margin(0.02, 2, 38)).mean() < 0.005


def test_fixed_control_replicas_alarm_without_the_rule_and_not_against_the_widened_null() -> None:
    """Of 30 days more than 5 have a probability of 0.3 % at a rate of 5 %."""
    fixed = days(SCENARIOS["N8 fixed control"], range(8_000, 8_030))
    widened = contrast.theta0(-rotation.margin(0.02, 2, 38), 1.0)
    assert sum(watch(fixed, 5).at_all()) > 0.2
    assert watch(fixed, 5, theta0=float(widened)).at_all()[0] <= 5 / 30


def test_the_spread_between_replicas_is_told_apart_from_noise_over_blocks() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.05, (BLOCKS, REPLICAS))
    noise[rng.random(noise.shape) < 0.1] = np.nan
    assert rotation.replica_sd(1 + noise) < 0.005
    assert rotation.replica_sd(1 + noise + rng.normal(0, 0.02, REPLICAS)) == pytest.approx(0.02, rel=0.35)
    assert np.isnan(rotation.replica_sd(noise[:, :5]))
