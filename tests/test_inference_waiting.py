"""Lessons that wait before they count: a change is found before it widens its scale, and a lever that pays goes on learning."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.inference import scale, waiting
from pipeline.inference.waiting import Waiting

Reals = npt.NDArray[np.float64]
LAGS, BURN_IN, WAIT = 12, 48, 24


def fed(differences: Reals, state: Waiting | None = None, doubtful: bool = False) -> Waiting:
    """The state after `differences` (blocks, streams)."""
    streams = differences.shape[1]
    state = state or Waiting.start(streams, LAGS)
    for block in differences:
        state = waiting.update(state, block, np.full(streams, 0.01), np.full(streams, 0.12), doubtful, half_life_blocks=288.0)
    return state


def plain(differences: Reals) -> scale.State:
    streams = differences.shape[1]
    state = scale.State.start(streams, LAGS)
    for block in differences:
        state = scale.update(state, block, np.full(streams, 0.01), np.full(streams, 0.12), half_life_blocks=288.0)
    return state


@pytest.fixture
def noise() -> Reals:
    return np.random.default_rng(1).normal(0, 0.03, (200, 6))


def spread(state: Waiting) -> Reals:
    return scale.sd(state.known, np.full(6, 0.01))


def test_burn_in_is_learned_at_once(noise: Reals) -> None:
    assert spread(fed(noise[:BURN_IN])) == pytest.approx(scale.sd(plain(noise[:BURN_IN]), np.full(6, 0.01)))


def test_a_block_counts_after_once_to_twice_the_wait(noise: Reals) -> None:
    """The wild block is the first after burn-in, so its lesson is the first of those that wait."""
    wild = noise.copy()
    wild[BURN_IN] += 1.0
    for blocks, same in ((BURN_IN + 2 * WAIT - 1, True), (BURN_IN + 2 * WAIT, False)):
        assert np.allclose(spread(fed(wild[:blocks])), spread(fed(noise[:blocks]))) is same


def test_what_waits_is_dropped_where_harm_is_doubted(noise: Reals) -> None:
    before = fed(noise[:100])
    after = fed(noise[100:200] + 0.5, before, doubtful=True)
    assert spread(after) == pytest.approx(spread(before))
    assert not after.newer.any()
    assert not after.older.any()


def test_in_the_end_it_is_the_plain_scale_without_the_newest_lessons(noise: Reals) -> None:
    counted = BURN_IN + 5 * WAIT
    found = fed(noise[: counted + WAIT]).known
    expected = plain(noise[:counted])
    assert found.squares / found.weight[:, None] == pytest.approx(expected.squares / expected.weight[:, None])


def test_a_block_without_data_changes_nothing(noise: Reals) -> None:
    state = fed(noise[:90])
    assert np.array_equal(fed(np.full((9, 6), np.nan), state).numbers(), state.numbers())
    assert np.array_equal(fed(np.full((9, 6), np.nan), state, doubtful=True).numbers(), state.numbers())


def test_a_restart_from_its_numbers_and_the_order_of_streams_change_nothing(noise: Reals) -> None:
    noise[np.random.default_rng(2).random(noise.shape) < 0.2] = np.nan
    half = fed(noise[:30]).numbers()  # in burn-in: some contrasts are not yet
    assert np.array_equal(Waiting.of_numbers(half).numbers(), half, equal_nan=True)
    whole = fed(noise).numbers()
    assert np.array_equal(fed(noise[130:], Waiting.of_numbers(fed(noise[:130]).numbers())).numbers(), whole)
    order = np.array([3, 1, 5, 4, 0, 2])
    assert np.array_equal(fed(noise[:, order]).numbers(), whole[order])
