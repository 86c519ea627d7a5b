"""Runs of equal neighbors: nothing that is stated is lost, and equal rows become one with the earliest start."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from collectors.lever_runs import runs
from collectors.rows import TEXT_MAP

A, B = [("speculation", "on"), ("pool_ratio", "1")], [("speculation", "off"), ("pool_ratio", "1")]


def spans(*rows: tuple[Any, ...]) -> pa.Table:
    replicas, levers, arms, starts = zip(*rows, strict=True)
    instants = pa.array(starts, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"replica": replicas, "levers": pa.array(levers, TEXT_MAP), "arms": pa.array(arms, TEXT_MAP), "started_at": instants})


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("r", A, None, 5), ("r", A, None, 3), ("r", A, None, 4)], [("r", A, 3)]),
        ([("r", A, None, 5), ("r", B, None, 3), ("r", A, None, 4)], [("r", A, 5), ("r", B, 3), ("r", A, 4)]),
        ([("r", A, None, 5), ("s", A, None, 3)], [("r", A, 5), ("s", A, 3)]),
        ([("r", A, B, 5), ("r", A, B, 4), ("r", A, A, 3)], [("r", A, 4), ("r", A, 3)]),
        ([("r", A, None, 5), ("r", A[:1], None, 3)], [("r", A, 5), ("r", A[:1], 3)]),
        ([("r", None, None, 5), ("r", A, None, 3)], [("r", None, 5), ("r", A, 3)]),
        ([("r", A, None, 5)], [("r", A, 5)]),
        ([("r", None, None, 5)], []),
    ],
)
def test_neighbors_that_state_the_same_are_one_row(rows: list[Any], expected: list[Any]) -> None:
    for table in (spans(*rows), spans(("x", B, None, 1), *rows).slice(1)):
        found = runs(table).to_pylist()
        assert [(row["replica"], row["levers"], row["started_at"].microsecond) for row in found] == expected
