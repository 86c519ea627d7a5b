"""A tail is judged by exceedances of control's earlier percentile: honest under load that comes and goes, quick where a mean is slow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from inference_days import SCENARIOS
from inference_tails import first_alarms as first_minutes
from inference_tails import stalling, tail_days

from pipeline.inference import detector, exceedance, histogram, scale

DAY, STREAMS, BINS, FIRST = 288, 60, 260, 40
LEAST_M = detector.threshold(DAY, 0.05)


def binned(rng: np.random.Generator, a_stream: int, level: np.ndarray, stalled: float = 0.0) -> np.ndarray:
    """Histograms of ITL about 25 ms in one block, of streams whose level is given; a share of the requests waits three times as long."""
    logs = np.log(0.025 / 0.002) + rng.normal(0, 0.35, (STREAMS, a_stream)) + level[:, None]
    logs += np.log(3) * (rng.random(logs.shape) < stalled)
    numbers = np.floor(logs / np.log(1.02)).astype(np.int64)
    streams = np.repeat(np.arange(STREAMS), a_stream)
    return histogram.dense(streams, numbers.ravel(), np.ones(numbers.size), STREAMS, FIRST, BINS)


@dataclass
class Noise:
    """What requests of a block have in common: the load of all, AR over blocks, and the replicas of each arm."""

    rng: np.random.Generator
    common: np.ndarray

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        self.common = 0.9 * self.common + self.rng.normal(0, 0.1 * np.sqrt(1 - 0.81), STREAMS)
        return self.common + self.rng.normal(0, 0.005, STREAMS), self.common + self.rng.normal(0, 0.02, STREAMS)


def first_alarms(share: float, *, shift: float = 0.0, stalled: float = 0.0, since: int = 0, seed: int = 1, blocks: int = DAY) -> np.ndarray:
    """The block of each stream's first alarm, `blocks` if none, with an effect on treated from block `since` on."""
    rng = np.random.default_rng(seed)
    noise = Noise(rng, rng.normal(0, 0.1, STREAMS))
    earlier: list[np.ndarray] = []
    state, log_m = scale.State.start(STREAMS, 12), detector.start(STREAMS)
    found = np.full(STREAMS, blocks)
    for number in range(blocks):
        level_treated, level_control = noise.next()
        on = number >= since
        treated = binned(rng, 800, level_treated + shift * on, stalled * on)
        control = binned(rng, 200, level_control)
        if earlier:
            place = exceedance.threshold(np.sum(earlier[-12:], axis=0), share)
            told = exceedance.block(treated, control, place, share)
            log_m = detector.step(log_m, told.difference / scale.sd(state, told.ih))
            state = scale.update(state, told.difference, told.ih, told.b, detector.freezes(log_m, LEAST_M))
            found = np.where((found == blocks) & detector.alarms(log_m, LEAST_M), number, found)
        earlier.append(control)
    return found


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_without_an_effect_at_most_five_percent_of_days_alarm(share: float) -> None:
    """Of 60 days at most 7: more than that has a probability of 1 % at a rate of 5 %."""
    assert (first_alarms(share) < DAY).sum() <= 7


def test_a_shift_of_a_fifth_is_found_in_the_median_and_in_the_tail() -> None:
    for share in (0.5, 0.95):
        found = first_alarms(share, shift=np.log(1.2), since=60, seed=2, blocks=84)
        assert (found >= 60).mean() > 0.95
        assert np.median(found) - 60 <= 10


def test_stalls_of_one_request_in_twenty_show_in_the_tail_and_hardly_in_the_median() -> None:
    tail = first_alarms(0.95, stalled=0.05, since=60, seed=3, blocks=84)
    middle = first_alarms(0.5, stalled=0.05, since=60, seed=3, blocks=84)
    assert np.median(tail) - 60 <= 16
    assert (tail < 84).mean() > (middle < 84).mean() + 0.3


def test_under_a_day_of_load_with_five_percent_control_the_p95_answers_and_the_p99_says_nothing() -> None:
    """Blocks are gathered to 200 control requests for p95; 1,000 for p99 leave no scale within the day."""
    stalled = stalling(tail_days(SCENARIOS["N1 base"], range(9_000, 9_010)), 0.05, since_block=120)
    assert np.median(first_minutes(stalled, 0.95)) - 600 <= 100
    assert np.isinf(first_minutes(stalled, 0.99)).sum() >= 8


COUNTS = np.array([[0.0, 50.0, 30.0, 15.0, 5.0]])


@pytest.mark.parametrize(("share", "place"), [(0.5, 1), (0.51, 2), (0.8, 2), (0.95, 3), (0.96, 4), (1.0, 4)])
def test_a_percentile_is_the_bin_in_which_it_is_reached(share: float, place: int) -> None:
    assert histogram.place(COUNTS, share).tolist() == [place]


def test_failed_requests_lie_above_every_bin() -> None:
    assert histogram.place(COUNTS, 0.9, failed=np.array([20.0])).tolist() == [4]
    assert histogram.above(COUNTS, np.array([4]), failed=np.array([20.0])).tolist() == [20.0]
    assert histogram.place(np.zeros((1, 5)), 0.5).tolist() == [-1]


def test_an_arm_that_fails_does_not_look_fast() -> None:
    """Half of treated's requests time out, and the others are as fast as control's."""
    control = np.array([[0.0, 500.0, 300.0, 150.0, 50.0]])
    told = exceedance.block(control / 2, control, np.array([3]), 0.95, failed=(np.array([500.0]), np.array([0.0])))
    assert told.difference[0] == pytest.approx((0.525 - 0.05) / 0.05)


def test_too_few_control_requests_above_the_threshold_say_nothing() -> None:
    thin = COUNTS * 1.9
    assert np.isnan(exceedance.block(COUNTS * 10, thin, np.array([3]), 0.95).difference).all()
    assert np.isfinite(exceedance.block(COUNTS * 10, COUNTS * 2, np.array([3]), 0.95).difference).all()
    assert exceedance.threshold(thin, 0.95).tolist() == [-1]
    assert exceedance.threshold(COUNTS * 2, 0.95).tolist() == [3]


def test_rows_of_a_cell_become_a_histogram_and_outliers_stay_in_it() -> None:
    """Bin -1000 holds zeros."""
    stream, number = np.array([0, 0, 1, 1]), np.array([-1000, 41, 41, 2000])
    counts = histogram.dense(stream, number, np.array([2.0, 3.0, 4.0, 5.0]), 2, 40, 3)
    assert counts.tolist() == [[2.0, 3.0, 0.0], [0.0, 4.0, 5.0]]
