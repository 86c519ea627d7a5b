"""Days of known truth: how often we alarm for nothing, how soon for something, and what the usual tests would have done.

60 days a scenario, fixed seeds. At a true rate of 5 % more than 7 of 60 days alarm falsely with a probability of 1 %. The figures of 500
days, and how the days are made, stand in docs/statistics.md.
"""

from __future__ import annotations

import inference_naive as naive
import numpy as np
import numpy.typing as npt
import pytest
from inference_days import SCENARIOS, days, harmed, on_end
from inference_watch import blocks, delays, since_start, watch

from pipeline.inference import detector, scale

Reals = npt.NDArray[np.float64]
SEEDS = range(7_000, 7_060)
MOST_FALSE = 7  # of 60 days
CHANGED_AT = 600  # minutes


@pytest.fixture(scope="module")
def plain() -> Reals:
    """60 days of the base scenario, without effect."""
    return days(SCENARIOS["N1 base"], SEEDS)


def test_the_base_fleet_alarms_falsely_in_at_most_seven_of_sixty_days(plain: Reals) -> None:
    assert max(watch(plain, 5).at_all()) <= MOST_FALSE / 60


@pytest.mark.parametrize(("name", "block_min"), [("N2 rotating", 5), ("N3 heavy tail", 10)])
def test_rotating_control_and_heavy_tails_alarm_falsely_as_rarely(name: str, block_min: int) -> None:
    assert max(watch(days(SCENARIOS[name], SEEDS), block_min).at_all()) <= MOST_FALSE / 60


def test_the_interval_since_the_start_misses_in_at_most_seven_of_sixty_days(plain: Reals) -> None:
    found = since_start(plain, 5, asymptotic=False, long_run=True)
    assert np.mean(np.isfinite(np.minimum(found.harm, found.benefit))) <= MOST_FALSE / 60


@pytest.mark.parametrize(("relative", "median_min", "most_min"), [(0.05, 145, 335), (0.10, 55, 135), (0.20, 25, 50)])
def test_a_slower_lever_is_found_in_time(plain: Reals, relative: float, median_min: float, most_min: float) -> None:
    """Within half again of what 300 days gave."""
    found = delays(watch(harmed(plain, relative, CHANGED_AT), 5).harm, CHANGED_AT)
    assert len(found) >= 60 - MOST_FALSE
    assert np.quantile(found, 0.5) <= 1.5 * median_min
    assert np.quantile(found, 0.9) <= 1.5 * most_min


def test_fifteen_good_hours_hide_no_harm_from_the_detector_and_all_of_it_from_an_average(plain: Reals) -> None:
    turned = harmed(harmed(plain, -0.20, 0, 900), 0.10, 900)
    found = delays(watch(turned, 5).harm, 900)
    assert np.quantile(found, 0.5) <= 180
    assert np.quantile(found, 0.9) <= 360
    for asymptotic in (True, False):
        assert not np.isfinite(since_start(turned, 5, asymptotic=asymptotic).harm).any()


def test_a_lever_that_paid_for_four_days_is_found_harmful_as_soon(plain: Reals) -> None:
    """Its scale goes on learning while it pays, and does not learn the change before it is found."""
    turned = harmed(harmed(on_end(plain, 5), -0.20, 0, 6000), 0.10, 6000)
    found = delays(watch(turned, 5).harm, 6000)
    assert len(found) == 12
    assert np.quantile(found, 0.9) <= 180


@pytest.mark.parametrize("unit", ["request", "cluster"])
@pytest.mark.parametrize("window_min", [5, 15, 60])
def test_the_usual_test_looked_at_each_minute_alarms_on_nearly_every_day(plain: Reals, unit: naive.Unit, window_min: int) -> None:
    assert naive.per_day(naive.significant(plain, window_min, unit)) > 0.95


def test_blocks_too_short_for_slow_replicas_are_alike_and_half_an_hour_is_not() -> None:
    slow = days(SCENARIOS["N7 slow replicas"], SEEDS)
    assert _neighbors(slow, 5) > 0.3 > _neighbors(slow, 30)
    assert max(watch(slow, 30).at_all()) <= MOST_FALSE / 60


def test_a_restart_in_the_middle_and_any_order_of_days_give_the_same_evidence(plain: Reals) -> None:
    whole = _evidence(plain[:8], restart_at=None)
    assert np.array_equal(_evidence(plain[:8], restart_at=150), whole)
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4])
    assert np.array_equal(_evidence(plain[:8][order], restart_at=None), whole[order])


def _evidence(chosen: Reals, restart_at: int | None) -> Reals:
    """The state of the detector at the end of the day; at a restart all state goes through bytes."""
    state, log_m = scale.State.start(len(chosen), 12), detector.start(len(chosen))
    for number, block in enumerate(blocks(chosen, 5)):
        if number == restart_at:
            state = scale.State(*(_stored(getattr(state, name)) for name in scale.State.__slots__))
            log_m = _stored(log_m)
        log_m = detector.step(log_m, block.difference / scale.sd(state, block.ih))
        state = scale.update(state, block.difference, block.ih, block.b, detector.freezes(log_m, 5760.0))
    return log_m


def _stored(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def _neighbors(chosen: Reals, block_min: int) -> float:
    """The median correlation of a block's contrast with the next one's."""
    found = np.array([block.difference for block in blocks(chosen, block_min)])[1:]
    centered = found - found.mean(axis=0)
    return float(np.median((centered[1:] * centered[:-1]).sum(axis=0) / (centered**2).sum(axis=0)))
