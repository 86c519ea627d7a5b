"""A day of contrasts against its scale: noise that the scale knows is let pass, noise that it does not know is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pipeline.inference import scale
from pipeline.inference.checking import LEAST_CONTRASTS, Checks, step

Reals = npt.NDArray[np.float64]
LAGS, DAY = 12, 288


def checked(differences: Reals, sd: float = 1.0, doubtful: Reals | None = None, blocks_a_day: float = DAY) -> Checks:
    """The checks after these contrasts (blocks, streams), held against a scale that says `sd`."""
    streams = differences.shape[1]
    state, checks = scale.State.start(streams, LAGS), Checks.start(streams)
    for number, block in enumerate(differences):
        rises = np.zeros(streams, np.bool_) if doubtful is None else doubtful[number] > 0
        checks = step(checks, state, block, np.full(streams, sd), rises, np.full(streams, blocks_a_day))
        state = replace(state, recent=scale.pushed(state, block, np.isfinite(block)), seen=state.seen + 1)
    return checks


def wandering(rng: np.random.Generator, rho: float, blocks: int, streams: int) -> Reals:
    """Contrasts of deviation 1 whose neighbors correlate by `rho`."""
    told, now = np.zeros((blocks, streams)), rng.normal(size=streams)
    for number in range(blocks):
        now = rho * now + np.sqrt(1 - rho**2) * rng.normal(size=streams)
        told[number] = now
    return told


def test_noise_of_the_scale_s_own_size_is_calibrated_in_nearly_every_stream() -> None:
    checks = checked(np.random.default_rng(1).normal(size=(DAY + 2 * LAGS, 200)))
    assert np.isfinite(checks.spread).all()
    assert checks.is_off().mean() <= 0.01
    np.testing.assert_allclose(np.median(checks.spread), 1.0, atol=0.03)
    np.testing.assert_allclose(np.median(checks.neighbors), 0.0, atol=0.03)


def test_noise_half_as_large_again_as_the_scale_says_is_not() -> None:
    checks = checked(np.random.default_rng(2).normal(0, 1.5, (DAY + 2 * LAGS, 200)))
    assert checks.is_off().mean() > 0.98
    assert not checks.is_alike().any()


def test_neighbors_that_are_alike_are_told_from_noise() -> None:
    checks = checked(wandering(np.random.default_rng(3), 0.5, DAY + 2 * LAGS, 200))
    assert checks.is_alike().mean() > 0.95
    assert checked(wandering(np.random.default_rng(3), 0.1, DAY + 2 * LAGS, 200)).is_alike().mean() < 0.02


def test_an_effect_that_comes_and_goes_with_the_hours_is_no_fault_of_the_scale() -> None:
    blocks = DAY + 2 * LAGS
    daily = 3.0 * np.sin(2 * np.pi * np.arange(blocks) / DAY)[:, None]
    checks = checked(np.random.default_rng(4).normal(size=(blocks, 200)) - 4 + daily)
    assert checks.is_off().mean() <= 0.02


def test_nothing_is_said_before_a_whole_day_and_a_hundred_contrasts() -> None:
    noise = np.random.default_rng(5).normal(0, 3, (DAY + LAGS - 1, 2))
    assert not checked(noise).is_off().any()
    assert np.isnan(checked(noise).spread).all()
    few = checked(noise[: LEAST_CONTRASTS + LAGS - 1], blocks_a_day=24)
    assert np.isnan(few.spread).all()
    assert checked(noise[: LEAST_CONTRASTS + LAGS], blocks_a_day=24).is_off().all()


def test_contrasts_while_evidence_of_harm_is_up_do_not_count() -> None:
    noise, doubtful = np.random.default_rng(6).normal(0, 3, (DAY + LAGS, 2)), np.zeros((DAY + LAGS, 2))
    doubtful[100, 0] = 1
    checks = checked(noise, doubtful=doubtful)
    assert checks.n.tolist() == [DAY - 1, 0]
    assert np.isnan(checks.spread[0])
    assert checks.spread[1] > 1.8


def test_a_lever_that_turns_however_much_is_no_fault_of_the_scale() -> None:
    noise = np.random.default_rng(7).normal(size=(DAY + 2 * LAGS, 200))
    noise[150:] -= 12.0
    assert checked(noise).is_off().mean() <= 0.01
