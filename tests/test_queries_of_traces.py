"""A few traces among many rows are looked for by their ids: other columns are read of those parts alone that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from collectors_bodies import START, body, span

from collectors.ledger import Tallies
from collectors.load_spans import SpanLoader
from collectors.spool_records import Position, Record
from queries import files, fresh_parts, of_traces, ranged, sealing
from queries.store import Store, Transaction

BEGAN = datetime.fromtimestamp(START / 1e9, UTC)
HOUR_MS = 3_600_000
NEAR = (BEGAN - timedelta(hours=1), BEGAN + timedelta(hours=1))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose parts may have two rows; fewer are hot."""
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 2)
    opened = Store(tmp_path)
    sealing.restore(opened)
    yield opened
    opened.close()


def put(store: Store, *numbers: int, **resource: str) -> list[str]:
    """Stores spans, each of a trace of its own that begins so many milliseconds after `BEGAN`; gives the parts that this made."""
    before = sealing.part_files_of(store, "spans")
    loader = SpanLoader(store)
    batch = loader.prepare([Record("traces", "s", START, body(*map(span, numbers), **resource), Position(0, 0))], {})
    with store.write() as transaction:
        loader.store(transaction, batch, Tallies())
    return [path.name for path in sealing.part_files_of(store, "spans") if path not in before]


def trace(number: int) -> str:
    return number.to_bytes(16, "big").hex()


def take(transaction: Transaction, *numbers: int) -> None:
    """Makes traces the working ones; what is new of them is at `BEGAN`."""
    new = {"trace_id": [*map(trace, numbers)], "role": ["engine"] * len(numbers)}
    moments = {name: pa.array([BEGAN] * len(numbers), pa.timestamp("us", "UTC")) for name in ("started_at", "ended_at")}
    transaction.execute("delete from dirty_traces")
    transaction.using(pa.table({**new, **moments}), files.question("load_dirty"))
    transaction.execute(files.question("assemble_take"), {"limit_rows": 10})


def holding(store: Store, *numbers: int) -> list[str]:
    """The parts of the hours around noon that hold these traces."""
    with store.write() as transaction:
        take(transaction, *numbers)
        near = of_traces.parts_of_period(transaction, "spans", *NEAR)
        return of_traces.parts_that_hold(store, transaction, "spans", near)


def test_only_the_parts_that_hold_a_trace_are_named_the_oldest_first(store: Store) -> None:
    first, _, last = put(store, 1, 2), put(store, 3, 4), put(store, 5, 6)
    assert holding(store, 6, 1, 2) == first + last
    assert holding(store, 7) == []


def test_parts_of_several_layouts_are_looked_through(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = put(store, 1, 2)
    monkeypatch.setattr(fresh_parts.part_writer, "packed", lambda rows: rows.drop_columns(["status_message"]))
    parts += put(store, 3, 4)
    assert len({name.split("-")[1] for name in parts}) == 2
    assert holding(store, 1, 4) == sorted(parts)


def test_a_row_of_a_trace_beyond_its_period_is_not_meant(store: Store) -> None:
    put(store, 1, HOUR_MS + 5)
    assert holding(store, HOUR_MS + 5) == []


def test_spans_are_read_back_from_the_hot_rows_and_from_the_parts_that_hold_them(store: Store) -> None:
    put(store, 1, 2)
    put(store, 3)
    put(store, 4, 5)
    with store.write() as transaction:
        take(transaction, 2, 3)
        ranged.view_of_traces(store, transaction, "spans", *NEAR)
        found = transaction.frame(files.question("assemble_spans"))
        held = transaction.frame("select trace_id from near_spans")
    assert sorted(found["trace_id"].to_list()) == [trace(2), trace(3)]
    assert sorted(held["trace_id"].to_list()) == [trace(1), trace(2), trace(3)]


@pytest.mark.parametrize("question", ["assemble_spans", "assemble_forget", "assemble_forget_quarantine"])
def test_no_rows_are_kept_aside_to_look_for_traces(store: Store, question: str) -> None:
    put(store, 1, 2)
    with store.write() as transaction:
        take(transaction, 2)
        ranged.view(store, transaction, "spans", *NEAR)
        plan = transaction.frame(f"explain {files.question(question)}").row(0)[-1].upper()
    assert "JOIN" in plan
    assert "CTE" not in plan
    assert "DELIM" not in plan
