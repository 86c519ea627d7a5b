"""Since when a lever may be worse, and by how much since then."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import turn


def after(zs: list[float], shares: list[float] | None = None) -> turn.State:
    state = turn.State.start(1)
    for z, share in zip(zs, shares or [0.5] * len(zs), strict=True):
        state = turn.step(state, np.array([z]), np.array([z / 10]), np.array([share]))
    return state


def test_a_lever_that_pays_has_not_turned() -> None:
    state = after([-2.0] * 30)
    assert state.n[0] == 0
    assert np.isnan(turn.means(state)[0][0])


def test_the_mean_is_of_the_blocks_since_the_turn_alone() -> None:
    state = after([-2.0] * 30 + [3.0, 1.0, 2.0], [0.9] * 30 + [0.5, 0.6, 0.7])
    assert state.n[0] == 3
    difference, share = turn.means(state)
    assert (difference[0], share[0]) == (pytest.approx(0.2), pytest.approx(0.6))


def test_a_turn_that_is_taken_back_is_forgotten() -> None:
    assert after([1.0, 1.0, -3.0]).n[0] == 0
    assert after([1.0, 1.0, -3.0, 0.5]).n[0] == 1


def test_a_block_without_a_contrast_changes_nothing() -> None:
    one, other = after([1.0, 2.0]), after([1.0, float("nan"), 2.0, float("nan")])
    for mine, theirs in zip(
        (one.total, one.n, one.difference, one.share), (other.total, other.n, other.difference, other.share), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
