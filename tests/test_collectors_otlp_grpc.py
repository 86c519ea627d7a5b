"""OTLP over gRPC: an export is durable before it is acknowledged; a refusal says whether to come again, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import pytest
from collectors_bodies import attribute, body, request, span
from collectors_metrics import gauge, logs, metrics, point, record
from google.rpc import code_pb2, error_details_pb2, status_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import MetricsServiceStub
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from collectors import decode, otlp_grpc
from collectors.door import RETRY_AFTER_S, Door
from collectors.ledger import Note
from collectors.spool import Spool
from collectors.spool_records import Position, Record

ALL = 1 << 40
NOW = 1_700_000_000_000_000_000
EXPORT = f"/{otlp_grpc.SERVICE}/Export"
Answer = TypeVar("Answer")


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    opened = Spool(tmp_path, Position(0, 0))
    yield opened
    opened.close()


def door_of(spool: Spool, noted: list[Note] | None = None) -> Door:
    return Door(spool, lambda: NOW, ([] if noted is None else noted).append, decode.check)


def stored(spool: Spool) -> list[Record]:
    return list(spool.read(Position(0, 0), ALL))


def talk(door: Door, ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]) -> Answer:
    """What a client gets from a server of its own."""

    async def both() -> Answer:
        server, port = await otlp_grpc.start(door, "127.0.0.1:0")
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                return await asyncio.wait_for(ask(channel), 20)
        finally:
            await server.stop(None)

    return asyncio.run(both())


def export(door: Door, content: bytes, compression: grpc.Compression | None = None) -> bytes:
    async def ask(channel: grpc.aio.Channel) -> bytes:
        answer: bytes = await channel.unary_unary(EXPORT)(content, compression=compression)
        return answer

    return talk(door, ask)


def refusal(door: Door, content: bytes, method: str = EXPORT) -> grpc.aio.AioRpcError:
    async def ask(channel: grpc.aio.Channel) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method)(content)
        return caught.value

    return talk(door, ask)


def details_of(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    trailing = dict(error.trailing_metadata() or ())
    return status_pb2.Status.FromString(trailing["grpc-status-details-bin"])


def assert_says_when_to_come_again(error: grpc.aio.AioRpcError, message: str, name: str = "RESOURCE_EXHAUSTED") -> None:
    assert (error.code(), error.details()) == (grpc.StatusCode[name], message)
    status, delay = details_of(error), error_details_pb2.RetryInfo()
    assert (status.code, status.message, len(status.details)) == (code_pb2.Code.Value(name), message, 1)
    assert status.details[0].Unpack(delay)
    assert delay.retry_delay.seconds == RETRY_AFTER_S


def test_an_export_is_durable_before_it_is_acknowledged(spool: Spool, tmp_path: Path) -> None:
    answer = export(door_of(spool), body(span(1), span(2)))
    assert ExportTraceServiceResponse.FromString(answer) == ExportTraceServiceResponse()
    again = Spool(tmp_path, Position(0, 0))
    found = stored(again)
    assert [(record.body, record.sender, record.received_unix_nano) for record in found] == [(body(span(1), span(2)), "127.0.0.1", NOW)]
    again.close()


def test_the_generated_client_is_understood(spool: Spool) -> None:
    async def ask(channel: grpc.aio.Channel) -> ExportTraceServiceResponse:
        return await TraceServiceStub(channel).Export(request(span(1), service__name="x"))

    assert talk(door_of(spool), ask) == ExportTraceServiceResponse()
    assert [record.body for record in stored(spool)] == [body(span(1), service__name="x")]


def test_a_gzip_message_is_stored_inflated(spool: Spool) -> None:
    export(door_of(spool), body(span(1)), grpc.Compression.Gzip)
    assert [record.body for record in stored(spool)] == [body(span(1))]


def test_an_export_without_spans_is_acknowledged_and_takes_no_room(spool: Spool) -> None:
    assert (export(door_of(spool), b""), stored(spool)) == (b"", [])


def test_exports_sent_side_by_side_are_each_stored_once(spool: Spool) -> None:
    async def ask(channel: grpc.aio.Channel) -> None:
        call = channel.unary_unary(EXPORT)
        await asyncio.gather(*(call(body(span(number))) for number in range(1, 101)))

    talk(door_of(spool), ask)
    assert sorted(record.body for record in stored(spool)) == sorted(body(span(number)) for number in range(1, 101))


def test_a_message_larger_than_the_usual_bound_of_4_mib_is_taken(spool: Spool) -> None:
    large = body(span(1, attributes=[attribute("text", "x" * 5_000_000)]))
    export(door_of(spool), large)
    assert [len(record.body) for record in stored(spool)] == [len(large)]


@pytest.mark.parametrize("content", [b"\xff\xff", body(span(1))[:-1], body(span(1)) + b"\x07"])
def test_a_broken_body_is_an_invalid_argument_that_is_not_to_come_again(spool: Spool, content: bytes) -> None:
    noted: list[Note] = []
    error = refusal(door_of(spool, noted), content)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == f"body is not a sound ExportTraceServiceRequest ({len(content)} bytes)"
    assert "grpc-status-details-bin" not in dict(error.trailing_metadata() or ())
    assert noted == [Note("127.0.0.1", "traces", NOW, "body is not a sound ExportTraceServiceRequest")]
    assert stored(spool) == []


def test_a_full_spool_is_exhausted_and_says_when_to_come_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path, Position(0, 0), limit_backlog_bytes=10)
    assert_says_when_to_come_again(refusal(door_of(spool), body(span(1))), "0 bytes wait to be loaded; the bound is 10")
    spool.close()


def test_a_disk_that_refuses_says_when_to_come_again_and_the_same_body_is_taken_then(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_file: int) -> None:
        msg = "no space left"
        raise OSError(msg)

    with monkeypatch.context() as broken:
        broken.setattr("os.fdatasync", failing)
        error = refusal(door_of(spool), body(span(1)))
    assert_says_when_to_come_again(error, "the spool cannot be written: no space left")
    export(door_of(spool), body(span(1)))
    assert len(stored(spool)) == 1


def test_a_closed_door_says_when_to_come_again(spool: Spool) -> None:
    door = door_of(spool)
    door.closed = True
    assert_says_when_to_come_again(refusal(door, body(span(1))), "the server is stopping", "UNAVAILABLE")
    assert stored(spool) == []


def test_another_method_is_not_implemented(spool: Spool) -> None:
    assert refusal(door_of(spool), b"", f"/{otlp_grpc.SERVICE}/Import").code() == grpc.StatusCode.UNIMPLEMENTED


def test_an_address_that_is_taken_is_an_error_that_names_it(spool: Spool) -> None:
    async def both() -> None:
        server, port = await otlp_grpc.start(door_of(spool), "127.0.0.1:0")
        try:
            with pytest.raises(OSError, match=rf"OTLP/gRPC cannot listen on 127\.0\.0\.1:{port}"):
                await otlp_grpc.start(door_of(spool), f"127.0.0.1:{port}")
        finally:
            await server.stop(None)

    asyncio.run(both())


def test_metrics_and_logs_are_taken_by_the_generated_clients_gzip_included(spool: Spool) -> None:
    said = {"gen_ai.evaluation.name": "n", "gen_ai.evaluation.score.value": 0.5}
    event = record(attributes=said, event_name="gen_ai.evaluation.result")

    async def ask(channel: grpc.aio.Channel) -> tuple[ExportMetricsServiceResponse, ExportLogsServiceResponse]:
        sent = metrics(gauge("g", point(1.0), point(2.0, at=0)))
        first = await MetricsServiceStub(channel).Export(sent, compression=grpc.Compression.Gzip)
        return first, await LogsServiceStub(channel).Export(logs(event, record()))

    of_metrics, of_logs = talk(door_of(spool), ask)
    assert of_metrics.partial_success.rejected_data_points == 1
    assert of_logs == ExportLogsServiceResponse()
    assert [record.signal for record in stored(spool)] == ["metrics", "logs"]


@pytest.mark.parametrize("signal", ["metrics", "logs"])
def test_a_broken_metrics_or_logs_export_is_an_invalid_argument(spool: Spool, signal: str) -> None:
    error = refusal(door_of(spool), b"\xff", f"/{otlp_grpc.SERVICES[signal]}/Export")
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error.details() == f"body is not a sound Export{signal.title()}ServiceRequest (1 bytes)"


def test_a_gzip_message_that_inflates_beyond_the_bound_is_refused(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_grpc, "LIMIT_MESSAGE_BYTES", 100_000)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        export(door_of(spool), bytes(10_000_000), grpc.Compression.Gzip)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert stored(spool) == []


@pytest.mark.parametrize(
    ("peer", "sender"),
    [
        ("ipv4:127.0.0.1:5000", "127.0.0.1"),
        ("ipv6:%5B::1%5D:5000", "::1"),
        ("ipv6:[fe80::1]:5000", "fe80::1"),
        ("unix:", "unknown"),
    ],
)
def test_a_sender_is_its_address_without_the_port(peer: str, sender: str) -> None:
    assert otlp_grpc._sender(peer) == sender
