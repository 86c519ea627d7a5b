"""The load over a day, its bursts, and the knobs that a scenario turns."""

from __future__ import annotations

import pytest

from demo.scenarios.layout import Change, Day
from demo.traffic.days import burst, load, turned


def test_the_load_swings_around_one_and_is_highest_at_its_hour() -> None:
    day = Day(swing=0.4, peak_hour=6)
    hours = [hour / 4 for hour in range(96)]
    loads = [load(day, hour) for hour in hours]
    assert hours[loads.index(max(loads))] == 6
    assert (min(loads), max(loads)) == (pytest.approx(0.6), pytest.approx(1.4))
    assert sum(loads) / len(loads) == pytest.approx(1)
    assert load(day, 30) == pytest.approx(load(day, 6))
    assert load(Day(), 3) == 1


def test_bursts_come_as_often_as_stated_and_multiply_what_comes_while_they_last() -> None:
    day = Day(burst_every_hours=2, burst_factor=4, burst_minutes=2.5)
    found = [burst(day, "chat", block, 1) for block in range(24_000)]  # 2,000 hours
    assert set(found) == {1.0, 1 + 3 * 0.5}
    assert sum(factor > 1 for factor in found) == pytest.approx(1000, rel=0.1)
    assert found[:300] == [burst(day, "chat", block, 1) for block in range(300)]
    assert found[:2000] != [burst(day, "code", block, 1) for block in range(2000)]
    assert found[:2000] != [burst(day, "chat", block, 2) for block in range(2000)]
    assert burst(Day(), "chat", 5, 1) == 1


def test_a_knob_is_turned_from_its_hour_on_for_what_it_is_of_and_all_at_once_or_evenly_over_hours() -> None:
    changes = (
        Change(knob="requests_per_s", of="chat", from_hour=2, factor=4, over_hours=2),
        Change(knob="requests_per_s", of="chat", from_hour=8, factor=0.5),
    )
    assert [turned(changes, "chat", "requests_per_s", hour) for hour in (0, 2, 3, 4, 7.9, 8, 100)] == pytest.approx([1, 1, 2, 4, 4, 2, 2])
    assert turned(changes, "code", "requests_per_s", 9) == 1
    assert turned(changes, "chat", "turns", 9) == 1
