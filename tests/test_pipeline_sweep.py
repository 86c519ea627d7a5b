"""Time split among what runs beside each other, against the same worked out moment by moment."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sweep import swept

INTERVALS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 12)).map(lambda one: (one[0], one[1], one[1] + one[2])),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(INTERVALS)
def test_shares_and_neighbors_are_those_of_a_count_at_every_moment(intervals: list[tuple[int, int, int]]) -> None:
    places, since, until = (np.array(column, np.int64) for column in zip(*intervals, strict=True))
    beside, share_s = swept(places, since, until)
    for row, (place, start, end) in enumerate(intervals):
        running = [sum(p == place and s <= moment < e for p, s, e in intervals) for moment in range(start, end)]
        assert beside[row] == running[0]
        assert abs(share_s[row] * 1e6 - sum(1 / count for count in running)) < 1e-9


@settings(max_examples=50, deadline=None, derandomize=True)
@given(INTERVALS)
def test_shares_of_a_place_add_up_to_the_time_it_was_busy(intervals: list[tuple[int, int, int]]) -> None:
    places, since, until = (np.array(column, np.int64) for column in zip(*intervals, strict=True))
    _, share_s = swept(places, since, until)
    for place in set(places.tolist()):
        busy = {moment for p, start, end in intervals if p == place for moment in range(start, end)}
        assert abs(share_s[places == place].sum() * 1e6 - len(busy)) < 1e-9


def test_nothing_runs_where_there_is_nothing() -> None:
    none = np.array([], np.int64)
    beside, share_s = swept(none, none, none)
    assert len(beside) == len(share_s) == 0
