"""Sending and playing: what a receiver gets, and what happens when it is full, away, or one is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from demo import scenarios, telling
from demo.play import Plan, Played, play, unix_ns
from demo.sender import EXPORTS, Sender, SendError
from demo.telemetry import Body, Signal

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NOTHING = Body("traces", b"", 0)
FULL = grpc.StatusCode.RESOURCE_EXHAUSTED


class Receiver:
    """A gRPC receiver that answers with the codes it was given, then with success; `then` is called with the exports taken so far."""

    def __init__(self) -> None:
        self.codes: list[grpc.StatusCode] = []
        self.bodies: list[tuple[str, bytes]] = []
        self.rejected = 0
        self.address = ""
        self.then: Callable[[int], object] = lambda _: None

    def handler(self, answer: Any, rejected: str) -> grpc.RpcMethodHandler:
        signal = answer.DESCRIPTOR.name

        def export(body: bytes, context: Any) -> Any:
            if self.codes:
                context.abort(self.codes.pop(0), "not now")
            self.bodies.append((signal, body))
            self.then(len(self.bodies))
            taken = answer()
            setattr(taken.partial_success, rejected, self.rejected)
            return taken

        return grpc.unary_unary_rpc_method_handler(export, response_serializer=answer.SerializeToString)

    def of(self, signal: str) -> list[bytes]:
        return [body for name, body in self.bodies if name == f"Export{signal}ServiceResponse"]

    def ends_ns(self) -> list[int]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.of("Trace")]
        return [
            max(span.end_time_unix_nano for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans)
            for request in requests
        ]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        for path, answer_of, rejected in EXPORTS.values():
            service, method = path.strip("/").split("/")
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service, {method: receiver.handler(answer_of, rejected)}),)
            )
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
        assert sender.send(NOTHING) == 0
    assert (len(receiver.bodies), time.slept_s) == (1, [0.1, 0.2, 0.4])


def test_pauses_grow_to_five_seconds_and_patience_ends(receiver: Receiver) -> None:
    time = Time()
    receiver.codes = [FULL] * 100
    with (
        Sender(receiver.address, clock=time.clock, sleep=time.sleep, patience_s=30) as sender,
        pytest.raises(SendError, match=r"export not taken after 31.3 s: RESOURCE_EXHAUSTED: not now"),
    ):
        sender.send(NOTHING)
    assert max(time.slept_s) == time.slept_s[-1] == 5


def test_an_export_that_is_wrong_is_not_sent_again(receiver: Receiver) -> None:
    time = Time()
    receiver.codes = [grpc.StatusCode.INVALID_ARGUMENT]
    with Sender(receiver.address, clock=time.clock, sleep=time.sleep) as sender, pytest.raises(SendError, match="INVALID_ARGUMENT"):
        sender.send(NOTHING)
    assert time.slept_s == []


@pytest.mark.parametrize("signal", ["traces", "metrics", "logs"])
def test_each_signal_has_its_own_service_and_what_it_rejects_is_counted(receiver: Receiver, signal: Signal) -> None:
    receiver.rejected = 3
    with Sender(receiver.address) as sender:
        assert sender.send(Body(signal, b"", 5)) == 3
    assert [name for name, _ in receiver.bodies] == [EXPORTS[signal][1].DESCRIPTOR.name]


def short(hours: float) -> Plan:
    return Plan(scenarios.load("batch-grows"), hours, NOW, seed=1)


def test_history_ends_now_and_life_goes_on_at_the_speed_asked_for(receiver: Receiver) -> None:
    stop, said = threading.Event(), list[str]()
    time = Time(lambda sleeps: stop.set() if sleeps == 61 else None)
    played = play(short(0.5), receiver.address, say=said.append, stop=stop, speed=5, clock=time.clock, sleep=time.sleep)
    ends_ns, now_ns = receiver.ends_ns(), int(NOW.timestamp()) * 10**9
    assert any(now_ns - 30 * 10**9 < end_ns < now_ns + 10**9 for end_ns in ends_ns)
    assert timedelta(seconds=270) < timedelta(microseconds=(max(ends_ns) - now_ns) / 1000) <= timedelta(seconds=301)
    assert played.requests == pytest.approx(2100 * (0.67 + 0.5 * 3.2), rel=0.15)
    assert played.items["traces"] >= 2 * played.requests
    assert "history sent" in said[-1]


def test_a_history_may_be_longer_than_the_scenario_which_is_before_as_at_its_beginning(receiver: Receiver) -> None:
    stop = threading.Event()
    play(short(10.2), receiver.address, say=lambda _: stop.set(), stop=stop, clock=Time().clock)
    began_ns = int((NOW - timedelta(hours=10)).timestamp()) * 10**9
    early = {
        span.trace_id
        for body in receiver.of("Trace")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
        if span.start_time_unix_nano < began_ns
    }
    assert len(early) == pytest.approx(0.2 * 3600 * sum(mix.requests_per_s for mix in scenarios.load("batch-grows").traffic), rel=0.15)


def test_in_life_the_pages_are_shown_and_no_samples_are_sent(receiver: Receiver) -> None:
    stop, shown = threading.Event(), dict[str, str]()
    time = Time(lambda sleeps: stop.set() if sleeps == 70 else None)
    plan = short(0.1)
    play(plan, receiver.address, say=lambda _: None, stop=stop, show=shown.update, clock=time.clock, sleep=time.sleep)
    moments = {
        point.time_unix_nano
        for body in receiver.of("Metrics")
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
        for metric in resource.scope_metrics[0].metrics
        for point in (*metric.gauge.data_points, *metric.sum.data_points)
    }
    assert max(moments) < int(NOW.timestamp()) * 10**9 + 1
    assert len(moments) == 6
    assert "vllm:num_requests_running" in shown["code-0"]


def test_playing_stops_in_the_middle_of_history(receiver: Receiver) -> None:
    stop, said = threading.Event(), list[str]()
    receiver.then = lambda exports: stop.set() if exports == 2 else None
    played = play(short(5), receiver.address, say=said.append, stop=stop)
    assert (sum(played.items.values()) > 512, len(receiver.bodies), said) == (True, 2, [])
    assert played.until_ns < unix_ns(NOW)


@pytest.mark.parametrize(
    ("left_h", "said"),
    [
        (12, "Ended at hour 8.0 of the history's 20: no verdict of the scenario's change at hour 15 can be there yet"),
        (1, "Ended at hour 19.0 of the history's 20: no verdict of the scenario's change at hour 15 need be there yet"),
    ],
)
def test_a_demo_that_ends_within_its_history_says_so(left_h: float, said: str) -> None:
    plan = Plan(scenarios.load("batch-grows"), 20, NOW, 1)
    until_ns = unix_ns(NOW - timedelta(hours=left_h))
    assert telling.cut_short(plan, Played(until_ns=until_ns), 75) == f"{said}; give a longer --for than 75."
    assert telling.cut_short(plan, Played(until_ns=until_ns), None) == f"{said}."
    assert telling.cut_short(plan, Played(until_ns=unix_ns(NOW)), 75) is None


def test_stopping_ends_the_wait_for_a_receiver_that_is_away() -> None:
    stop = threading.Event()
    time = Time(lambda sleeps: stop.set() if sleeps == 3 else None)
    play(short(0.1), "127.0.0.1:1", say=lambda _: None, stop=stop, clock=time.clock, sleep=time.sleep)
    assert len(time.slept_s) == 3


def test_a_receiver_that_stays_away_is_an_error() -> None:
    time = Time()
    with pytest.raises(SendError, match=r"127\.0\.0\.1:1: export not taken after .* UNAVAILABLE"):
        play(short(0.1), "127.0.0.1:1", say=lambda _: None, stop=threading.Event(), clock=time.clock, sleep=time.sleep)
