"""The tap's span is what the real tap makes of the engine's answer, byte for byte but for the number of bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from demo_dispatches import values
from demo_told import deployment, moved, plain, request, theirs, told
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collectors.response_tap import Reading
from demo.engines import response_tap, sglang, sglang_body, trtllm_body, vllm, vllm_body
from demo.engines.wire import TOLD_AGAIN, Emitter
from demo.records import Request

Answer = Callable[[Request], dict[str, Any]]
ANSWERS: dict[str, Answer] = {"vllm": vllm_body.answer, "sglang": sglang_body.answer, "trtllm": trtllm_body.answer}
PATHS = {"sglang": "/generate"}


def read(engine: str, one: Request, status: int = 200) -> dict[str, Any]:
    """The attributes that the real tap gives an answer of that engine."""
    reading = Reading(PATHS.get(engine, "/v1/chat/completions"), 0.0)
    body = ANSWERS[engine](one)
    if body:
        reading.head(status, [(b"content-type", b"application/json")])
        reading.take(json.dumps(body).encode(), 1.0)
    found = reading.attributes(is_whole=bool(body))
    del found["leverwatch.body.bytes"]
    return found


def emitted(one: Request) -> dict[str, Any]:
    [(_, _, span)] = told([one], response_tap.Emitter())
    found = values(span.attributes)
    assert isinstance(found.pop("leverwatch.body.bytes"), int)
    return found


def approx(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: pytest.approx(value, abs=1e-9) if isinstance(value, float) else value for key, value in attributes.items()}


@pytest.mark.parametrize("engine", ANSWERS)
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("change", [lambda one: one, plain, lambda one: one._replace(cached_tokens=0, finish_reason="length")])
def test_the_tap_says_what_the_real_one_reads_in_the_answer(engine: str, split: bool, change: Callable[[Request], Request]) -> None:
    one = change(moved(engine) if split else request(deployment(engine)))
    real = read(engine, one)
    assert emitted(one) == approx(real)
    assert {key: type(value) for key, value in emitted(one).items()} == {key: type(value) for key, value in real.items()}


@pytest.mark.parametrize("engine", ANSWERS)
def test_of_an_error_it_says_the_status_and_of_an_abort_that_nothing_came(engine: str) -> None:
    failed, aborted = (request(deployment(engine), outcome=outcome) for outcome in ("error", "aborted"))
    assert emitted(failed) == read(engine, failed, status=500)
    assert emitted(aborted) == read(engine, aborted)
    [(_, _, span), (_, _, other)] = told([failed, aborted], response_tap.Emitter())
    assert (span.status.code, other.status.code) == (Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET)


@pytest.mark.parametrize(("engine", "emitter"), [("vllm", vllm.Emitter()), ("sglang", sglang.Emitter())])
def test_the_tap_s_span_is_between_the_client_s_and_the_engine_s(engine: str, emitter: Emitter) -> None:
    [(resource, scope, tap), *others] = told([request(deployment(engine))], response_tap.Emitter(), emitter)
    root = next(span for _, of, span in others if of != scope and span.parent_span_id == tap.span_id)
    assert (tap.name, tap.kind, scope) == ("response_body", Span.SPAN_KIND_SERVER, "leverwatch.response_tap")
    assert tap.parent_span_id and tap.trace_id == root.trace_id
    assert values(tap.attributes)["leverwatch.body.request_id"] == values(root.attributes)["gen_ai.request.id"]
    assert tap.start_time_unix_nano <= root.start_time_unix_nano < root.end_time_unix_nano <= tap.end_time_unix_nano
    assert set(theirs(resource)) == {
        "telemetry.sdk.language", "telemetry.sdk.name", "telemetry.sdk.version", "service.instance.id", "service.name",
    }  # fmt: skip


def test_what_the_engine_tells_twice_the_tap_saw_once() -> None:
    one = request(deployment("vllm"), attempt=1 + TOLD_AGAIN)
    assert told([one], response_tap.Emitter()) == []
