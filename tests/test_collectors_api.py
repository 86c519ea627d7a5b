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
import pyarrow as pa
import pytest
from collectors_bodies import attribute, body, request, span
from collectors_metrics import gauge, logs, metrics, point, record
from fastapi import FastAPI
from google.protobuf import json_format
from google.rpc import code_pb2, status_pb2
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

from collectors import api, decode
from collectors.door import RETRY_AFTER_S, Door
from collectors.ledger import Note
from collectors.spool import Spool
from collectors.spool_records import Position, Record

ALL = 1 << 40
NOW = 1_700_000_000_000_000_000
GZIP, ZSTD = {"content_encoding": "gzip"}, {"content_encoding": "zstd"}


def gzipped(content: bytes) -> bytes:
    """Without the time of day in it: the names of tests, which hold their input, are the same in each worker."""
    return gzip.compress(content, mtime=0)


def zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, "zstd", asbytes=True)
    return packed


@dataclass
class Receiver:
    """The receiver under test: its door and spool, and the application that is asked."""

    door: Door
    application: FastAPI
    noted: list[Note]

    def send(self, method: str, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.application, client=("10.0.0.7", 5000))
            async with httpx.AsyncClient(transport=transport, base_url="http://collector") as client:
                return await client.request(method, path, content=content, headers=headers)

        return asyncio.run(ask())

    def post(self, content: bytes, kind: str = api.PROTOBUF, path: str = "/v1/traces", **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.send("POST", path, content, {"content-type": kind, **named})

    def stored(self) -> list[Record]:
        return list(self.door.sink.read(Position(0, 0), ALL))


def opened(folder: Path, limit_backlog_bytes: int = ALL) -> Receiver:
    noted: list[Note] = []
    spool = Spool(folder, Position(0, 0), limit_backlog_bytes=limit_backlog_bytes)
    door = Door(spool, lambda: NOW, noted.append, decode.check)
    application = FastAPI()
    application.include_router(api.router(door))
    application.include_router(api.evaluations_router(door))
    return Receiver(door, application, noted)


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    found = opened(tmp_path)
    yield found
    found.door.sink.close()


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
    assert receiver.post(gzipped(sent), kind, **GZIP).status_code == 200
    assert ExportTraceServiceRequest.FromString(receiver.stored()[0].body) == request(span(1))


def test_a_gzip_body_of_many_members_is_stored_whole(receiver: Receiver) -> None:
    first, second = body(span(1)), body(span(2))
    members = [first, b"", second[:7], second[7:]]
    assert receiver.post(b"".join(map(gzipped, members)), **GZIP).status_code == 200
    assert receiver.stored()[0].body == first + second


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_zstd_body_is_stored_inflated(receiver: Receiver, kind: str) -> None:
    sent = as_json(span(1)) if kind == api.JSON else body(span(1))
    assert receiver.post(zstd(sent), kind, **ZSTD).status_code == 200
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
        ({"content-type": api.PROTOBUF, "content-encoding": "br"}, "content-encoding 'br'; taken: gzip, zstd, identity"),
    ],
)
def test_a_kind_or_encoding_that_is_not_taken_is_415(receiver: Receiver, headers: dict[str, str], told: str) -> None:
    response = receiver.send("POST", "/v1/traces", body(span(1)), headers)
    assert response.status_code == 415
    assert told in status_of(response).message
    assert receiver.stored() == []
    [note] = receiver.noted
    assert (note.sender, note.signal, note.count, note.reason.partition(" ")[0]) == ("10.0.0.7", "traces", 1, told.partition(" ")[0])


@pytest.mark.parametrize("path", ["/v1/requests", "/api/evaluations"])
def test_what_is_too_large_is_counted_on_every_path(receiver: Receiver, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", 10)
    receiver.application.include_router(api.requests_router(receiver.door))
    receiver.application.include_router(api.evaluations_router(receiver.door))
    assert receiver.send("POST", path, b"[" + b" " * 10 + b"]", {"content-type": "application/json"}).status_code == 413
    assert [(note.signal, note.reason) for note in receiver.noted] == [(path.rpartition("/")[2], "export is too large")]


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
        (gzipped(body(span(1)))[:-4], api.PROTOBUF, GZIP, "the gzip body is cut short"),
        (b"", api.JSON, GZIP, "the gzip body is cut short"),
        (gzipped(body(span(1))) + b"rest", api.PROTOBUF, GZIP, "incorrect header check"),
        (gzipped(body(span(1))) + gzipped(b"x")[:-4], api.PROTOBUF, GZIP, "the gzip body is cut short"),
        (gzipped(b"") * 5000, api.PROTOBUF, GZIP, "the gzip body has more than 4096 members"),
        (b"no zstd", api.PROTOBUF, ZSTD, "not a whole zstd body"),
        (b"", api.PROTOBUF, ZSTD, "the zstd body is cut short"),
        (zstd(body(span(1)))[:-4], api.PROTOBUF, ZSTD, "not a whole zstd body"),
        (zstd(body(span(1))) + b"rest", api.PROTOBUF, ZSTD, "not a whole zstd body"),
        (gzipped(b"\xff"), api.PROTOBUF, GZIP, "body is not a sound ExportTraceServiceRequest (1 bytes)"),
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
    assert receiver.noted == [Note("broken", "traces", NOW, "body is not a sound ExportTraceServiceRequest")]


@pytest.mark.parametrize(
    ("content", "kind", "headers", "reason"),
    [
        (b"{", api.JSON, {}, "body is not sound OTLP/JSON"),
        (b"no gzip", api.PROTOBUF, GZIP, "body that cannot be inflated"),
        (bytes(1001), api.PROTOBUF, {}, "export is too large"),
        (b"\xff", api.PROTOBUF, {}, "body is not a sound ExportTraceServiceRequest"),
    ],
)
def test_every_body_that_is_refused_counts_once(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, content: bytes, kind: str, headers: dict[str, str], reason: str
) -> None:
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", 1000)
    assert receiver.post(content, kind, **headers).status_code in (400, 413)
    assert receiver.noted == [Note("10.0.0.7", "traces", NOW, reason)]


@pytest.mark.parametrize("content", [bytes(1001), *(packed(bytes(size)) for packed in (gzipped, zstd) for size in (1001, 10_000_000))])
@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_body_beyond_the_bound_as_sent_or_as_inflated_is_413(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, content: bytes, kind: str
) -> None:
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", 1000)
    response = receiver.post(content, kind, **{b"\x1f": GZIP, b"\x28": ZSTD}.get(content[:1], {}))
    assert (response.status_code, response.headers["content-type"]) == (413, kind)
    assert status_of(response).message == "the body is larger than 1,000 bytes"


def test_a_body_at_the_bound_is_taken(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = body(span(1, attributes=[attribute("text", "x" * 2000)]))
    monkeypatch.setattr(api, "LIMIT_BODY_BYTES", len(sent))
    assert receiver.post(sent).status_code == 200
    assert receiver.post(gzipped(sent), **GZIP).status_code == 200
    assert receiver.post(sent + b"\x00").status_code == 413


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_full_spool_is_429_and_says_when_to_come_again(tmp_path: Path, kind: str) -> None:
    receiver = opened(tmp_path, limit_backlog_bytes=10)
    response = receiver.post(as_json(span(1)) if kind == api.JSON else body(span(1)), kind)
    assert (response.status_code, response.headers["retry-after"], response.headers["content-type"]) == (429, str(RETRY_AFTER_S), kind)
    status = status_of(response)
    assert (status.code, status.message) == (code_pb2.RESOURCE_EXHAUSTED, "0 bytes wait to be loaded; the bound is 10")
    receiver.door.sink.close()


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


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_metrics_export_is_stored_whole_and_what_cannot_be_taken_of_it_is_told(receiver: Receiver, kind: str) -> None:
    sent = metrics(gauge("g", point(1.0), point(2.0, at=0)), service__name="x")
    content = sent.SerializeToString() if kind == api.PROTOBUF else json_format.MessageToJson(sent).encode()
    response = receiver.post(content, kind, "/v1/metrics")
    assert (response.status_code, response.headers["content-type"]) == (200, kind)
    told = ExportMetricsServiceResponse()
    _ = told.ParseFromString(response.content) if kind == api.PROTOBUF else json_format.Parse(response.content, told)
    assert told.partial_success.rejected_data_points == 1
    assert told.partial_success.error_message == "1 of the time of a data point is missing or out of range"
    assert [(record.signal, record.body) for record in receiver.stored()] == [("metrics", sent.SerializeToString())]


def test_a_metrics_export_that_is_taken_whole_is_answered_with_nothing(receiver: Receiver) -> None:
    assert receiver.post(metrics(gauge("g", point(1.0))).SerializeToString(), path="/v1/metrics").content == b""


@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_of_a_logs_export_only_what_is_read_is_stored_and_the_rest_is_no_rejection(receiver: Receiver, kind: str) -> None:
    said = {"gen_ai.evaluation.name": "n", "gen_ai.evaluation.score.value": 0.5, "gen_ai.evaluation.explanation": "a secret"}
    sent = logs(record(attributes=said, event_name="gen_ai.evaluation.result"), record(body={"string_value": "a secret"}))
    plain = json_format.MessageToDict(sent)
    plain["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["traceId"] = "01" * 16
    content = sent.SerializeToString() if kind == api.PROTOBUF else json.dumps(plain).encode()
    response = receiver.post(content, kind, "/v1/logs")
    assert (response.status_code, response.content) == (200, b"" if kind == api.PROTOBUF else b"{}")
    found = receiver.stored()
    assert ([record.signal for record in found], b"secret" in found[0].body, b"gen_ai.evaluation.name" in found[0].body) == (
        ["logs"],
        False,
        True,
    )
    assert [(note.signal, note.count, note.is_dropped) for note in receiver.noted] == [("logs", 1, True)]


@pytest.mark.parametrize("signal", ["metrics", "logs"])
def test_a_broken_metrics_or_logs_export_is_400_and_noted_under_its_signal(receiver: Receiver, signal: str) -> None:
    response = receiver.post(b"\xff\xff", path=f"/v1/{signal}")
    assert response.status_code == 400
    assert status_of(response).message == f"body is not a sound Export{signal.title()}ServiceRequest (2 bytes)"
    assert [(note.signal, note.reason) for note in receiver.noted] == [
        (signal, f"body is not a sound Export{signal.title()}ServiceRequest")
    ]
    assert receiver.post(b'{"resourceMetrics": [1], "resourceLogs": [1]}', api.JSON, f"/v1/{signal}").status_code == 400


@pytest.mark.parametrize("path", ["/v1/metrics", "/v1/traces"])
def test_json_that_is_nested_too_deep_is_400(receiver: Receiver, path: str) -> None:
    deep = b'{"resourceSpans": ' + b'{"a": [' * 50_000
    assert receiver.post(deep, api.JSON, path).status_code == 400


def test_a_full_spool_and_a_stopping_server_answer_metrics_as_they_answer_traces(tmp_path: Path) -> None:
    receiver = opened(tmp_path, limit_backlog_bytes=10)
    content = metrics(gauge("g", point(1.0))).SerializeToString()
    assert receiver.post(content, path="/v1/metrics").status_code == 429
    receiver.door.closed = True
    assert receiver.post(content, path="/v1/metrics").status_code == 503
    receiver.door.sink.close()


def post_evaluations(receiver: Receiver, content: object) -> httpx.Response:
    return receiver.send("POST", "/api/evaluations", json.dumps(content).encode(), {"content-type": api.JSON})


def test_the_description_of_the_api_says_the_fields_of_an_evaluation(receiver: Receiver) -> None:
    content = receiver.application.openapi()["paths"]["/api/evaluations"]["post"]["requestBody"]["content"]
    one, many = content[api.JSON]["schema"]["anyOf"]
    assert (many["items"], one["required"], "lever" in one["properties"]) == (one, ["suite", "score"], True)


def test_posted_evaluations_are_durable_when_they_are_answered(receiver: Receiver) -> None:
    one = {"suite": "mmlu", "score": 0.5}
    assert post_evaluations(receiver, one).json() == {"taken": 1}
    assert post_evaluations(receiver, [one, one]).json() == {"taken": 2}
    assert [(record.signal, json.loads(record.body)) for record in receiver.stored()] == [("evaluations", one), ("evaluations", [one, one])]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([{"suite": "a", "score": 1}, {"suite": "a"}], "row 1: Object missing required field `score`"),
        ({"suite": "a", "score": "x"}, "row 0: Expected `float`, got `str` - at `$.score`"),
        ({"suite": "", "score": 1}, "row 0: suite is empty"),
        ({"suite": "a", "score": 1, "lever": "speculaton"}, "row 0: lever 'speculaton' is unknown; did you mean 'speculation'?"),
        ({"suite": "a", "score": 1, "kind": "vibes"}, "row 0: Invalid enum value 'vibes' - at `$.kind`"),
        ({"suite": "a", "score": 1, "n": -1}, "row 0: n = -1: a whole number from 0 on is taken"),
        ({"suite": "a", "score": 1, "when": "now"}, "row 0: Object contains unknown field `when`"),
        (7, "row 0: Expected `object`, got `int`"),
    ],
)
def test_an_evaluation_that_cannot_be_taken_is_named_by_row_and_field_and_none_is_stored(
    receiver: Receiver, content: object, told: str
) -> None:
    response = post_evaluations(receiver, content)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["message"][: len(told)]) == (400, "evaluation", told)
    assert receiver.stored() == []
    assert [note.signal for note in receiver.noted] == ["evaluations"]


@pytest.mark.parametrize(("method", "path"), [("POST", "/"), ("POST", "/v1/trace"), ("GET", "/v1/traces"), ("GET", "/api/report")])
@pytest.mark.parametrize("kind", [api.PROTOBUF, api.JSON])
def test_a_wrong_path_is_told_the_right_ones_and_the_port_of_the_pages(receiver: Receiver, method: str, path: str, kind: str) -> None:
    receiver.application.include_router(api.elsewhere_router(8080))
    response = receiver.send(method, path, b"", {"content-type": kind})
    told = status_of(response).message
    assert response.status_code == 404
    assert told.startswith(f"{method} {path} is nothing here: OTLP is sent by POST to /v1/traces, /v1/metrics, /v1/logs; ")
    assert told.endswith("pages and API are on port 8080")
