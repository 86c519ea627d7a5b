"""Many streams at once: how many are believed, and what a weight does."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import multiplicity


def test_the_largest_k_is_taken_whose_kth_evidence_is_large_enough() -> None:
    """m = 4, q = 0.1: one alone needs 40, the second 20, the third 13.3, the fourth 10."""
    assert multiplicity.ebh(np.log([41.0, 1.0, 1.0, 1.0]), 0.1).tolist() == [True, False, False, False]
    assert multiplicity.ebh(np.log([39.0, 1.0, 1.0, 1.0]), 0.1).tolist() == [False] * 4
    assert multiplicity.ebh(np.log([14.0, 30.0, 2.0, 14.0]), 0.1).tolist() == [True, True, False, True]


def test_no_evidence_and_no_streams_reject_nothing() -> None:
    assert not multiplicity.ebh(np.array([np.nan, -np.inf]), 0.5).any()
    assert multiplicity.ebh(np.array([]), 0.1).tolist() == []


def test_equal_weights_change_nothing_and_a_heavier_stream_needs_less() -> None:
    evidence = np.log([30.0, 30.0])
    assert multiplicity.ebh(np.log([25.0, 1.0]), 0.1, np.array([2.0, 2.0])).tolist() == [True, False]
    assert multiplicity.ebh(np.log([11.0, 1.0]), 0.1, np.array([0.95, 0.05])).tolist() == [True, False]
    assert multiplicity.ebh(evidence, 0.1, np.array([1.0, 0.0])).tolist() == [True, False]


def test_the_order_of_streams_does_not_matter() -> None:
    evidence = np.random.default_rng(1).exponential(3, 50)
    order = np.random.default_rng(2).permutation(50)
    assert np.array_equal(multiplicity.ebh(evidence[order], 0.1), multiplicity.ebh(evidence, 0.1)[order])


def test_false_discoveries_stay_within_q_when_streams_move_together() -> None:
    """200 streams of which 20 are real, correlation 0.3; E = exp(z - 1/2), the smallest e-value of a Gaussian."""
    rng = np.random.default_rng(3)
    shares, found = [], []
    for _ in range(400):
        z = np.sqrt(0.3) * rng.normal() + np.sqrt(0.7) * rng.normal(size=200)
        real = np.arange(200) < 20
        rejected = multiplicity.ebh(3 * (z + 4 * real) - 4.5, 0.1)
        shares.append((rejected & ~real).sum() / max(rejected.sum(), 1))
        found.append(rejected[real].mean())
    assert np.mean(shares) < 0.1
    assert np.mean(found) > 0.5


def test_what_is_latched_needs_evidence_for_all_streams_and_the_whole_cycle() -> None:
    assert multiplicity.bonferroni_threshold(200, 288, 0.05) == pytest.approx(200 * 288 / 0.05)
