"""The detector: exact as a restart and as a product, quiet under the null at any look, quick when it is not."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.inference import detector
from pipeline.inference.detector import Tails

Reals = npt.NDArray[np.float64]


def fed(z: Reals, log_m: Reals | None = None, tails: Tails = "gaussian") -> Reals:
    state = detector.start(z.shape[1]) if log_m is None else log_m
    for block in z:
        state = detector.step(state, block, tails)
    return state


def highest(z: Reals, tails: Tails = "gaussian") -> Reals:
    state, top = detector.start(z.shape[1]), np.full(z.shape[1], -np.inf)
    for block in z:
        state = detector.step(state, block, tails)
        top = np.maximum(top, detector.log_e(state))
    return top


def test_it_is_the_sum_of_products_over_all_starts() -> None:
    z = np.array([0.3, -0.7, 1.9, 0.2])
    factor = np.exp(detector.LAM * z[:, None] - detector.LAM**2 / 2)
    sums = sum(np.prod(factor[start:], axis=0) for start in range(4))
    assert detector.log_e(fed(z[:, None]))[0] == pytest.approx(math.log(np.mean(sums)))


def test_before_the_first_block_there_is_no_evidence() -> None:
    assert detector.log_e(detector.start(2)).tolist() == [-np.inf, -np.inf]
    assert not detector.alarms(detector.start(2), 10.0).any()


def test_a_restart_goes_on_exactly_and_streams_do_not_see_each_other() -> None:
    z = np.random.default_rng(1).normal(0.3, 1, (60, 4))
    stored = fed(z[:30]).copy()
    assert np.array_equal(fed(z[30:], stored), fed(z))
    order = np.array([2, 0, 3, 1])
    assert np.array_equal(fed(z[:, order]), fed(z)[order])
    assert np.array_equal(fed(z[:, 1:2])[0], fed(z)[1])


def test_a_block_without_data_changes_nothing_however_often_one_looks() -> None:
    state = fed(np.random.default_rng(2).normal(0, 1, (20, 3)))
    assert np.array_equal(fed(np.full((50, 3), np.nan), state), state)


def test_one_wild_block_counts_as_four_standard_deviations() -> None:
    assert np.array_equal(fed(np.array([[1e9]])), fed(np.array([[4.0]])))


def test_strong_effects_do_not_overflow() -> None:
    evidence = detector.log_e(fed(np.full((5000, 1), 4.0)))
    assert np.isfinite(evidence).all()
    assert evidence[0] > 1000


@pytest.mark.parametrize("tails", ["gaussian", "bennett"])
def test_independent_noise_alarms_in_at_most_five_percent_of_cycles(tails: Tails) -> None:
    top = highest(np.random.default_rng(3).normal(0, 1, (288, 2000)), tails)
    wrong = np.mean(top >= math.log(detector.threshold(288, 0.05)))
    assert wrong < 0.05


def test_blocks_with_heavy_tails_need_the_bennett_form() -> None:
    rng = np.random.default_rng(4)
    skewed = rng.exponential(1, (288, 2000)) - 1
    limit = math.log(detector.threshold(288, 0.05))
    assert np.mean(highest(skewed, "bennett") >= limit) <= 0.05 < np.mean(highest(skewed) >= limit)


@pytest.mark.parametrize("shift", [0.3, 0.5, 1.0])
def test_a_shift_is_found_within_the_blocks_that_its_size_says(shift: float) -> None:
    rng = np.random.default_rng(5)
    state = fed(rng.normal(0, 1, (120, 400)))
    limit = detector.threshold(288, 0.05)
    found = np.full(400, np.inf)
    for block in range(400):
        state = detector.step(state, rng.normal(shift, 1, 400))
        found = np.where(detector.alarms(state, limit), np.minimum(found, block + 1), found)
    stated = 1.3 * 2 * math.log(limit) / shift**2
    assert np.median(found) <= stated
    assert np.quantile(found, 0.9) <= 3 * stated


def test_good_history_hides_nothing() -> None:
    """An average since the beginning would still be good at the end."""
    rng = np.random.default_rng(6)
    z = rng.normal(0, 1, (288, 300)) + np.where(np.arange(288) < 180, -3.0, 1.0)[:, None]
    assert np.mean(z.mean(axis=0) < 0) == 1.0
    assert np.mean(highest(z) >= math.log(detector.threshold(288, 0.05))) == 1.0


def test_a_scale_freezes_at_the_root_of_the_threshold() -> None:
    limit = 400.0
    state = np.log(np.array([[19.0] * 6, [21.0] * 6, [500.0] * 6]))
    assert detector.freezes(state, limit).tolist() == [False, True, True]
    assert detector.alarms(state, limit).tolist() == [False, False, True]
