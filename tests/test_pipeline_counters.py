"""How far a counter counted between two moments, whatever became of its series."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_load_rows import at, rows_counted, series

from pipeline.counters import Counter, counters

OUT = "output_tokens_total"


def counted(*samples: pl.DataFrame) -> list[Counter]:
    return counters(rows_counted(*samples), pl.Series(["q", "r"]))[OUT]


def grown(ways: list[Counter], since: float, until: float) -> float:
    place, start, end = (np.array([one]) for one in (1, round(at(since).timestamp() * 1e6), round(at(until).timestamp() * 1e6)))
    return sum(float(way.grown(way.grid.enclosing(place, start, end))[0]) for way in ways)


def test_between_samples_a_counter_grows_evenly() -> None:
    ways = counted(series(OUT, [(0, 100), (10, 200), (20, 400)]), series(OUT, [(0, 0), (10, 7)], "q"))
    assert grown(ways, 0, 20) == 300
    assert grown(ways, 5, 15) == 150
    assert grown(ways, 10, 20) == 200
    assert grown(ways, 12, 13) == pytest.approx(20)


def test_outside_its_samples_nobody_knows() -> None:
    ways = counted(series(OUT, [(0, 100), (10, 200)]))
    assert math.isnan(grown(ways, -1, 5))
    assert math.isnan(grown(ways, 5, 11))
    assert math.isnan(grown(counted(series(OUT, [(0, 100)])), 0, 0))


def test_a_counter_that_fell_began_anew() -> None:
    assert grown(counted(series(OUT, [(0, 100), (10, 30), (20, 50)])), 0, 20) == 50


def test_across_a_gap_nothing_is_said() -> None:
    ways = counted(series(OUT, [(0, 100), (301, 200), (311, 300)]))
    assert math.isnan(grown(ways, 0, 10))
    assert math.isnan(grown(ways, 290, 305))
    assert grown(ways, 301, 311) == 100


def test_series_of_ranks_add_up_and_one_that_appears_later_began_at_nothing() -> None:
    first = series(OUT, [(0, 100), (10, 200), (20, 300)], labels={"engine": "0"})
    later = series(OUT, [(10, 5), (20, 25)], labels={"engine": "1"})
    assert grown(counted(first, later), 0, 20) == 225


def test_a_series_under_new_labels_goes_on_where_the_old_one_stood() -> None:
    old = series(OUT, [(0, 1000), (10, 1100)], labels={"pod": "a"})
    new = series(OUT, [(20, 1250), (30, 1300)], labels={"pod": "a", "zone": "z"})
    assert grown(counted(old, new), 0, 30) == 300


def test_ranks_that_are_sampled_apart_add_up() -> None:
    one = series(OUT, [(0, 0), (10, 100)], labels={"dp": "0"}, sender="scrape:a")
    other = series(OUT, [(-5, 0), (5, 10), (15, 20)], labels={"dp": "1"}, sender="scrape:b")
    assert grown(counted(one, other), 0, 10) == 110


def test_over_a_change_of_name_nothing_is_said_and_behind_it_all_is() -> None:
    old = series(OUT, [(0, 1000), (10, 1100)], name="vllm:old")
    new = series(OUT, [(20, 5), (30, 25)], name="vllm:new")
    ways = counted(old, new)
    assert grown(ways, 0, 10) == 100
    assert math.isnan(grown(ways, 5, 25))
    assert grown(ways, 20, 30) == 20


def test_a_twin_under_an_older_name_is_not_added() -> None:
    twins = [series(OUT, [(0, 0), (10, 100)], name=f"vllm:{name}") for name in ("new", "old")]
    assert grown(counted(*twins), 0, 10) == 100


def test_a_delta_is_what_was_counted_since_the_sample_before() -> None:
    deltas = series(OUT, [(0, 50), (10, 20), (20, 30)], labels={"leverwatch.temporality": "delta"})
    assert grown(counted(deltas), 0, 20) == 50


def test_counters_that_are_sampled_together_share_their_moments() -> None:
    samples = rows_counted(series(OUT, [(0, 0), (10, 1)]), series("prompt_tokens_total", [(0, 0), (10, 1)]))
    found = counters(samples, pl.Series(["r"]))
    assert found[OUT][0].grid is found["prompt_tokens_total"][0].grid


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(1, 290), st.integers(0, 50)), min_size=1, max_size=12),
    st.floats(0, 2000),
    st.floats(0.001, 2000),
)
def test_any_window_is_what_straight_lines_between_samples_give(steps: list[tuple[int, int]], since: float, length: float) -> None:
    times, totals = (np.cumsum([0, *column]).tolist() for column in zip(*steps, strict=True))
    ways = counted(series(OUT, list(zip(times, totals, strict=True))), series(OUT, [(5, 1), (9, 77)], "q"))
    until = since + length
    if until > times[-1]:
        assert math.isnan(grown(ways, since, until))
    else:
        expected = float(np.interp(until, times, totals) - np.interp(since, times, totals))
        assert grown(ways, since, until) == pytest.approx(expected, abs=1e-3)
