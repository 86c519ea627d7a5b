"""What treated is charged with: the TTFT that a lever adds, and not what chance holds against it."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference.charge import added_s

N = np.full((1, 400), 50.0)


def test_a_lever_that_adds_is_charged_in_full_block_by_block() -> None:
    rng = np.random.default_rng(1)
    first = 0.5 + 0.1 * rng.standard_normal(N.shape)
    charged = added_s(N, N * (first + 0.05), N, N * 0.5)
    assert charged == pytest.approx(first + 0.05 - 0.5)
    assert (charged < 0).any()


def test_a_lever_that_does_nothing_is_charged_less_than_a_fiftieth_of_what_its_blocks_err_by() -> None:
    rng = np.random.default_rng(2)
    noise = 0.1 * rng.standard_normal((500, 400))
    n = np.broadcast_to(N, noise.shape)
    charged = added_s(n, n * (0.5 + noise), n, n * 0.5).mean()
    assert 0 <= charged < 0.1 / 50
    assert np.maximum(noise, 0).mean() > 0.1 / 3


def test_a_lever_that_saves_is_charged_nothing() -> None:
    assert not added_s(N, N * 0.4, N, N * 0.5).any()


def test_a_block_without_enough_requests_of_an_arm_is_charged_nothing_and_does_not_vote() -> None:
    n = np.array([[3.0, 50.0, 50.0]])
    charged = added_s(n, n * np.array([9.0, 0.6, 0.6]), np.full((1, 3), 50.0), np.full((1, 3), 25.0), least_requests=5)
    assert charged == pytest.approx(np.array([[0.0, 0.1, 0.1]]))
    assert not added_s(n, n * np.array([9.0, 0.4, 0.4]), np.full((1, 3), 50.0), np.full((1, 3), 25.0), least_requests=5).any()
