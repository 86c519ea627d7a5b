"""Intervals of percentiles hold at every look though requests of one minute are slow together, and intervals for single requests do not."""

from __future__ import annotations

import inference_tails as tails
import numpy as np
import pytest
from inference_days import CONTROL, SCENARIOS, TREATED

from pipeline.inference import quantile
from pipeline.inference.quantile import Bounds
from queries.cells_histogram import FIRST, RATIO

BINS, LOWEST = 300, 30
EDGES = FIRST * RATIO ** np.arange(LOWEST, LOWEST + BINS + 1)
MEDIAN = 0.025


def day(rng: np.random.Generator, blocks: int = 288, a_block: int = 200, scale: float = 1.0) -> np.ndarray:
    """Histograms of one arm: requests of a block share a factor that lasts, AR(0.6 a block) of 10 %."""
    shared, counts = 0.0, np.zeros((blocks, BINS))
    for block in range(blocks):
        shared = 0.6 * shared + rng.normal(0, 0.08)
        values = scale * MEDIAN * np.exp(shared + rng.normal(0, 0.35, a_block))
        numbers = np.floor(np.log(values / FIRST) / np.log(RATIO)).astype(int) - LOWEST
        counts[block] = np.bincount(np.clip(numbers, 0, BINS - 1), minlength=BINS)
    return counts


def true_value(share: float) -> float:
    """Of the mixture over blocks: the shared factor's variance adds to the requests'."""
    from scipy.special import ndtri

    return float(MEDIAN * np.exp(np.hypot(0.35, 0.10) * ndtri(share)))


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_interval_covers_the_percentile_at_every_look(share: float) -> None:
    """Looked at every two hours of 40 days: more than 6 misses have a probability of 1 % at a rate of 5 %."""
    rng, missed = np.random.default_rng(1), 0
    for _ in range(40):
        counts = day(rng)
        looks = [quantile.bounds(counts[:until], EDGES, share, 0.05) for until in range(48, 289, 24)]
        missed += any(not look.low <= true_value(share) <= look.high for look in looks)
    assert missed <= 6


def test_an_interval_for_independent_requests_misses_it() -> None:
    """The naive one: blocks shuffled away, requests as units, as many as there are."""
    rng, missed = np.random.default_rng(2), 0
    for _ in range(20):
        counts = day(rng).sum(axis=0)
        n, below = counts.sum(), counts[EDGES[1:] <= MEDIAN].sum()
        missed += abs(below / n - 0.5) > 1.96 * 0.5 / np.sqrt(n)
    assert missed >= 8


def test_the_interval_is_narrow_enough_to_be_of_use() -> None:
    found = quantile.bounds(day(np.random.default_rng(3)), EDGES, 0.95, 0.05)
    assert found.low < found.value < found.high
    assert found.high / found.low < 1.2


def test_a_ratio_of_two_arms_covers_a_fifth_more_and_excludes_none() -> None:
    rng = np.random.default_rng(4)
    treated, control = (quantile.bounds(day(rng, scale=scale), EDGES, 0.95, 0.025) for scale in (1.2, 1.0))
    found = quantile.ratio(treated, control)
    assert 1.0 < found.low < 1.2 < found.high
    apart = quantile.difference(treated, control)
    assert apart.low < 0.2 * true_value(0.95) < apart.high


@pytest.fixture(scope="module")
def loaded() -> np.ndarray:
    """20 days under a load that swings, with what all replicas have in common."""
    return tails.tail_days(SCENARIOS["N1 base"], range(6_000, 6_020))


TAIL_EDGES = FIRST * RATIO ** np.arange(tails.FIRST, tails.FIRST + tails.BINS + 1)


@pytest.mark.parametrize("bins", [0, 9])
def test_the_ratio_of_paired_blocks_covers_the_truth_at_every_look(loaded: np.ndarray, bins: int) -> None:
    """Of 20 days more than 4 have a probability of 0.3 % at a rate of 5 %."""
    missed = 0
    for day in tails.slower(loaded, bins, 0).astype(np.float64):
        looks = [quantile.paired_ratio(day[:until, TREATED], day[:until, CONTROL], TAIL_EDGES, 0.95, 0.05) for until in range(48, 289, 24)]
        missed += any(not look.low * 0.999 <= RATIO**bins <= look.high * 1.001 for look in looks)
    assert missed <= 4


def test_the_ratio_of_paired_blocks_is_far_narrower_than_that_of_the_arms(loaded: np.ndarray) -> None:
    day = loaded[0].astype(np.float64)
    paired = quantile.paired_ratio(day[:, TREATED], day[:, CONTROL], TAIL_EDGES, 0.95, 0.05)
    apart = quantile.ratio(*(quantile.bounds(day[:, arm], TAIL_EDGES, 0.95, 0.025) for arm in (TREATED, CONTROL)))
    assert apart.low < paired.low <= paired.value <= paired.high < apart.high
    assert paired.high / paired.low < 1 + 0.5 * (apart.high / apart.low - 1)


def test_without_pairs_of_blocks_there_is_no_ratio(loaded: np.ndarray) -> None:
    day = loaded[0].astype(np.float64)
    day[::2, CONTROL] = 0
    day[1::2, TREATED] = 0
    assert np.isnan(quantile.paired_ratio(day[:, TREATED], day[:, CONTROL], TAIL_EDGES, 0.5, 0.05).value)
    few = quantile.paired_ratio(loaded[0, :40, TREATED], loaded[0, :40, CONTROL], TAIL_EDGES, 0.5, 0.05)
    assert (few.low, few.high) == (0.0, float("inf"))


def test_fewer_than_four_hours_of_blocks_bound_nothing() -> None:
    found = quantile.bounds(day(np.random.default_rng(5), blocks=47), EDGES, 0.5, 0.05)
    assert (found.low, found.high) == (0.0, float("inf"))
    assert found.value == pytest.approx(MEDIAN, rel=0.1)


def test_no_values_are_no_percentile() -> None:
    assert np.isnan(quantile.bounds(np.zeros((30, BINS)), EDGES, 0.5, 0.05).value)
    assert np.isnan(quantile.ratio(Bounds(1.0, 0.5, 2.0), Bounds(np.nan, np.nan, np.nan)).value)


def test_empty_blocks_change_nothing() -> None:
    counts = day(np.random.default_rng(6), blocks=60)
    spaced = np.zeros((120, BINS))
    spaced[::2] = counts
    assert quantile.bounds(spaced, EDGES, 0.95, 0.05) == quantile.bounds(counts, EDGES, 0.95, 0.05)


def test_open_ends_divide_to_open_ends() -> None:
    assert quantile.ratio(Bounds(1.0, 0.0, np.inf), Bounds(2.0, 0.0, np.inf)) == Bounds(0.5, 0.0, np.inf)
    found = quantile.ratio(Bounds(1.0, 0.5, 2.0), Bounds(2.0, 1.0, 4.0))
    assert (found.low, found.high) == (0.125, 2.0)


def test_a_percentile_beyond_the_bins_has_no_upper_end() -> None:
    """A tenth of the requests failed and are counted in the last bin."""
    counts = day(np.random.default_rng(7), blocks=60)
    counts[:, -1] += 22
    assert np.isinf(quantile.bounds(counts, EDGES, 0.99, 0.05).high)
    assert np.isfinite(quantile.bounds(counts, EDGES, 0.5, 0.05).high)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_ends_of_sums_at_the_percentile_are_those_of_pairs_of_blocks(share: float) -> None:
    """As `paired_ratio`, but with the variance at the percentile alone: the same bins but for one or two."""
    rng = np.random.default_rng(5)
    treated, control = day(rng, 48, 800, 1.2), day(rng, 48, 200)
    paired = quantile.paired_ratio(treated, control, EDGES, share, 0.05, span_blocks=6)
    place = int((np.cumsum(control.sum(axis=0)) < share * control.sum()).sum())
    upto = np.cumsum(treated, axis=1)
    expected = 800 * np.cumsum(control, axis=1)[:, place] / 200
    middle = int(np.abs(upto.sum(axis=0) - expected.sum()).argmin())
    radius = quantile.sum_radius((upto[:, middle] - expected)[:, None], np.array([48.0]), 0.05, 6)
    found = quantile.ends(upto.sum(axis=0)[None], np.array([expected.sum()]), radius)
    for bins, ratio in zip(found, (paired.value, paired.low, paired.high), strict=True):
        assert (bins[0] - place) * np.log(RATIO) == pytest.approx(np.log(ratio), abs=2.5 * np.log(RATIO))


def test_nothing_bounds_a_percentile_of_fewer_than_ten_blocks() -> None:
    y = np.random.default_rng(1).normal(size=(24, 2))
    radius = quantile.sum_radius(y, np.array([9.0, 10.0]), 0.05, 6)
    assert (np.isinf(radius[0]), np.isfinite(radius[1])) == (True, True)
    _, low, high = quantile.ends(np.arange(10.0)[None], np.array([5.0]), radius[:1])
    assert (low[0], high[0]) == (-1, 10)
