"""What other traces tell of a request finds it, whichever comes first, and a late span of either takes nothing away."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import START, attribute, body, span
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collectors import otlp_logs
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

TAP, TRACE = "leverwatch.response_tap", "dynamo.request_trace"
ENGINE_KEYS = [attribute("gen_ai.usage.completion_tokens", 11), attribute("gen_ai.usage.prompt_tokens", 100)]


@pytest.fixture
def room(tmp_path: Path, _batches: None) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def put(room: EngineRoom, *bodies: bytes) -> None:
    for one in bodies:
        room.spool.append("traces", "s", START, one).result(10)
        room.drain()


def engine(number: int, request_id: str = "r-1", minutes: int = 0, **fields: Any) -> bytes:
    """A vLLM request in a trace of its own."""
    began = START + minutes * 60_000_000_000
    times = {"start_time_unix_nano": began, "end_time_unix_nano": began + 250_000_000}
    return body(
        span(number, **{**times, "attributes": [*ENGINE_KEYS, attribute("gen_ai.request.id", request_id)]} | fields),
        scope="vllm.tracing.otel",
    )


def answer(number: int, request_id: str = "r-1", cached_tokens: int = 64) -> bytes:
    """A recorded response body in a trace of its own."""
    said = [attribute("leverwatch.body.request_id", request_id), attribute("leverwatch.body.cached_tokens", cached_tokens)]
    return body(span(number, name="response_body", attributes=said), scope=TAP)


def record(number: int, request_id: str = "r-1") -> bytes:
    """A request-trace record in a trace of its own."""
    return body(
        span(number, name="request_end", attributes=[attribute("request_id", request_id), attribute("queue_depth", 4)]), scope=TRACE
    )


def rows(room: EngineRoom) -> list[tuple[int, str | None, int | None, int | None]]:
    found = room.store.rows("select trace_id, engine, cached_tokens, queue_depth from requests order by trace_id")
    return [(int(row["trace_id"], 16), row["engine"], row["cached_tokens"], row["queue_depth"]) for row in found]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_engine_body_and_record_of_three_traces_are_one_request_in_any_order(room: EngineRoom, order: tuple[int, ...]) -> None:
    told = [engine(1), answer(2), record(3)]
    put(room, *(told[place] for place in order))
    assert rows(room) == [(1, "vllm", 64, 4)]


@pytest.mark.parametrize("trace", [1, 2])
def test_a_late_span_of_either_trace_takes_nothing_away(room: EngineRoom, trace: int) -> None:
    put(room, answer(2), engine(1))
    put(
        room,
        body(
            span(trace, span_id=b"latecome", name="later", attributes=[attribute("openinference.span.kind", "TOOL")]),
            scope="openinference.instrumentation.x",
        ),
    )
    assert rows(room) == [(1, "vllm", 64, None)]


def test_a_body_waits_for_the_request_with_its_id_alone(room: EngineRoom) -> None:
    put(room, answer(2), engine(1, "another"))
    assert rows(room) == [(1, "vllm", None, None), (2, None, 64, None)]


def test_an_id_that_was_used_long_before_is_of_another_request(room: EngineRoom) -> None:
    put(room, engine(1, minutes=-120), answer(2))
    assert rows(room) == [(1, "vllm", None, None), (2, None, 64, None)]


def test_of_several_requests_of_one_trace_each_finds_its_own_body(room: EngineRoom) -> None:
    put(room, engine(1, "r-1"), engine(1, "r-2", span_id=b"another1"), answer(7, "r-2", 7), answer(5, "r-1", 5))
    assert sorted(cached or 0 for _, _, cached, _ in rows(room)) == [5, 7]
    put(room, engine(1, "r-3", span_id=b"another2"))
    assert sorted(cached or 0 for _, _, cached, _ in rows(room)) == [0, 5, 7]


def test_engines_that_nobody_else_speaks_of_are_kept_under_no_id(room: EngineRoom) -> None:
    put(room, *(engine(number, f"r-{number}") for number in range(1, 4)))
    assert room.store.rows("select * from open_keys") == []


def test_ids_that_waited_for_more_than_an_hour_are_forgotten(room: EngineRoom) -> None:
    put(room, answer(2))
    assert [row["join_key"] for row in room.store.rows("select join_key from open_keys")] == ["r-1"]
    with room.store.write() as transaction:
        transaction.execute("update open_keys set noted_at = noted_at - interval 3 hour")
    put(room, answer(3, "r-3"))
    assert [row["join_key"] for row in room.store.rows("select join_key from open_keys")] == ["r-3"]


def test_the_records_of_dynamo_that_were_recorded_join_its_spans(recordings: Path, room: EngineRoom) -> None:
    folder = recordings / "dynamo-reqtrace"
    put(room, *(path.read_bytes() for path in sorted((folder / "traces").glob("*.pb"))))
    for path in sorted((folder / "logs").glob("*.pb")):
        kept = otlp_logs.kept(ExportLogsServiceRequest.FromString(path.read_bytes()))
        room.spool.append("logs", "s", START, kept.request.SerializeToString()).result(10)
    room.drain()
    records = [json.loads(line)["event"] for line in (folder / "request_trace.jsonl").read_text().splitlines()]
    cached = {record["request"]["request_id"]: record["request"]["cached_tokens"] for record in records if "request" in record}
    found = room.store.rows("select request_id, cached_tokens, provenance['cached_tokens'] as said_by, flags from requests")
    assert {row["request_id"]: row["cached_tokens"] for row in found} == cached
    assert len(found) == len(cached) == 12
    assert {(row["said_by"], *row["flags"]) for row in found} == {("log",)}


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_many_requests_in_any_order_and_any_batches_are_the_same_requests(room: EngineRoom, seed: int) -> None:
    rng = random.Random(seed)
    told = []
    for number in range(1, 9):
        request_id = f"r-{number}"
        parts = [engine(number, request_id), answer(100 + number, request_id, number), record(200 + number, request_id)]
        told += parts[: rng.choice([1, 2, 3])]
    rng.shuffle(told)
    while told:
        for one in [told.pop() for _ in range(min(len(told), rng.choice([1, 2, 5])))]:
            room.spool.append("traces", "s", START, one).result(10)
        room.drain()
    found = rows(room)
    assert [trace for trace, *_ in found] == list(range(1, 9))
    assert all(cached in (None, trace) for trace, _, cached, _ in found)
    spans = room.store.rows("select count(*) filter (role = 'body') as bodies, count(*) filter (role = 'log') as logs from spans")[0]
    assert sum(cached is not None for _, _, cached, _ in found) == spans["bodies"]
    assert sum(depth is not None for *_, depth in found) == spans["logs"]
