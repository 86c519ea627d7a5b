"""Sending and playing: what a receiver gets, and what happens when it is full, away, or one is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from demo import scenarios
from demo.play import play
from demo.sender import EXPORT, Sender, SendError

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED


class Receiver:
    """A gRPC receiver that answers with the codes it was given, then with success; `then` is called with the exports taken so far."""

    def __init__(self) -> None:
        self.codes: list[grpc.StatusCode] = []
        self.bodies: list[bytes] = []
        self.rejected = 0
        self.address = ""
        self.then: Callable[[int], object] = lambda _: None

    def export(self, body: bytes, context: Any) -> ExportTraceServiceResponse:
        if self.codes:
            context.abort(self.codes.pop(0), "not now")
        self.bodies.append(body)
        self.then(len(self.bodies))
        return ExportTraceServiceResponse(partial_success=ExportTracePartialSuccess(rejected_spans=self.rejected))

    def ends_ns(self) -> list[int]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            max(span.end_time_unix_nano for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans)
            for request in requests
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    answer = grpc.unary_unary_rpc_method_handler(receiver.export, response_serializer=ExportTraceServiceResponse.SerializeToString)
    service, method = EXPORT.strip("/").split("/")
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: answer}),))
        receiver.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        yield receiver
        server.stop(None).wait()


class Time:
    """A clock that only sleeping moves; `then` is called after each sleep with the number of sleeps."""

    def __init__(self, then: Callable[[int], object] = lambda _: None) -> None:
        self.now_s, self.slept_s, self._then = 0.0, list[float](), then

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.slept_s.append(seconds)
        self._then(len(self.slept_s))


def test_an_export_is_sent_again_while_the_receiver_is_full_or_away(receiver: Receiver) -> None:
    time = Time()
    receiver.codes = [FULL, grpc.StatusCode.UNAVAILABLE, FULL]
    with Sender(receiver.address, clock=time.clock, sleep=time.sleep) as sender:
        assert sender.send(b"") == 0
    assert (len(receiver.bodies), time.slept_s) == (1, [0.1, 0.2, 0.4])


def test_pauses_grow_to_five_seconds_and_patience_ends(receiver: Receiver) -> None:
    time = Time()
    receiver.codes = [FULL] * 100
    with (
        Sender(receiver.address, clock=time.clock, sleep=time.sleep, patience_s=30) as sender,
        pytest.raises(SendError, match=r"export not taken after 31.3 s: RESOURCE_EXHAUSTED: not now"),
    ):
        sender.send(b"")
    assert max(time.slept_s) == time.slept_s[-1] == 5


def test_an_export_that_is_wrong_is_not_sent_again(receiver: Receiver) -> None:
    time = Time()
    receiver.codes = [grpc.StatusCode.INVALID_ARGUMENT]
    with Sender(receiver.address, clock=time.clock, sleep=time.sleep) as sender, pytest.raises(SendError, match="INVALID_ARGUMENT"):
        sender.send(b"")
    assert time.slept_s == []


def test_spans_that_the_receiver_rejects_are_counted(receiver: Receiver) -> None:
    receiver.rejected = 3
    with Sender(receiver.address) as sender:
        assert sender.send(b"") == 3


def test_history_ends_now_and_life_goes_on_at_the_speed_asked_for(receiver: Receiver) -> None:
    stop, said = threading.Event(), list[str]()
    time = Time(lambda sleeps: stop.set() if sleeps == 61 else None)
    short = replace(scenarios.load("batch-grows"), hours=0.5)
    played = play(short, receiver.address, now=NOW, seed=1, say=said.append, stop=stop, speed=5, clock=time.clock, sleep=time.sleep)
    ends_ns, now_ns = receiver.ends_ns(), int(NOW.timestamp()) * 10**9
    assert ends_ns == sorted(ends_ns)
    assert any(now_ns - 10**10 < end_ns < now_ns for end_ns in ends_ns)
    assert timedelta(seconds=290) < timedelta(microseconds=(ends_ns[-1] - now_ns) / 1000) <= timedelta(seconds=300)
    assert played.requests == pytest.approx(1.6 * 2100, rel=0.1)
    assert said[0].startswith("batch-grows: From hour 15 on")
    assert "history sent" in said[-1]


def test_playing_stops_in_the_middle_of_history(receiver: Receiver) -> None:
    stop, said = threading.Event(), list[str]()
    receiver.then = lambda exports: stop.set() if exports == 2 else None
    played = play(scenarios.load("all-well"), receiver.address, now=NOW, seed=1, say=said.append, stop=stop)
    assert (played.spans, len(receiver.bodies), len(said)) == (1024, 2, 1)


def test_stopping_ends_the_wait_for_a_receiver_that_is_away() -> None:
    stop = threading.Event()
    time = Time(lambda sleeps: stop.set() if sleeps == 3 else None)
    short = replace(scenarios.load("all-well"), hours=0.1)
    play(short, "127.0.0.1:1", now=NOW, seed=1, say=lambda _: None, stop=stop, clock=time.clock, sleep=time.sleep)
    assert len(time.slept_s) == 3


def test_a_receiver_that_stays_away_is_an_error() -> None:
    time = Time()
    short = replace(scenarios.load("all-well"), hours=0.1)
    with pytest.raises(SendError, match=r"127\.0\.0\.1:1: export not taken after .* UNAVAILABLE"):
        play(short, "127.0.0.1:1", now=NOW, seed=1, say=lambda _: None, stop=threading.Event(), clock=time.clock, sleep=time.sleep)
