"""What a round is to do: what is broken or was overtaken holds up no more than itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import lake_worlds as worlds
import pyarrow as pa
import pytest
from lake_worlds import HOUR, NOW

from leverwatch import work_plan, work_tasks
from leverwatch.work_pool import Here, Outcome
from leverwatch.working import Working
from pipeline import hour_job
from pipeline.hours import Made
from queries.lake import Lake
from queries.lake_tables import columns

ONE_HOUR = timedelta(hours=1)


def span(name: str, after: timedelta) -> pa.Table:
    """A whole request of an engine, so long after the hour's begin."""
    at = HOUR + after
    row = {
        "trace_id": name, "span_id": name, "role": "engine", "dialect": "vllm", "started_at": at, "ended_at": at, "received_at": at,
        "duration_s": 0.0, "replica": "r", "sender": "s", "signals": {"request_id": name, "model": "m", "output_tokens": 5},
    }  # fmt: skip
    return pa.Table.from_pylist([row], columns("spans"))


def requests(lake: Lake) -> set[str]:
    return set(lake.read("requests", ["trace_id"])["trace_id"].to_pylist())


class Waits(Here):
    """A pool that does something before it runs some tasks."""

    def __init__(self, function: object, first: Callable[[], object]) -> None:
        self._function, self._first = function, first

    def run(self, function: Callable[..., object], tasks: Sequence[tuple[object, ...]]) -> Iterator[Outcome]:
        if function is self._function:
            self._first()
        yield from super().run(function, tasks)


def test_an_hour_that_a_slower_round_put_back_is_made_anew_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one read its hour before a span came, and put it in place after the faster one had made it with the span."""
    lake, has_read, may_put = Lake.open(str(tmp_path / "lake")), threading.Event(), threading.Event()
    lake.append("spans", span("early", timedelta()))
    ticks = (NOW + timedelta(minutes=minute) for minute in range(99))
    one, other = (Working(worlds.work(tmp_path / "lake", tmp_path / name), Here(), lambda: next(ticks)) for name in ("slower", "faster"))
    slower, tables = threading.Thread(target=one.once), hour_job.tables

    def held(made: Made) -> dict[str, pa.Table]:
        if threading.current_thread() is slower:
            has_read.set()
            assert may_put.wait(60)
        return tables(made)

    def let_it_end() -> None:
        assert requests(lake) == {"early", "late"}
        may_put.set()
        slower.join()

    monkeypatch.setattr(hour_job, "tables", held)
    slower.start()
    assert has_read.wait(60)
    lake.append("spans", span("late", timedelta(minutes=1)))
    other.pool = Waits(work_tasks.lever, let_it_end)
    other.once()
    assert requests(lake) == {"early"}
    other.pool = Here()
    other.once()
    assert requests(lake) == {"early", "late"}


def test_a_broken_file_holds_up_its_own_hour_and_no_other_and_is_named(tmp_path: Path) -> None:
    lake, said = Lake.open(str(tmp_path / "lake")), list[str]()
    lake.append("spans", span("broken", timedelta()))
    path = Path(lake.files("spans")[0].uri)
    whole = path.read_bytes()
    path.write_bytes(whole[:200])
    lake.append("spans", span("whole", -2 * ONE_HOUR))
    work = worlds.work(tmp_path / "lake", tmp_path / "kept")
    first = Working(work, Here(), lambda: NOW, said.append).once(is_last=True)
    assert requests(lake) == {"whole"}
    assert str(path) in first.failed[HOUR.isoformat()]
    assert "put it back from a copy" in first.failed[HOUR.isoformat()]
    path.write_bytes(whole)
    assert Working(replace(work, part_spans=1), Here(), lambda: NOW).once(is_last=True).failed == {}
    assert requests(lake) == {"broken", "whole"}


def test_without_a_round_every_hour_is_due(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    lake.append("spans", span("one", timedelta()))
    assert work_plan.plan(lake, work_plan.last(lake), NOW).hours == (HOUR,)
