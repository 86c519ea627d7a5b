"""A block is as long as control's requests and the likeness of neighbors ask for, and no value of the metric chooses it."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import block_length
from pipeline.inference.block_length import Open

DAY = 288


def autoregressive(rng: np.random.Generator, phi: float, sd: float, streams: int, minutes: int) -> np.ndarray:
    noise = rng.normal(0, sd * np.sqrt(1 - phi * phi), (streams, minutes))
    for minute in range(1, minutes):
        noise[:, minute] += phi * noise[:, minute - 1]
    return noise


def arm(rng: np.random.Generator, replicas: int, phi: float, sd: float, streams: int = 60, a_minute: float = 12.0) -> np.ndarray:
    """Sums of TPOT and requests in 5-minute blocks of one day, of an arm whose replicas are slow or fast for a while."""
    n = rng.poisson(a_minute * replicas, (streams, 5 * DAY))
    level = np.exp(autoregressive(rng, phi, sd / np.sqrt(replicas), streams, 5 * DAY))
    total = 0.025 * (level * n + 0.5 * np.sqrt(n) * rng.normal(size=n.shape))
    return np.stack([total, n], axis=2).reshape(streams, DAY, 5, 2).sum(axis=2)


def chosen(phi: float, sd: float, seed: int = 5, a_minute: float = 12.0) -> block_length.Choice:
    rng = np.random.default_rng(seed)
    control = arm(rng, 2, phi, sd, a_minute=a_minute)
    return block_length.choose(arm(rng, 38, phi, sd), control, control[:, :, 1])


def test_quick_noise_and_enough_requests_leave_five_minutes() -> None:
    assert (chosen(0.7, 0.05).multiple == 1).mean() > 0.95


def test_replicas_that_stay_slow_for_a_while_ask_for_twenty_minutes_or_more() -> None:
    """Scenario N7: AR(0.95 a minute) of 8 %."""
    found = chosen(0.95, 0.08)
    assert (found.multiple >= 4).mean() > 0.75
    assert (found.multiple == 1).mean() < 0.1


def test_few_control_requests_ask_for_longer_blocks() -> None:
    assert (chosen(0.7, 0.05, a_minute=2.0).multiple >= 6).all()


def test_a_length_that_nothing_holds_at_is_said_to_be_unsettled() -> None:
    found = chosen(0.7, 0.05, a_minute=0.2)
    assert not found.is_settled.any()
    assert (found.multiple == 12).all()


def test_a_lasting_effect_does_not_pass_for_correlation() -> None:
    contrasts = np.random.default_rng(2).normal(0, 0.05, (200, DAY))
    calm = block_length.lag_one(contrasts)
    contrasts[:, DAY // 2 :] += 0.10
    assert abs(calm.mean()) < 0.02
    assert block_length.lag_one(contrasts).mean() < 0.1


def test_too_few_blocks_tell_no_correlation() -> None:
    assert np.isnan(block_length.lag_one(np.random.default_rng(1).normal(size=(3, 23)))).all()


@pytest.mark.parametrize(("share", "needed"), [(None, 100), (0.5, 100), (0.95, 200), (0.99, 1000)])
def test_a_tail_needs_more_control_requests_than_a_mean(share: float | None, needed: float) -> None:
    assert block_length.control_needed(share) == pytest.approx(needed)


def closings(counts: list[int], multiple: int = 1) -> tuple[list[int], list[float]]:
    """The places where one stream closed a block, and the sums it then had."""
    held, places, sums = Open.start(1, 1), [], []
    for place, count in enumerate(counts):
        held, closed = block_length.add(held, np.array([[float(count)]]), np.array([float(count)]), multiple)
        if closed.is_closed[0]:
            places.append(place)
            sums.append(float(closed.sums[0, 0]))
    return places, sums


def test_neighbors_are_merged_until_control_has_a_hundred_requests() -> None:
    assert closings([40, 40, 40, 100, 0, 99, 1]) == ([2, 3, 6], [120.0, 100.0, 100.0])


def test_a_chosen_length_is_kept_where_requests_abound() -> None:
    assert closings([500] * 7, multiple=3) == ([2, 5], [1500.0, 1500.0])


def test_a_stream_that_hardly_anyone_asks_for_is_closed_after_six_hours() -> None:
    assert closings([0] * 71 + [3] + [0] * 5) == ([71], [3.0])


def test_streams_close_on_their_own() -> None:
    held, closed = block_length.add(Open.start(2, 2), np.ones((2, 2)), np.array([100.0, 10.0]))
    assert closed.is_closed.tolist() == [True, False]
    assert np.isnan(closed.sums[1]).all()
    assert held.control_n.tolist() == [0.0, 10.0]
    assert held.blocks.tolist() == [0, 1]


def test_blocks_that_few_requests_have_made_long_are_not_lengthened_by_chance() -> None:
    """A day of half hours tells a correlation to 0.14: one of 0.35 between them is none."""
    found = chosen(0.7, 0.05, a_minute=2.0)
    assert (found.by_requests >= 6).all()
    assert (found.multiple == found.by_requests).mean() > 0.9
    assert not found.is_alike.any()
