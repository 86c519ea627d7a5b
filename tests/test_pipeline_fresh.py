"""What was just loaded is assembled from memory: the same requests as from the store, whatever comes in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from collectors_bodies import START, attribute, body, span

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import jobs
from pipeline.recent import Recent
from queries import fresh_parts, merging
from queries.merging import Pace, merge_next

TOKENS = attribute("gen_ai.usage.completion_tokens", 11)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineRoom]:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)
    opened = EngineRoom(tmp_path, Config())
    yield opened
    with suppress(duckdb.ConnectionException):  # a test that starts the room again has closed it
        opened.close()


def put(room: EngineRoom, *bodies: bytes) -> None:
    for one in bodies:
        room.spool.append("traces", "s", START + 1_000_000_000, one).result(10)


def engine(*numbers: int) -> bytes:
    return body(*(span(number, attributes=[TOKENS]) for number in numbers))


def tap(number: int, cached_tokens: int) -> bytes:
    told = [attribute("leverwatch.body.cached_tokens", cached_tokens)]
    ids = {"trace_id": number.to_bytes(16, "big"), "parent_span_id": number.to_bytes(8, "big")}
    return body(span(1000 + number, name="response_body", attributes=told, **ids), scope="leverwatch.response_tap")


def requests(room: EngineRoom) -> list[tuple[int, Any]]:
    rows = room.store.rows("select trace_id, cached_tokens from requests order by trace_id, cached_tokens")
    return [(int(row["trace_id"], 16), row["cached_tokens"]) for row in rows]


def never(*_: object) -> int:
    pytest.fail("the store was read")


def test_legs_that_come_in_two_batches_are_joined_without_reading_the_store(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    put(room, engine(1, 2, 3))
    room.drain()
    monkeypatch.setattr(jobs, "_assemble", never)
    put(room, tap(2, 64), engine(4))
    room.drain()
    assert requests(room) == [(1, None), (2, 64), (3, None), (4, None)]


def test_a_leg_whose_trace_left_memory_is_joined_from_the_store(room: EngineRoom) -> None:
    room.rounds.recent = Recent(limit_spans=2)
    for number in range(1, 6):
        put(room, engine(number))
        room.drain()
    put(room, tap(1, 32))
    room.drain()
    assert requests(room) == [(1, 32), (2, None), (3, None), (4, None), (5, None)]


def test_a_third_leg_finds_both_that_came_before_it(room: EngineRoom) -> None:
    room.rounds.recent = Recent(limit_spans=2)
    for part in (engine(1), engine(2), tap(1, 32), engine(3)):
        put(room, part)
        room.drain()
    more = span(77, trace_id=(1).to_bytes(16, "big"), parent_span_id=(1).to_bytes(8, "big"), attributes=[TOKENS])
    put(room, body(more))
    room.drain()
    assert requests(room)[0] == (1, 32)
    assert len(requests(room)) == 3


def test_a_process_that_dies_between_loading_and_assembling_assembles_at_its_next_start(room: EngineRoom, tmp_path: Path) -> None:
    put(room, engine(1, 2))
    dict(room.steps())["load"]()
    assert requests(room) == []
    room.close()
    again = EngineRoom(tmp_path, Config())
    again.drain()
    assert requests(again) == [(1, None), (2, None)]
    assert again.store.rows("select count(*) as n from dirty_parts") == [{"n": 0}]
    again.close()


def test_a_leg_of_a_trace_loaded_before_the_restart_is_joined(room: EngineRoom, tmp_path: Path) -> None:
    put(room, engine(1, 2))
    room.drain()
    room.close()
    again = EngineRoom(tmp_path, Config())
    put(again, tap(1, 16), engine(2))
    again.drain()
    assert requests(again) == [(1, 16), (2, None)]
    again.close()


def test_parts_of_an_hour_are_made_one_and_every_row_stays(room: EngineRoom) -> None:
    for number in range(1, 6):
        put(room, engine(number))
        room.drain()
    before = requests(room)
    counted = 'select count(*) as n, sum("rows")::bigint as total from parts where relation = $relation'
    for relation in ("spans", "requests"):
        assert room.store.rows(counted, {"relation": relation}) == [{"n": 5, "total": 5}]
        assert merge_next(room.store, relation, Pace(3)) == 5
        assert room.store.rows(counted, {"relation": relation}) == [{"n": 1, "total": 5}]
        assert merge_next(room.store, relation, Pace(3)) == 0
    assert requests(room) == before
    assert room.store.rows("select count(distinct span_id) as n from spans") == [{"n": 5}]


def test_a_part_whose_traces_wait_for_assembly_is_not_merged_away(room: EngineRoom) -> None:
    for number in range(1, 4):
        put(room, engine(number))
        dict(room.steps())["load"]()
    assert merge_next(room.store, "spans", Pace(2)) == 0
    room.drain()
    assert merge_next(room.store, "spans", Pace(2)) == 3


def test_a_room_with_nothing_to_load_merges_small_parts(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "AT_REST", Pace(3))
    for number in range(1, 4):
        put(room, engine(number))
        room.drain()
    assert room.store.rows(
        'select relation, count(*) as n, sum("rows")::bigint as held from parts group by relation order by relation'
    ) == [
        {"relation": "requests", "n": 1, "held": 3},
        {"relation": "spans", "n": 1, "held": 3},
    ]
