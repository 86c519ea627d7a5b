"""Which traces of an hour are read together: those that state the same id, and no others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import hour_links


def links(pairs: list[tuple[int, int]]) -> pl.DataFrame:
    return pl.DataFrame(pairs, {"trace": pl.UInt64, "key": pl.UInt64}, orient="row")


def part(trace: int, pairs: list[tuple[int, int]], parts: int) -> int:
    return int(hour_links.parts_of(np.array([trace], np.uint64), hour_links.moved(links(pairs), parts), parts)[0])


def test_a_trace_that_no_other_is_linked_with_is_of_the_part_that_its_hash_names() -> None:
    pairs = [(7, 100), (8, 200)]
    assert hour_links.moved(links(pairs), 4).num_rows == 0
    assert [part(trace, pairs, 4) for trace in (7, 8, 9)] == [3, 0, 1]


def test_traces_that_state_one_id_are_of_one_part_also_over_a_third() -> None:
    pairs = [(5, 100), (6, 100), (6, 200), (11, 200), (12, 300)]
    assert len({part(trace, pairs, 4) for trace in (5, 6, 11)}) == 1
    assert part(12, pairs, 4) == 0


def test_a_hash_beyond_the_largest_signed_number_finds_its_part() -> None:
    pairs = [(2**64 - 1, 100), (3, 100)]
    assert part(2**64 - 1, pairs, 8) == part(3, pairs, 8)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=30), st.integers(1, 5))
def test_two_traces_with_an_id_in_common_are_never_read_apart(pairs: list[tuple[int, int]], parts: int) -> None:
    moved = hour_links.moved(links(pairs), parts)
    found = {trace: int(hour_links.parts_of(np.array([trace], np.uint64), moved, parts)[0]) for trace, _ in pairs}
    for trace, key in pairs:
        assert all(found[other] == found[trace] for other, same in pairs if same == key)
        assert 0 <= found[trace] < parts


@pytest.mark.parametrize("role", ["engine", "gateway"])
def test_ids_that_a_head_states_link_it_and_those_of_spans_below_do_not(role: str) -> None:
    signals = [{"request_id": "r1", "join_key": "k1"}, {"request_id": "r1", "join_key": None}, {"request_id": "r3", "join_key": "k3"}]
    spans = pl.DataFrame({
        "trace_id": ["a", "b", "c"], "role": [role, role, "phase"], "joins_by_request_id": [False, True, True], "signals": signals,
    })  # fmt: skip
    found = hour_links._links(spans)
    keys = pl.Series(["k1", "r1"]).hash()
    traces = pl.Series(["a", "b"]).hash()
    assert set(found.iter_rows()) == {(traces[0], keys[0]), (traces[0], keys[1]), (traces[1], keys[1])}
