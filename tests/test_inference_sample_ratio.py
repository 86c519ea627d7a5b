"""A split that is not what it was meant to be is found, however often one looks, and a true one is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import sample_ratio
from pipeline.inference.sample_ratio import State

SHARE = 0.95
DAY = 288


def split(rng: np.random.Generator, streams: int, share: float, a_block: float = 2_000.0) -> tuple[np.ndarray, np.ndarray]:
    total = rng.poisson(a_block, streams)
    treated = rng.binomial(total, share)
    return treated.astype(float), (total - treated).astype(float)


def first_off(true_shares: list[float], streams: int, seed: int, blocks: int = DAY) -> np.ndarray:
    """The block at which each stream was found off, `blocks` if never; the true shares each take an equal part of the time."""
    rng, state = np.random.default_rng(seed), State.start(streams)
    found = np.full(streams, blocks)
    for block in range(blocks):
        share = true_shares[block * len(true_shares) // blocks]
        state = sample_ratio.step(state, *split(rng, streams, share), SHARE)
        found = np.where((found == blocks) & sample_ratio.is_off(state, SHARE, alpha=0.05), block, found)
    return found


def test_a_true_split_is_called_off_on_at_most_five_percent_of_days() -> None:
    """Each of 400 streams is looked at after each of 288 blocks; 5 % of them are 20."""
    assert (first_off([SHARE], 400, seed=1) < DAY).sum() <= 20


def test_four_percent_of_control_where_five_were_meant_is_found_within_twenty_minutes() -> None:
    assert np.median(first_off([0.96], 100, seed=2, blocks=24)) <= 3


def test_a_split_that_breaks_after_half_a_day_is_found_as_soon() -> None:
    """The e-process since the epoch began has first to forget a good half day; the detector has not."""
    found = first_off([SHARE, 0.96], 100, seed=3)
    assert (found < DAY // 2).mean() <= 0.05
    assert np.median(found) <= DAY // 2 + 5


def test_the_evidence_is_the_same_whatever_the_blocks() -> None:
    whole = sample_ratio.step(State.start(1), np.array([1900.0]), np.array([140.0]), SHARE)
    parts = State.start(1)
    for treated, control in ((900.0, 70.0), (0.0, 0.0), (1000.0, 70.0)):
        parts = sample_ratio.step(parts, np.array([treated]), np.array([control]), SHARE)
    assert sample_ratio.log_e(parts, SHARE) == pytest.approx(sample_ratio.log_e(whole, SHARE))


def test_under_the_null_the_evidence_is_one_on_average() -> None:
    """An e-value: over all outcomes of 30 requests, weighted as the null does, it is exactly 1."""
    treated = np.arange(31.0)
    state = State(treated, 30 - treated, np.zeros((31, len(sample_ratio.ODDS))))
    probability = np.exp(
        [sum(np.log(np.arange(k + 1, 31))) - sum(np.log(np.arange(1, 31 - k))) for k in range(31)]
        + treated * np.log(0.8)
        + (30 - treated) * np.log(0.2)
    )
    assert probability.sum() == pytest.approx(1)
    assert (probability * np.exp(sample_ratio.log_e(state, 0.8))).sum() == pytest.approx(1)


def test_no_data_changes_nothing() -> None:
    state = sample_ratio.step(State.start(2), np.array([10.0, 20.0]), np.array([2.0, 3.0]), 0.9)
    same = sample_ratio.step(state, np.array([np.nan, 5.0]), np.array([1.0, np.nan]), 0.9)
    for field in ("treated", "control", "log_m"):
        assert np.array_equal(getattr(same, field), getattr(state, field))


def test_requests_that_are_split_by_the_session_count_as_one() -> None:
    """Ten requests of one session go to one arm: counted singly, a true split looks broken."""
    rng = np.random.default_rng(4)
    singly, together = State.start(200), State.start(200)
    for _ in range(100):
        treated, control = (10 * arm for arm in split(rng, 200, SHARE, a_block=200.0))
        singly = sample_ratio.step(singly, treated, control, SHARE)
        together = sample_ratio.step(together, treated, control, SHARE, cluster=10)
    assert sample_ratio.is_off(singly, SHARE).mean() > 0.3
    assert sample_ratio.is_off(together, SHARE).mean() <= 0.02
