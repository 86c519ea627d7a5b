"""The jobs' thread: a job that fails holds up no other, says so, and is forgotten once it works again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from alerts.heartbeat import Judging
from leverwatch import worker as worker_module
from leverwatch.worker import Worker


class Spool:
    on_append: Callable[[], None]
    backlog_bytes = 0


class Store:
    def unchanged_rows(self, *_: object) -> list[dict[str, object]]:
        return []


class Room:
    """Two jobs, the first of which fails while it is told to."""

    def __init__(self) -> None:
        self.spool, self.store = Spool(), Store()
        self.is_broken, self.rounds, self.tick = True, 0, threading.Event()

    def steps(self) -> tuple[tuple[str, Callable[[], int]], ...]:
        return (("load", self.load), ("seal", self.seal))

    def load(self) -> int:
        if self.is_broken:
            raise OSError(28, "No space left on device")
        return 0

    def seal(self) -> int:
        self.rounds += 1
        self.tick.set()
        return 0


def test_a_failing_job_is_named_logged_once_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    worker = Worker(room, None, beat_s=0.01)  # type: ignore[arg-type]
    with caplog.at_level(logging.ERROR, "leverwatch"):
        worker.start()
        for _ in range(3):
            assert room.tick.wait(5)
            room.tick.clear()
        assert worker.errors == {"load": "OSError: [Errno 28] No space left on device"}
        room.is_broken = False
        for _ in range(3):
            room.tick.clear()
            assert room.tick.wait(5)
        worker.stop()
    assert worker.errors == {}
    assert [record.getMessage() for record in caplog.records] == ["job load fails and is tried again"]


def test_while_much_waits_what_is_urgent_runs_more_often_than_the_rest() -> None:
    room = Room()
    room.is_broken, room.spool.backlog_bytes = False, 1 << 30
    loads: list[int] = []
    enough = threading.Event()

    def load() -> int:
        loads.append(room.rounds)
        if len(loads) == 50:
            enough.set()
        return 1

    room.load = load  # type: ignore[method-assign]
    worker = Worker(room, None, beat_s=0.01)  # type: ignore[arg-type]
    worker.start()
    assert enough.wait(5)
    worker.stop()
    assert room.rounds < len(loads) / 2


class Couriers:
    """What the worker told."""

    def __init__(self) -> None:
        self.judged: list[datetime] = []
        self.handed, self.noted = threading.Event(), threading.Event()

    def note_judging(self, judging: Judging) -> None:
        self.judged.append(judging.judged_at)
        self.noted.set()

    def hand_over(self, *_: object, **__: object) -> int:
        self.handed.set()
        return 0


def test_judging_is_told_to_have_run_only_where_no_step_of_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 3, 5, tzinfo=UTC)
    monkeypatch.setattr(worker_module.jobs, "watermark", lambda _: now)
    room, couriers = Room(), Couriers()
    room.clock = lambda: now  # type: ignore[attr-defined]
    room.is_caught_up = lambda: True  # type: ignore[attr-defined]
    others = tuple((name, lambda: 0) for name in worker_module.JUDGING - {"load"})
    monkeypatch.setattr(room, "steps", lambda: (("load", room.load), *others))
    worker = Worker(room, couriers, beat_s=0.01)  # type: ignore[arg-type]
    worker.start()
    assert couriers.handed.wait(5)
    assert couriers.judged == [], "a step fails, so nothing that came is judged"
    room.is_broken = False
    couriers.handed.clear()
    assert couriers.handed.wait(5)
    couriers.handed.clear()
    assert couriers.handed.wait(5)
    worker.stop()
    assert set(couriers.judged) == {now}


def test_judging_is_told_to_have_run_where_no_data_has_come_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 3, 5, tzinfo=UTC)
    monkeypatch.setattr(worker_module.jobs, "watermark", lambda _: None)
    room, couriers = Room(), Couriers()
    room.clock = lambda: now  # type: ignore[attr-defined]
    monkeypatch.setattr(room, "steps", lambda: tuple((name, lambda: 0) for name in worker_module.JUDGING))
    worker = Worker(room, couriers, beat_s=0.01)  # type: ignore[arg-type]
    worker.start()
    assert couriers.noted.wait(5)
    worker.stop()
    assert not couriers.handed.is_set(), "of nothing there is nothing to hand over"
