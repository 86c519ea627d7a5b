"""Splits of one arm: how much wider the scale must be, and when it is not to be trusted."""

from __future__ import annotations

import numpy as np

from pipeline.inference import calibration


def test_noise_of_the_right_size_alarms_at_the_stated_rate_and_needs_a_little_widening_for_half_of_it() -> None:
    found = calibration.smallest_phi(np.random.default_rng(1).normal(0, 1, (2016, 50)), 288, 0.05)
    assert found.rates[0] < 0.06
    assert found.phi in (1.0, 1.05, 1.1, 1.15)
    assert list(found.rates) == sorted(found.rates, reverse=True)


def test_noise_a_quarter_larger_than_the_scale_says_is_widened() -> None:
    found = calibration.smallest_phi(np.random.default_rng(2).normal(0, 1.25, (2016, 50)), 288, 0.05)
    assert found.phi is not None
    assert 1.25 <= found.phi <= 1.45
    assert found.rates[0] > 0.05


def test_replicas_that_differ_for_good_cannot_be_calibrated_away() -> None:
    rng = np.random.default_rng(3)
    found = calibration.smallest_phi(rng.normal(0, 1, (2016, 50)) + rng.normal(0, 1.5, 50), 288, 0.05)
    assert found.phi is None


def test_no_contrasts_need_no_widening() -> None:
    assert calibration.smallest_phi(np.full((10, 2), np.nan), 288, 0.05).phi == 1.0


def test_a_day_of_contrasts_is_checked_for_its_spread_and_for_neighbors_that_are_alike() -> None:
    rng = np.random.default_rng(4)
    plain = rng.normal(0, 0.9, 288)
    alike = np.zeros(288)
    for t in range(1, 288):
        alike[t] = 0.6 * alike[t - 1] + 0.7 * rng.normal()
    holes = plain.copy()
    holes[::7] = np.nan
    found = calibration.check(np.stack([plain, 1.6 * plain, alike, holes], axis=1))
    assert found.calibrated.tolist() == [True, False, False, True]
    assert found.spread[1] > 1.2
    assert found.neighbors[2] > 0.3
