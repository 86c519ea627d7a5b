"""The holdout that is advised answers in the time that was asked for, and no smaller one does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.inference import detector, holdout, scale
from pipeline.inference.holdout import Question, Traffic

BUSY = Traffic(np.array([24_000.0]), np.array([0.25]), np.array([0.001]), np.array([np.inf]))
ASKED = Question(change=0.10, within_hours=12.0)


def test_the_smallest_slice_answers_in_time_and_a_smaller_one_does_not() -> None:
    found = holdout.smallest(BUSY, ASKED)
    assert found.is_reached[0]
    assert found.hours[0] < found.hours_p90[0] <= 12.0
    _, less, _ = holdout.hours(BUSY, ASKED, found.share - 0.001)
    assert less[0] > 12.0


def test_half_the_effect_takes_four_times_the_requests_or_so() -> None:
    quick = replace(BUSY, cluster_variance=np.array([0.0]))
    asked = Question(change=0.10, within_hours=24.0, is_new=False)
    whole, half = holdout.smallest(quick, asked), holdout.smallest(quick, replace(asked, change=0.05))
    assert half.requests[0] / whole.requests[0] == pytest.approx(4, rel=0.5)


def test_more_time_needs_less_traffic() -> None:
    shares = [holdout.smallest(BUSY, replace(ASKED, within_hours=hours)).share[0] for hours in (7.0, 12.0, 24.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[2]


def test_a_known_scale_saves_the_burn_in() -> None:
    share = np.array([0.05])
    new, known = (holdout.hours(BUSY, replace(ASKED, is_new=is_new), share)[0] for is_new in (True, False))
    assert new - known == pytest.approx(4.0)


def test_two_replicas_are_the_least_where_arms_are_replicas() -> None:
    few = replace(BUSY, replicas=np.array([8.0]))
    assert holdout.smallest(few, replace(ASKED, within_hours=48.0)).share[0] == 0.25
    none = holdout.smallest(replace(BUSY, replicas=np.array([3.0])), ASKED)
    assert np.isnan(none.share[0])
    assert not none.is_reached[0]


def test_thin_traffic_gets_longer_blocks_and_none_at_all_no_answer() -> None:
    """Of 40 requests an hour no slice holds a hundred; a block of an hour is the longest."""
    thin = Traffic(np.array([2_000.0, 40.0, 0.0]), *(np.full(3, value) for value in (0.25, 0.001, np.inf)))
    found = holdout.smallest(thin, replace(ASKED, within_hours=48.0))
    assert 300 < found.block_s[0] <= 3_600
    assert found.requests[0] / found.hours[0] * found.block_s[0] / 3600 >= 100
    assert np.isnan(found.share[1:]).all()
    assert not found.is_reached[1:].any()


def test_what_comes_too_late_is_said_with_the_best_there_is() -> None:
    """Noise of the replicas, not of the requests: more requests would not help."""
    noisy, asked = replace(BUSY, cluster_variance=np.array([0.05])), replace(ASKED, within_hours=5.0)
    found = holdout.smallest(noisy, asked)
    assert not found.is_reached[0]
    assert all(5.0 < found.hours_p90[0] <= holdout.hours(noisy, asked, np.array([share]))[1][0] for share in (0.01, 0.1, 0.5))


def test_the_hours_are_those_that_the_detector_takes() -> None:
    """Simulated with contrasts of that noise, of a known scale: the median within 40 %, nine of ten within the bound."""
    asked = replace(ASKED, is_new=False)
    share = np.array([0.05])
    median_h, slow_h, _ = holdout.hours(BUSY, asked, share)
    n = 24_000 * np.array([0.95, 0.05]) / 12
    sd = np.sqrt(0.25 * (1 / n).sum() + 0.001)
    rng, log_m, found = np.random.default_rng(9), detector.start(1_000), np.full(1_000, 400)
    for block in range(400):
        log_m = detector.step(log_m, rng.normal(0.10, sd, 1_000) / (scale.PHI * sd))
        found = np.where((found == 400) & detector.alarms(log_m, detector.threshold(288, 0.05)), block + 1, found)
    assert np.median(found) / 12 == pytest.approx(median_h[0], rel=0.4)
    assert (found / 12 <= slow_h[0]).mean() >= 0.9
