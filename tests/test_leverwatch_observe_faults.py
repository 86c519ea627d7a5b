"""Faults that are really there: each makes the number that an alert rule asks for take the value on which it fires."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import alert_letters
import elsewhere_rooms
import httpx
import pytest
from alert_letters import Hook
from dashboards_rows import NOW
from fastapi import FastAPI

from alerts import deliver, outbox
from alerts.couriers import Couriers
from alerts.receivers import Receiver
from collectors.door import BusyError, Door, reference_check
from collectors.entry import UnsoundBodyError
from collectors.lake_sink import LakeSink, Pace
from dashboards.easel import DrawingError, Easel, EaselLimits
from leverwatch import app, collect_app
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.observe.observer import Observer
from leverwatch.observe.web import Watched
from leverwatch.receiving import Receiving
from leverwatch.refused import Refused
from leverwatch.served_numbers import ServedNumbers
from leverwatch.worker import Worker
from queries.lake_commits import LakeError
from queries.sandbox import SqlError


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    with elsewhere_rooms.opened_empty(tmp_path) as opened:
        yield opened


class Served:
    """A server's parts without its threads, and its numbers."""

    def __init__(self, room: EngineRoom) -> None:
        self.observer = Observer()
        self.couriers = Couriers(room.store, room.config.receivers, room.clock, {}, told=self.observer.tried)
        self.worker = Worker(room, self.couriers, observer=self.observer)
        note, waiting = room.loader.note, room.loader.waiting
        self.door = Door(room.spool, lambda: 1, note, reference_check, waiting=waiting, told=self.observer.handled)
        self.receiving = Receiving.through(self.door, ())
        self.numbers = ServedNumbers(room, self.worker, Refused(), self.receiving)

    def value(self, name: str, /, **labels: str) -> float | None:
        """What `/metrics` has under a name and labels; None where it has none."""
        found = [sample for family in self.numbers.families() for sample in family.samples]
        return next((one.value for one in found if one.name == name and one.labels.items() >= labels.items()), None)

    def round(self, steps: tuple[tuple[str, Any], ...]) -> None:
        """One round of jobs."""
        with self.observer.round() as around:
            for name, step in steps:
                self.worker._run(name, step, around)


def broken() -> int:
    raise OSError(28, "No space left on device")


def test_a_job_that_fails_is_failing_until_it_goes_through(room: EngineRoom) -> None:
    served = Served(room)
    served.round((("load", broken), ("judge", lambda: 3)))
    assert served.value("leverwatch_job_failing", name="load") == 1
    assert served.value("leverwatch_job_failing", name="judge") == 0
    assert served.value("leverwatch_job_last_success_timestamp_seconds", name="load") is None
    assert served.value("leverwatch_job_seconds_count", name="judge") == 1
    served.round((("load", lambda: 0),))
    assert served.value("leverwatch_job_failing", name="load") == 0
    assert served.value("leverwatch_job_failures_total", name="load") == 1
    assert served.value("leverwatch_job_last_success_timestamp_seconds", name="load") is not None


@pytest.mark.parametrize(("limits", "outcome"), [({"_limit_backlog_bytes": 0}, "backlog"), ({"_put": None}, "unwritable")])
def test_a_spool_that_takes_nothing_is_counted_by_its_reason(
    room: EngineRoom, limits: dict[str, Any], outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(room)
    for name, value in limits.items():
        monkeypatch.setattr(room.spool, name, (lambda _: broken()) if value is None else value)
    with pytest.raises(BusyError):
        asyncio.run(served.door.take("scrapes", "s", b"x"))
    assert served.value("leverwatch_exports_total", signal="scrapes", outcome=outcome) == 1


def test_a_full_disk_and_a_body_that_is_none_are_counted_by_their_reasons(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(room)
    monkeypatch.setattr(room.spool.free_space, "limit_free_bytes", 1 << 60)
    with pytest.raises(BusyError):
        asyncio.run(served.door.take("scrapes", "s", b"x"))
    with pytest.raises(UnsoundBodyError):
        asyncio.run(served.door.take("traces", "s", b"\xff"))
    assert served.value("leverwatch_exports_total", outcome="disk") == 1
    assert served.value("leverwatch_exports_total", signal="traces", outcome="unsound") == 1
    assert served.value("leverwatch_export_ack_seconds_count", signal="traces") is None


def test_what_waits_to_be_loaded_has_an_age(room: EngineRoom) -> None:
    served = Served(room)
    assert served.value("leverwatch_spool_oldest_age_seconds") == 0
    asyncio.run(served.door.take("scrapes", "s", b"x"))  # the door's clock stands in 1970
    assert (served.value("leverwatch_spool_oldest_age_seconds") or 0) > 300
    assert (served.value("leverwatch_spool_backlog_bytes") or 0) > 0


def test_a_watermark_that_stands_still_lags_behind_the_clock(room: EngineRoom) -> None:
    with room.store.write() as transaction:
        row = {"sender": "s", "at": NOW - timedelta(hours=1), "now": NOW}
        transaction.execute("insert into watermarks by name (select $sender as sender, $at as ended_at, $now as seen_at)", row)
    assert Served(room).value("leverwatch_watermark_lag_seconds") == 3600


def test_a_statement_that_takes_too_long_and_one_that_is_refused_are_counted_apart(room: EngineRoom) -> None:
    served = Served(room)
    for text, limit_s in (("select count(*) from range(10000000000) a, range(1000) b", 0.5), ("drop table spans", None)):
        with pytest.raises(SqlError):
            room.sandbox.run(text, limit_s=limit_s)
    assert served.value("leverwatch_sql_statements_total", outcome="time_limit") == 1
    assert served.value("leverwatch_sql_statements_total", outcome="refused") == 1


def test_a_child_that_is_killed_while_it_draws_is_counted(room: EngineRoom) -> None:
    easel = Easel(EaselLimits(drawing_s=0.001))
    room.studio.easels.append(easel)
    try:
        with pytest.raises(DrawingError):
            easel.svg("{}", 1e-9)
    finally:
        easel.close()
    assert Served(room).value("leverwatch_drawing_failures_total", reason="time_limit") == 1


@pytest.mark.parametrize(
    ("status", "outcome", "waiting", "given_up", "stopped"),
    [(500, "failed", 0, 1, 0), (410, "gone", 0, 1, 1), (200, "delivered", 0, 0, 0)],
)
def test_a_notice_that_is_given_up_and_a_receiver_that_is_gone_are_told(
    tmp_path: Path, hook: Hook, status: int, outcome: str, waiting: int, given_up: int, stopped: int
) -> None:
    receiver = Receiver(name="pager", url=hook.url, secret=alert_letters.SECRET, retry_schedule_s=())
    room = EngineRoom(tmp_path, Config(receivers=(receiver,)), clock=lambda: alert_letters.NOW)
    try:
        served = Served(room)
        alert_letters.flip(room.store, alert_letters.NOW)
        outbox.put_in(room.store, receiver, alert_letters.NOW, alert_letters.NOW, caught_up=True)
        assert served.value("leverwatch_deliveries_waiting", receiver="pager") == 1
        put_in_at = served.value("leverwatch_delivery_oldest_waiting_timestamp_seconds", receiver="pager")
        assert put_in_at == alert_letters.NOW.timestamp()
        hook.answers = [(status, {}, "")]
        deliver.deliver_waiting(room.store, served.couriers._routes[0], room.clock)
        assert served.value("leverwatch_delivery_attempts_total", receiver="pager", outcome=outcome) == 1
        assert served.value("leverwatch_deliveries_waiting", receiver="pager") == waiting
        assert served.value("leverwatch_deliveries_given_up", receiver="pager") == given_up
        assert served.value("leverwatch_receiver_stopped", receiver="pager") == stopped
        assert served.value("leverwatch_delivery_oldest_waiting_timestamp_seconds", receiver="pager") is None
        served.couriers.stop()
    finally:
        room.close()


def test_a_lake_that_cannot_be_written_makes_the_collector_fail() -> None:
    def refuses(*_: Any) -> None:
        raise LakeError("the bucket is gone")

    lake: Any = SimpleNamespace(append=refuses)
    tables: Any = SimpleNamespace(tables={"spans": None}, tallies=())
    reader: Any = SimpleNamespace(read=lambda *_: tables, forget=lambda: None)
    sink, observer = LakeSink(lake, reader, Pace(interval_s=0.01)), Observer()
    door = Door(sink, lambda: 1, sink.note, reference_check, waiting=None, told=observer.handled)
    try:
        with pytest.raises(BusyError, match="the lake cannot be written"):
            asyncio.run(door.take("scrapes", "s", b"x"))
        found = [one for family in collect_app.families(sink, Refused(), Receiving.through(door, ()), observer) for one in family.samples]
    finally:
        sink.close()
    values = {(one.name, one.labels.get("outcome")): one.value for one in found}
    assert values["leverwatch_collect_failing", None] == 1
    assert values["leverwatch_exports_total", "lake"] == 1


def asked(application: Any, path: str) -> int:
    async def ask() -> int:
        transport = httpx.ASGITransport(application, client=("127.0.0.1", 4000), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
            return (await client.get(path)).status_code

    return asyncio.run(ask())


def test_pages_are_counted_by_route_and_not_by_what_was_asked(room: EngineRoom) -> None:
    served = Served(room)
    pages = Watched(app.pages(room, served.worker, served.couriers, None, served.receiving, served.numbers), served.observer)
    assert asked(pages, "/api/report?by=model") == 200
    assert asked(pages, "/no/such/secret-page") == 404
    assert served.value("leverwatch_http_requests_total", route="/api/report", method="GET", status="2xx") == 1
    assert served.value("leverwatch_http_requests_total", route="none", status="4xx") == 1
    assert served.value("leverwatch_http_request_seconds_count", route="/api/report") == 1


def test_a_page_that_breaks_is_one_of_five_hundred() -> None:
    broken_app, observer = FastAPI(), Observer()

    @broken_app.get("/page")
    def page() -> None:
        raise RuntimeError("broken")

    assert asked(Watched(broken_app, observer), "/page") == 500
    assert observer.pages.answers.of("/page", "GET", "5xx") == 1
