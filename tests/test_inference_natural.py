"""Natural experiments: alike is compared with alike, groups that are not alike may say nothing, and a leaning gain only half of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pipeline import segments
from pipeline.inference import matching, natural
from pipeline.inference.contrast import Sums
from pipeline.inference.natural import LOSES, OPEN, PAYS

Reals = npt.NDArray[np.float64]
ALPHA = 0.05


def sums(n: Reals, mean: Reals) -> Sums:
    """Sums of a mean over `n` requests with a coefficient of variation of 0.5."""
    return Sums(n, n * mean, n, n * mean**2 * 1.25, n, n * mean)


def strata(runs: int, gain: float, seed: int, blocks: int = 48) -> tuple[Sums, Sums, npt.NDArray[np.int64]]:
    """Each run's three strata, arrays (3 runs, blocks): slower ones hold most requests without the lever; all share a drift."""
    drawn = np.random.default_rng(seed)
    drift = np.repeat(drawn.normal(0, 0.1, (runs, blocks)), 3, axis=0)
    slow = np.tile([1.0, 2.0, 4.0], runs)[:, None]
    n_without = np.tile([2.0, 10.0, 60.0], runs)[:, None] * np.ones(blocks)
    n_treated = np.tile([200.0, 150.0, 100.0], runs)[:, None] * np.ones(blocks)
    means = [0.02 * slow * np.exp(drift) * (1 + drawn.normal(0, 0.5, n.shape) / np.sqrt(n)) for n in (n_treated, n_without)]
    return sums(n_treated, means[0] * (1 - gain)), sums(n_without, means[1]), np.repeat(np.arange(runs), 3)


@pytest.mark.parametrize("gain", [0.0, 0.2, -0.1])
def test_the_interval_covers_the_truth_at_every_block_as_often_as_stated(gain: float) -> None:
    runs = 100
    found = matching.matched(*strata(runs, gain, seed=4), runs)
    is_wrong = np.zeros(runs, bool)
    for blocks in range(3, found.differences.shape[1] + 1):
        mean, low, high = matching.intervals(found.differences[:, :blocks], found.shares, ALPHA)
        is_wrong |= (low > gain) | (high < gain)
    assert is_wrong.mean() <= 0.10
    assert mean.mean() == pytest.approx(gain, abs=0.01)


def test_slower_requests_without_the_lever_are_not_taken_for_its_gain() -> None:
    treated, without, streams = strata(20, 0.0, seed=5)
    pooled = 1 - (treated.num.sum() / treated.n.sum()) / (without.num.sum() / without.n.sum())
    found = matching.matched(treated, without, streams, 20)
    matched = matching.intervals(found.differences, found.shares, ALPHA)[0].mean()
    assert pooled > 0.3
    assert abs(matched) < 0.01


def test_only_requests_with_a_match_count_and_the_share_of_these_is_told() -> None:
    n = np.array([[100.0, 100, 100, 100], [100, 100, 100, 100]])
    without = np.array([[0.0, 50, 50, 4], [0, 0, 0, 0]])
    found = matching.matched(sums(n, 0.02 + 0 * n), sums(without, 0.025 + 0 * n), np.array([0, 0]), 2)
    np.testing.assert_array_equal(np.isfinite(found.differences), [[False, False, True, False], [False] * 4])  # the second block teaches
    assert found.shares[0] == pytest.approx(2 / 3)
    assert found.differences[0, 2] == pytest.approx(-0.005 / (0.02 * 2 / 3 + 0.025 / 3))
    assert found.coverage.tolist() == [50 / 104, 0.0]


def test_the_order_of_strata_changes_nothing() -> None:
    treated, without, streams = strata(5, 0.1, seed=6)
    order = np.random.default_rng(1).permutation(len(streams))
    turned = [Sums(*(getattr(side, name)[order] for name in Sums.__slots__)) for side in (treated, without)]
    first, again = matching.matched(treated, without, streams, 5), matching.matched(*turned, streams[order], 5)
    np.testing.assert_allclose(first.differences, again.differences, rtol=1e-12)


def test_an_error_that_all_blocks_share_widens_the_interval_by_itself() -> None:
    told, share = np.random.default_rng(8).normal(-0.1, 0.05, (1, 30)), np.array([0.0])
    _, low, high = matching.intervals(told, share, ALPHA)
    _, wide_low, wide_high = matching.intervals(told, share, ALPHA, error=0.05)
    assert wide_low[0] < low[0] - 0.09
    assert wide_high[0] > high[0] + 0.09
    assert matching.intervals(told, share, ALPHA, error=np.inf)[1].tolist() == [-np.inf]


def test_two_blocks_or_none_have_no_interval() -> None:
    mean, low, high = matching.intervals(np.array([[-0.1, -0.2], [np.nan, np.nan]]), np.array([0.0, np.nan]), ALPHA)
    assert mean[0] == pytest.approx(0.15)
    assert np.isnan(mean[1])
    assert np.isinf(low).all()
    assert np.isinf(high).all()


def test_distance_is_in_standard_deviations_and_unknown_where_nothing_was_reported() -> None:
    treated, without = (100.0, 1000.0, 10_400.0), (50.0, 550.0, 6_250.0)  # means 10 and 11, variance 4 each
    told = natural.distance(*((np.array([value, 0.0]) for value in group) for group in (treated, without)))
    np.testing.assert_allclose(told, [0.5, np.nan])
    assert natural.distance(*[(np.array([2.0]), np.array([6.0]), np.array([18.0]))] * 2)[0] == 0


@pytest.mark.parametrize(
    ("distances", "blocks", "coverage", "grade"),
    [
        ([0.02, 0.1], 10, 0.9, "good"),
        ([0.02, np.nan, 0.2], 10, 0.9, "fair"),
        ([0.02, 0.3], 10, 0.9, "poor"),
        ([np.nan], 10, 0.9, "poor"),
        ([0.0], 9, 0.9, "too little"),
        ([0.0], 10, 0.4, "too little"),
    ],
)
def test_a_comparison_is_as_good_as_its_worst_distance(distances: list[float], blocks: int, coverage: float, grade: str) -> None:
    assert natural.grade(np.array(distances), blocks, coverage) == grade


def test_a_leaning_gain_may_say_only_what_it_does_not_lean_to() -> None:
    gain, loss, none = (0.1, 0.2), (-0.2, -0.1), (-0.1, 0.1)
    assert [natural.says(*of, "up", "good") for of in (gain, loss, none)] == [OPEN, LOSES, OPEN]
    assert [natural.says(*of, "down", "good") for of in (gain, loss, none)] == [PAYS, OPEN, OPEN]
    assert [natural.says(*of, "unknown", "fair") for of in (gain, loss, none)] == [PAYS, LOSES, OPEN]
    assert natural.says(*loss, "up", "poor") == natural.says(*loss, "up", "too little") == OPEN


def test_every_experiment_names_levers_that_exist_and_a_rollout_every_lever() -> None:
    assert {lever for one in natural.EXPERIMENTS for lever in one.levers} == set(segments.LEVERS)
    assert [one.name for one in natural.of_lever("cache_affinity")] == ["cold_workers", "rollouts", "spill"]
    assert [one.name for one in natural.of_lever("pool_ratio")] == ["rollouts"]
