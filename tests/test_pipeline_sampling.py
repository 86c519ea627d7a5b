"""Spans that a sampler took away are noticed by the counters, and totals are multiplied, or not given, and say so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from collectors import dialects
from pipeline.sampling import WINDOW_S, sample_next, sampled, scaled
from queries.store import Store

BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def judged(spans: int, counted: int) -> dict[str, Any]:
    frame = pl.DataFrame({"replica": ["r"], "window_started_at": [BEGAN], "spans": [spans], "counted": [counted]})
    found: dict[str, Any] = sampled(frame).row(0, named=True)
    return found


@pytest.mark.parametrize(
    ("spans", "counted", "state", "weight"),
    [
        (1000, 1000, "whole", 1.0),
        (990, 1000, "whole", 1.0),
        (3, 5, "whole", 1.0),
        (100, 1000, "sampled", 10.0),
        (500, 1000, "sampled", 2.0),
        (29, 1000, "few", None),
        (0, 1000, "few", None),
        (1200, 1000, "excess", None),
    ],
)
def test_a_share_below_one_is_sampled_unless_the_windows_edges_explain_it(
    spans: int, counted: int, state: str, weight: float | None
) -> None:
    found = judged(spans, counted)
    assert (found["state"], found["weight"], found["basis"]) == (state, weight, "counter")
    assert found["fraction"] == pytest.approx(min(1.0, spans / counted))


def test_a_window_in_which_nothing_finished_says_nothing() -> None:
    frame = pl.DataFrame({"replica": ["r"], "window_started_at": [BEGAN], "spans": [0], "counted": [0]})
    assert sampled(frame).is_empty()


def test_totals_are_multiplied_or_refused_and_marked() -> None:
    replicas = {"whole": (100, 100), "tenth": (100, 1000), "few": (5, 1000), "more": (900, 100)}
    windows = [
        {"replica": name, "window_started_at": BEGAN, "spans": spans, "counted": counted} for name, (spans, counted) in replicas.items()
    ]
    totals = pl.DataFrame({"replica": [*replicas, "unknown"], "window_started_at": BEGAN, "output_tokens": [50] * 5})
    found = scaled(totals, sampled(pl.DataFrame(windows)), ["output_tokens"])
    assert {row["replica"]: (row["output_tokens"], row["totals_are"]) for row in found.to_dicts()} == {
        "whole": (50.0, "whole"),
        "tenth": (500.0, "scaled"),
        "few": (None, "refused"),
        "more": (50.0, "unchecked"),
        "unknown": (50.0, "unchecked"),
    }


def put_counter(store: Store, values: list[tuple[float, float]], replica: str = "r", **labels: str) -> None:
    """Readings of a counter, as (seconds after the beginning, value)."""
    rows = pl.DataFrame(
        {
            "observed_at": [BEGAN + timedelta(seconds=at_s) for at_s, _ in values],
            "value": [value for _, value in values],
            "replica": replica, "name": "vllm:request_success_total", "kind": "counter", "signal": "requests_total", "engine": "vllm",
            "sender": "s", "received_at": BEGAN, "label": next(iter(labels.values()), "stop"),
        }
    )  # fmt: skip
    columns = "observed_at, value, replica, name, kind, signal, engine, sender, received_at"
    with store.write() as transaction:
        transaction.using(
            rows, f"insert into samples_hot by name select {columns}, map {{'finished_reason': label}} as labels from incoming"
        )


def put_spans(store: Store, count: int, replica: str = "r", every_s: float = 1.0) -> None:
    rows = pl.DataFrame({"number": range(count), "ended_at": [BEGAN + timedelta(seconds=number * every_s) for number in range(count)]})
    columns = (
        "lpad(number::varchar, 32, '0') as trace_id, lpad(number::varchar, 16, '0') as span_id, 'llm_request' as name, 'server' as kind, "
        f"ended_at - interval 1 second as started_at, ended_at, 0 as start_unix_nano, 1.0 as duration_s, 'unset' as status, '{replica}' as "
        "replica, 's' as sender, 'vllm' as dialect, 'engine' as role, map {} as resource, map {} as attributes, [] as events, [] as links, "
        "ended_at as received_at"
    )
    with store.write() as transaction:
        transaction.using(rows, f"insert into spans_hot by name select {columns} from incoming")


def rows(store: Store) -> list[tuple[str, int, int, str]]:
    found = store.rows("select * from sampling order by window_started_at, replica")
    return [(row["replica"], row["spans"], row["counted"], row["state"]) for row in found]


def test_spans_are_held_against_what_the_replicas_own_counter_grew_by(store: Store) -> None:
    readings = [(at_s, 1000.0 + 10 * at_s) for at_s in range(0, 600, 15)]
    put_counter(store, readings)
    put_counter(store, [(at_s, 10.0 + at_s) for at_s in range(0, 600, 15)], replica="other")
    put_spans(store, 600)
    assert sample_next(store, BEGAN + timedelta(seconds=2 * WINDOW_S + 200)) == 4
    assert rows(store) == [("other", 0, 285, "few"), ("r", 285, 2850, "sampled")] * 2
    assert sample_next(store, BEGAN + timedelta(seconds=2 * WINDOW_S + 201)) == 0


def test_a_counter_that_was_set_back_and_a_series_that_appears_later_count_from_nothing(store: Store) -> None:
    put_counter(store, [(0, 500.0), (60, 520.0), (120, 7.0), (240, 17.0)])
    put_counter(store, [(60, 3.0), (240, 5.0)], reason="length")
    put_spans(store, 43, every_s=5.0)
    sample_next(store, BEGAN + timedelta(seconds=2 * WINDOW_S))
    assert rows(store) == [("r", 42, 42, "whole")]


def test_without_a_counter_nothing_is_known_and_nothing_is_written(store: Store) -> None:
    put_spans(store, 10)
    assert sample_next(store, BEGAN + timedelta(hours=1)) == 0
    assert rows(store) == []


@pytest.mark.parametrize("dialect", dialects.shipped(), ids=lambda dialect: dialect.dialect)
def test_a_dialect_says_which_share_of_requests_it_sends(dialect: Any) -> None:
    assert len(dialect.sampling) >= len("no spans")
