"""Intervals that hold at every moment: their stated critical values, their coverage, and what too few blocks give."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.inference import interval
from pipeline.inference.interval import Bounded, Running

Reals = npt.NDArray[np.float64]


@pytest.mark.parametrize(("n", "critical"), [(10, 8.5), (20, 3.75), (50, 3.18), (288, 3.16)])
def test_the_t_interval_is_as_wide_as_the_paper_says(n: int, critical: float) -> None:
    radius = interval.avt_radius(np.array([float(n)]), np.array([1.0]), 0.05)
    assert radius[0] * np.sqrt(n) == pytest.approx(critical, abs=0.05)


def test_the_t_interval_is_where_its_evidence_reaches_one_over_alpha() -> None:
    n, mean, variance = np.array([12.0, 40.0]), np.array([0.1, -0.3]), np.array([0.04, 0.09])
    low, high = interval.avt(n, mean, variance, 0.05, kappa=1.7)
    for end in (low, high):
        evidence = interval.avt_log_e(n, mean, variance, end, kappa=1.7)
        assert evidence == pytest.approx(np.log(20.0), rel=1e-9)


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0])
def test_fewer_than_three_blocks_have_an_endless_interval_and_no_evidence(n: float) -> None:
    count, mean, variance = np.array([n]), np.array([np.nan if n == 0 else 1.0]), np.array([np.nan if n < 2 else 0.1])
    assert [float(end[0]) for end in interval.avt(count, mean, variance, 0.05)] == [-np.inf, np.inf]
    assert interval.avt_log_e(count, mean, variance).tolist() == [0.0]
    assert np.isinf(interval.asymptotic_radius(count, variance, 0.05)).all()


def missed(draws: Reals, alpha: float = 0.05) -> float:
    """The share of streams whose t interval misses 0 at any block; draws (blocks, streams)."""
    running, wrong = Running.start(draws.shape[1]), np.zeros(draws.shape[1], dtype=bool)
    for block in draws:
        running = running.add(block)
        low, high = interval.avt(running.n, running.mean(), running.variance(), alpha)
        wrong |= (low > 0) | (high < 0)
    return float(wrong.mean())


def test_the_t_interval_misses_in_at_most_five_percent_of_days_looked_at_after_each_block() -> None:
    assert missed(np.random.default_rng(1).normal(0, 1, (288, 1000))) < 0.05


def test_the_asymptotic_interval_misses_as_rarely_from_twenty_blocks_and_never_says_more_before() -> None:
    draws = np.random.default_rng(2).normal(0, 1, (288, 1000))
    running, wrong = Running.start(1000), np.zeros(1000, dtype=bool)
    for block in draws:
        running = running.add(block)
        wrong |= np.abs(running.mean()) > interval.asymptotic_radius(running.n, running.variance(), 0.05)
    assert 0.0 < np.mean(wrong) < 0.05


def test_running_sums_are_mean_and_sample_variance_and_pass_over_missing_blocks() -> None:
    draws = np.random.default_rng(3).normal(0.1, 0.03, (30, 2))
    running = Running.start(2)
    for block in draws:
        running = running.add(block).add(np.full(2, np.nan))
    assert running.mean() == pytest.approx(draws.mean(axis=0))
    assert running.variance() == pytest.approx(draws.var(axis=0, ddof=1))
    assert running.n.tolist() == [30.0, 30.0]


def test_the_one_sided_evidence_is_an_e_process() -> None:
    """Under a mean of 0 it reaches 20 in at most one stream of 20, whatever the moment; with a positive mean it grows."""
    draws = np.random.default_rng(4).normal(0, 1, (288, 2000))
    time = np.arange(1.0, 289.0)[:, None]
    assert np.mean((interval.one_sided_log_e(np.cumsum(draws, axis=0), time, 8.0) >= np.log(20)).any(axis=0)) < 0.05
    assert (interval.one_sided_log_e(np.cumsum(draws + 0.5, axis=0)[-1], time[-1], 8.0) > np.log(20)).all()


def bounded(draws: Reals) -> Bounded:
    state = Bounded.start(draws.shape[1])
    for block in draws:
        state = state.add(block, 0.05)
    return state


def test_the_bounded_interval_covers_with_few_blocks_of_a_share_near_one() -> None:
    draws = np.random.default_rng(5).beta(49, 1, (40, 1000))
    state, wrong = Bounded.start(1000), np.zeros(1000, dtype=bool)
    for block in draws:
        state = state.add(block, 0.05)
        low, high = state.interval(0.05)
        wrong |= (low > 0.98) | (high < 0.98)
    assert np.mean(wrong) < 0.05
    assert np.median(high - low) < 0.5
    assert [float(end[0]) for end in Bounded.start(1).interval(0.05)] == [0.0, 1.0]


def test_bounded_sums_go_on_exactly_after_a_restart_and_refuse_what_is_out_of_bounds() -> None:
    draws = np.random.default_rng(6).random((40, 3))
    half = bounded(draws[:20])
    again = Bounded(*(getattr(half, f.name).copy() for f in fields(Bounded)))
    for block in (np.full(3, np.nan), *draws[20:]):
        again = again.add(block, 0.05)
    assert np.array_equal(again.interval(0.05), bounded(draws).interval(0.05))
    with pytest.raises(ValueError, match=r"value is 1\.2; it takes values from 0 to 1"):
        half.add(np.array([0.1, 1.2, 0.3]), 0.05)
