"""OTLP over HTTP: what is taken is durable before it is answered, what is not is answered as OTLP says, in the request's encoding."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from collectors_bodies import attribute, body, request, span
from fastapi import FastAPI
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from collectors import api, decode
from collectors.door import RETRY_AFTER_S, Door
from collectors.spool import Position, Record, Spool

ALL = 1 << 40
NOW = 1_700_000_000_000_000_000
GZIP = {"content_encoding": "gzip"}


@dataclass
class Receiver:
    """The receiver under test: its door and spool, and the application that is asked."""

    door: Door
    application: FastAPI
    refused: list[tuple[str, int, str]]

    def send(self, method: str, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.application, client=("10.0.0.7", 5000))
            async with httpx.AsyncClient(transport=transport, base_url="http://collector") as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())

    def post(self, content: bytes, kind: str = api.PROTOBUF, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", "/v1/traces", content, {"content-type": kind, **named})

    def stored(self) -> list[Record]:
        return list(self.door.spool.read(Position(0, 0), ALL))


def opened(folder: Path, limit_backlog_bytes: int = ALL) -> Receiver:
    refused: list[tuple[str, int, str]] = []
    spool = Spool(folder, Position(0, 0), limit_backlog_bytes=limit_backlog_bytes)
    door = Door(spool, lambda: NOW, lambda *what: refused.append(what), decode.check)
    application = FastAPI()
    application.include_router(api.router(door))
    return Receiver(door, application, refused)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    found = opened(tmp_path)
    yield found
    found.door.spool.close()


def as_json(*spans: Any) -> bytes:
    """The same export as OTLP/JSON writes it: ids in hex."""
    plain = json_format.MessageToDict(request(*spans))
    for one, said in zip(plain["resourceSpans"][0]["scopeSpans"][0]["spans"], spans, strict=True):
        one["traceId"], one["spanId"] = said.trace_id.hex(), said.span_id.hex()
    return json.dumps(plain).encode()


def status_of(response: httpx.Response) -> status_pb2.Status:
    """The google.rpc.Status of a refusal, read in the encoding that it states."""
    if response.headers["content-type"] == api.JSON:
        return json_format.Parse(response.content, status_pb2.Status())
    assert response.headers["content-type"] == api.PROTOBUF
    return status_pb2.Status.FromString(response.content)


def test_a_protobuf_export_is_durable_before_it_is_acknowledged(receiver: Receiver, tmp_path: Path) -> None:
    sent = body(span(1), span(2))
    response = receiver.post(sent)
    assert (response.status_code, response.headers["content-type"]) == (200, api.PROTOBUF)
    assert ExportTraceServiceResponse.FromString(response.content) == ExportTraceServiceResponse()
    again = Spool(tmp_path, Position(0, 0))
    found = list(again.read(Position(0, 0), ALL))
    assert [(record.body, record.received_unix_nano, record.signal) for record in found] == [(sent, NOW, "traces")]
    again.close()


def test_a_json_export_is_stored_as_the_same_protobuf(receiver: Receiver) -> None:
    response = receiver.post(as_json(span(1), span(2)), api.JSON)
    assert (response.status_code, response.headers["content-type"], response.json()) == (200, api.JSON, {})
    assert ExportTraceServiceRequest.FromString(receiver.stored()[0].body) == request(span(1), span(2))


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_gzip_body_is_stored_inflated(receiver: Receiver, kind: str) -> None:
    sent = as_json(span(1)) if kind == api.JSON else body(span(1))
    assert receiver.post(gzip.compress(sent), kind, **GZIP).status_code == 200
    assert ExportTraceServiceRequest.FromString(receiver.stored()[0].body) == request(span(1))


@pytest.mark.parametrize("kind", ["application/x-protobuf; charset=utf-8", "APPLICATION/X-PROTOBUF"])
def test_a_content_type_is_read_without_its_parameters_and_case(receiver: Receiver, kind: str) -> None:
    assert receiver.post(body(span(1)), kind, content_encoding="identity").status_code == 200


def test_an_export_without_spans_is_acknowledged_and_takes_no_room(receiver: Receiver) -> None:
    assert receiver.post(b"").status_code == 200
    assert receiver.post(body()).status_code == 200
    assert receiver.stored() == []


def test_a_sender_is_named_by_its_address_or_by_itself(receiver: Receiver) -> None:
    receiver.post(body(span(1)))
    receiver.post(body(span(2)), x_leverwatch_sender="load:abc")
    receiver.post(body(span(3)), x_leverwatch_sender="x" * 500)
    assert [record.sender for record in receiver.stored()] == ["10.0.0.7", "load:abc", "x" * 200]


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"content-type": "text/plain"}, "content-type 'text/plain'; taken: application/x-protobuf, application/json"),
        ({"content-type": ""}, "content-type ''; taken: "),
        ({"content-type": api.PROTOBUF, "content-encoding": "br"}, "content-encoding 'br'; taken: gzip, identity"),
    ],
)
def test_a_kind_or_encoding_that_is_not_taken_is_415(receiver: Receiver, headers: dict[str, str], told: str) -> None:
    response = receiver.send("POST", "/v1/traces", body(span(1)), headers)
    assert response.status_code == 415
    assert told in status_of(response).message
    assert receiver.stored() == []


@pytest.mark.parametrize(
    ("content", "kind", "headers", "told"),
    [
        (b"\xff\xff", api.PROTOBUF, {}, "body is not a sound ExportTraceServiceRequest (2 bytes)"),
        (body(span(1))[:-1], api.PROTOBUF, {}, "body is not a sound ExportTraceServiceRequest"),
        (b"{", api.JSON, {}, "not JSON"),
        (b'{"resourceSpans": {}', api.JSON, {}, "not JSON"),
        (b'{"resourceSpans": [1]}', api.JSON, {}, "not an ExportTraceServiceRequest"),
        (b'{"resourceSpans": [' + b"1" * 5000 + b"]}", api.JSON, {}, "not JSON"),
        (b"no gzip", api.PROTOBUF, GZIP, "incorrect header check"),
        (gzip.compress(body(span(1)))[:-4], api.PROTOBUF, GZIP, "the gzip body is cut short"),
        (b"", api.JSON, GZIP, "the gzip body is cut short"),
        (gzip.compress(body(span(1))) + gzip.compress(body(span(2))), api.PROTOBUF, GZIP, "bytes follow the end of the gzip body"),
        (gzip.compress(b"\xff"), api.PROTOBUF, GZIP, "body is not a sound ExportTraceServiceRequest (1 bytes)"),
    ],
)
def test_a_body_that_cannot_be_read_is_400_in_the_encoding_of_the_request(
    receiver: Receiver, content: bytes, kind: str, headers: dict[str, str], told: str
) -> None:
    response = receiver.post(content, kind, **headers)
    assert (response.status_code, response.headers["content-type"]) == (400, kind)
    status = status_of(response)
    assert (told in status.message, status.code) == (True, code_pb2.INVALID_ARGUMENT)
    assert receiver.stored() == []


def test_an_unsound_body_is_noted_for_the_ledger_with_its_sender_and_time(receiver: Receiver) -> None:
    receiver.post(b"\xff", x_leverwatch_sender="broken")
    assert receiver.refused == [("broken", NOW, "body is not a sound ExportTraceServiceRequest")]


@pytest.mark.parametrize("content", [bytes(1001), gzip.compress(bytes(1001)), gzip.compress(bytes(10_000_000))])
@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_body_beyond_the_bound_as_sent_or_as_inflated_is_413(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, content: bytes, kind: str
) -> None:
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", 1000)
    response = receiver.post(content, kind, **(GZIP if content[:1] == b"\x1f" else {}))
    assert (response.status_code, response.headers["content-type"]) == (413, kind)
    assert status_of(response).message == "the body is larger than 1000 bytes"


def test_a_body_at_the_bound_is_taken(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = body(span(1, attributes=[attribute("text", "x" * 2000)]))
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", len(sent))
    assert receiver.post(sent).status_code == 200
    assert receiver.post(gzip.compress(sent), **GZIP).status_code == 200
    assert receiver.post(sent + b"\x00").status_code == 413


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_full_spool_is_429_and_says_when_to_come_again(tmp_path: Path, kind: str) -> None:
    receiver = opened(tmp_path, limit_backlog_bytes=10)
    response = receiver.post(as_json(span(1)) if kind == api.JSON else body(span(1)), kind)
    assert (response.status_code, response.headers["retry-after"], response.headers["content-type"]) == (429, str(RETRY_AFTER_S), kind)
    status = status_of(response)
    assert (status.code, status.message) == (code_pb2.RESOURCE_EXHAUSTED, "0 bytes wait to be loaded; the bound is 10")
    receiver.door.spool.close()


def test_a_disk_that_refuses_is_told_and_the_same_body_may_come_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_file: int) -> None:
        msg = "no space left"
        raise OSError(msg)

    with monkeypatch.context() as broken:
        broken.setattr("os.fdatasync", failing)
        response = receiver.post(body(span(1)))
    assert (response.status_code, response.headers["retry-after"]) == (429, str(RETRY_AFTER_S))
    assert status_of(response).message == "the spool cannot be written: no space left"
    assert receiver.post(body(span(1))).status_code == 200
    assert len(receiver.stored()) == 1


def test_a_server_that_stops_is_503_and_says_when_to_come_again(receiver: Receiver) -> None:
    receiver.door.closed = True
    response = receiver.post(body(span(1)))
    assert (response.status_code, response.headers["retry-after"]) == (503, str(RETRY_AFTER_S))
    assert (status_of(response).code, status_of(response).message) == (code_pb2.UNAVAILABLE, "the server is stopping")
    assert receiver.stored() == []


def test_other_methods_and_paths_are_not_there(receiver: Receiver) -> None:
    assert receiver.send("GET", "/v1/traces", b"", {}).status_code == 405
    assert receiver.send("POST", "/v1/trace", body(span(1)), {}).status_code == 404
