"""The scale of contrasts: predictable, not widened by a shift, thinner traffic wider, and exact over a restart."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.inference import scale
from pipeline.inference.scale import State

Reals = npt.NDArray[np.float64]
LAGS = 12


def fed(differences: Reals, ih: float = 0.01, b: float = 0.12, state: State | None = None) -> State:
    """The state after `differences` (blocks, streams)."""
    streams = differences.shape[1]
    state = state or State.start(streams, LAGS)
    for block in differences:
        state = scale.update(state, block, np.full(streams, ih), np.full(streams, b), half_life_blocks=288.0)
    return state


def same(one: State, other: State) -> bool:
    return all(np.array_equal(getattr(one, f.name), getattr(other, f.name), equal_nan=True) for f in fields(State))


def test_independent_noise_of_requests_has_the_scale_of_requests() -> None:
    rng = np.random.default_rng(1)
    state = fed(rng.normal(0, np.sqrt(0.12 * 0.01), (288, 200)))
    assert np.mean(scale.sd(state, np.full(200, 0.01), phi=1.0)) == pytest.approx(np.sqrt(0.12 * 0.01), rel=0.15)


def test_a_quarter_of_the_control_traffic_doubles_the_part_that_requests_make() -> None:
    rng = np.random.default_rng(2)
    state = fed(rng.normal(0, np.sqrt(0.12 * 0.01), (288, 200)))
    thin, thick = scale.sd(state, np.full(200, 0.04)), scale.sd(state, np.full(200, 0.01))
    assert 1.7 < np.mean(thin / thick) < 2.0


def test_a_lasting_shift_hardly_widens_it() -> None:
    """A centered variance over the same blocks would be wider by half again."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 0.03, (288, 200))
    shifted = noise + np.where(np.arange(288) < 144, 0.0, 0.06)[:, None]
    ih = np.full(200, 0.0025)
    ratio = np.mean(scale.sd(fed(shifted, ih=0.0025), ih)) / np.mean(scale.sd(fed(noise, ih=0.0025), ih))
    assert ratio < 1.2
    assert np.mean(shifted.std(axis=0)) / 0.03 > 1.4


def test_neighbors_that_are_alike_inflate_it() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 1, (288, 200))
    alike = np.zeros_like(noise)
    for t in range(1, 288):
        alike[t] = 0.5 * alike[t - 1] + noise[t]
    assert np.mean(scale.inflation(fed(alike))) > 1.8
    assert np.median(scale.inflation(fed(noise))) < 1.3


def test_there_is_no_scale_during_burn_in_nor_where_nothing_moves() -> None:
    rng = np.random.default_rng(5)
    ih = np.full(3, 0.01)
    noise = rng.normal(0, 0.03, (4 * LAGS, 3))
    assert np.isnan(scale.sd(fed(noise[:-1]), ih)).all()
    assert np.isfinite(scale.sd(fed(noise), ih)).all()
    assert np.isnan(scale.sd(fed(np.zeros((60, 3)), b=0.0), ih)).all()


def test_a_block_never_sets_its_own_scale_and_one_without_data_changes_nothing() -> None:
    rng = np.random.default_rng(6)
    state = fed(rng.normal(0, 0.03, (60, 3)))
    assert same(fed(np.full((5, 3), np.nan), state=state), state)


def test_a_frozen_stream_learns_nothing_and_moves_its_lags_on() -> None:
    rng = np.random.default_rng(7)
    state = fed(rng.normal(0, 0.03, (60, 2)))
    ih, b, value = np.full(2, 0.01), np.full(2, 0.12), np.array([0.5, 0.5])
    after = scale.update(state, value, ih, b, frozen=np.array([True, False]))
    assert scale.sd(after, ih)[0] == scale.sd(state, ih)[0]
    assert scale.sd(after, ih)[1] > scale.sd(state, ih)[1]
    assert (after.recent[:, 0] == 0.5).all()


def test_a_restart_and_the_order_of_streams_change_nothing() -> None:
    rng = np.random.default_rng(8)
    noise = rng.normal(0, 0.03, (100, 5))
    noise[rng.random((100, 5)) < 0.2] = np.nan
    half = fed(noise[:50])
    stored = State(*(getattr(half, f.name).copy() for f in fields(State)))
    whole = fed(noise)
    assert same(fed(noise[50:], state=stored), whole)
    order = np.array([3, 1, 4, 0, 2])
    assert same(fed(noise[:, order]), State(*(getattr(whole, f.name)[order] for f in fields(State))))


@pytest.mark.parametrize(
    ("block_s", "rotation_s", "count"), [(300, 0, 12), (300, 1800, 12), (600, 1800, 6), (1800, 1800, 4), (300, 3600, 24)]
)
def test_lags_span_an_hour_two_turns_of_control_and_four_blocks(block_s: float, rotation_s: float, count: int) -> None:
    assert scale.lags(block_s, rotation_s) == count


def test_a_stream_that_reaches_less_far_has_the_scale_of_one_that_was_made_so() -> None:
    rng = np.random.default_rng(7)
    short, long = State.start(3, 4), State.start(3, 12)
    long = replace(long, reach=np.full(3, 4))
    for _ in range(60):
        difference, ones = rng.normal(0, 0.1, 3), np.ones(3)
        short, long = (scale.update(state, difference, ones / 100, ones * 0.2) for state in (short, long))
    known = np.array([0.01] * 3)
    np.testing.assert_allclose(scale.sd(long, known), scale.sd(short, known), rtol=1e-12)
    np.testing.assert_allclose(scale.inflation(long), scale.inflation(short), rtol=1e-12)
    assert np.isfinite(scale.sd(long, known)).all()
