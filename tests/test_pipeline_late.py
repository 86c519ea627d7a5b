"""Spans that come late, early or under a clock that is off: what time it is, which spans count as late, and what stays one request."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import START, VLLM, attribute, body, request, span

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import jobs
from queries import retention, sealing
from queries.retention import Rule

S, MINUTE, HOUR = 1_000_000_000, 60_000_000_000, 3_600_000_000_000
BASE = START - START % HOUR  # the start of an hour
TAP = "leverwatch.response_tap"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def moment(ns: int) -> datetime:
    return EPOCH + timedelta(microseconds=ns // 1000)


def put(room: EngineRoom, sender: str, number: int, ended: int, arrived: int | None = None, scope: str = VLLM, **fields: Any) -> None:
    """One span of a sender, loaded; it lasted a second. It arrives as it ends unless told otherwise."""
    times = {"start_time_unix_nano": ended - S, "end_time_unix_nano": ended}
    one = body(span(number, **(times | fields)), scope=scope)
    room.spool.append("traces", sender, ended if arrived is None else arrived, one).result(10)
    room.loader.load_next(room.spool)


def late(room: EngineRoom) -> dict[str, int]:
    rows = room.store.rows("select sender, sum(late)::bigint as late from ingest_ledger group by sender")
    return {row["sender"]: row["late"] for row in rows}


def test_the_time_is_that_of_the_slowest_sender_that_speaks(room: EngineRoom) -> None:
    put(room, "a", 1, BASE)
    put(room, "b", 2, BASE - 200 * S, arrived=BASE)
    assert jobs.watermark(room.store) == moment(BASE - 200 * S)


def test_spans_out_of_order_do_not_turn_the_time_back(room: EngineRoom) -> None:
    put(room, "a", 1, BASE)
    put(room, "a", 2, BASE - 30 * MINUTE, arrived=BASE + S)
    assert jobs.watermark(room.store) == moment(BASE)


def test_an_idle_sender_holds_up_nobody_and_counts_again_when_it_speaks(room: EngineRoom) -> None:
    put(room, "idle", 1, BASE)
    put(room, "a", 2, BASE + 60 * S)
    assert jobs.watermark(room.store) == moment(BASE)
    put(room, "a", 3, BASE + 61 * S)
    assert jobs.watermark(room.store) == moment(BASE + 61 * S)
    put(room, "idle", 4, BASE + 30 * S, arrived=BASE + 62 * S)
    assert jobs.watermark(room.store) == moment(BASE + 30 * S)


def test_a_clock_an_hour_ahead_is_held_to_a_minute_behind_its_arrival(room: EngineRoom) -> None:
    put(room, "ahead", 1, BASE + HOUR, arrived=BASE)
    assert jobs.watermark(room.store) == moment(BASE + MINUTE)
    put(room, "a", 2, BASE + S)
    assert jobs.watermark(room.store) == moment(BASE + S)
    put(room, "ahead", 3, BASE + HOUR + 2 * S, arrived=BASE + 2 * S)
    assert late(room) == {"ahead": 0, "a": 0}
    said = room.store.rows("select sender, map_values(reasons)[1] as spans, map_keys(reasons)[1] as reason from ingest_ledger order by 1")
    assert [(row["sender"], row["spans"]) for row in said] == [("a", None), ("ahead", 2)]
    assert said[1]["reason"].endswith("the sender's clock runs ahead")


def test_a_clock_an_hour_behind_holds_up_nobody_and_its_spans_are_not_late(room: EngineRoom) -> None:
    put(room, "a", 1, BASE)
    for number in range(2, 6):
        put(room, "behind", number, BASE - HOUR + number * S, arrived=BASE + number * S)
        put(room, "a", 10 + number, BASE + number * S)
    assert jobs.watermark(room.store) == moment(BASE + 5 * S)
    assert late(room) == {"a": 0, "behind": 0}


def test_a_span_is_late_where_its_sender_was_two_minutes_further(room: EngineRoom) -> None:
    put(room, "a", 1, BASE)
    put(room, "a", 2, BASE - 120 * S, arrived=BASE)
    assert late(room) == {"a": 0}
    put(room, "a", 3, BASE - 121 * S, arrived=BASE)
    put(room, "a", 3, BASE - 121 * S, arrived=BASE)
    assert late(room) == {"a": 1}
    (entry,) = room.store.rows("select received, stored, duplicate, late from ingest_ledger")
    assert entry == {"received": 4, "stored": 3, "duplicate": 1, "late": 1}


def pair(number: int, began: int, role: str) -> Any:
    """The engine's span of a request, or the tap's span below it that knows the cached tokens."""
    ids = {"trace_id": number.to_bytes(16, "big"), "start_time_unix_nano": began, "end_time_unix_nano": began + S}
    if role == "engine":
        return request(span(number, **ids))
    told = [attribute("leverwatch.body.cached_tokens", 40)]
    return request(span(number + 1000, name="response_body", parent_span_id=number.to_bytes(8, "big"), attributes=told, **ids), scope=TAP)


@pytest.mark.parametrize("order", [("engine", "tap"), ("tap", "engine")])
def test_spans_of_one_trace_that_come_minutes_apart_are_one_request(room: EngineRoom, order: tuple[str, str]) -> None:
    for waited, role in zip((0, 25 * MINUTE), order, strict=True):
        export = pair(7, BASE, role).SerializeToString()
        room.spool.append("traces", role, BASE + waited, export).result(10)
        room.drain()
    (row,) = room.store.rows("select prompt_tokens, cached_tokens from requests")
    assert row == {"prompt_tokens": 100, "cached_tokens": 40}


def test_a_late_span_does_not_shrink_a_request_whose_other_spans_were_dropped(room: EngineRoom) -> None:
    put(room, "s", 1, BASE)
    room.drain()
    while sealing.seal_next(room.store, moment(BASE + 5 * HOUR)):
        pass
    now = datetime.now(UTC) + timedelta(days=10)
    assert retention.drop_next(room.store, Rule("spans", timedelta(days=3)), now) == 1
    told = [attribute("leverwatch.body.cached_tokens", 40)]
    put(room, "tap", 2, BASE, name="response_body", scope=TAP, trace_id=(1).to_bytes(16, "big"), attributes=told)
    put(room, "s", 3, BASE)
    room.drain()
    assert room.store.rows("select trace_id, prompt_tokens from requests order by 1") == [
        {"trace_id": f"{1:032x}", "prompt_tokens": 100},
        {"trace_id": f"{3:032x}", "prompt_tokens": 100},
    ]


def test_late_requests_add_to_the_cells_of_a_block_whose_requests_were_dropped(room: EngineRoom) -> None:
    marks = [attribute("leverwatch.arm.speculation", "treated"), attribute("leverwatch.model", "m"), attribute("gen_ai.latency.e2e", 0.5)]
    for number in range(1, 4):
        put(room, "s", number, BASE + number * S, attributes=marks)
    put(room, "s", 9, BASE + 20 * MINUTE, attributes=marks)
    room.drain()
    counted = "select sum(n)::bigint as n from cells where metric = 'error_rate' and arm = 'treated' and segment = '{\"model\":\"m\"}'"
    room.finish()
    assert room.store.rows(counted) == [{"n": 4}]
    while sealing.seal_next(room.store, moment(BASE + 5 * HOUR)):
        pass
    now = datetime.now(UTC) + timedelta(days=100)
    assert retention.drop_next(room.store, Rule("requests", timedelta(days=90)), now) == 4
    put(room, "s", 4, BASE + 4 * S, attributes=marks)
    room.drain()
    room.finish()
    assert room.store.rows(counted) == [{"n": 5}]
