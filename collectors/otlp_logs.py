"""An OTLP logs export in; at the door the few records that are read here come out, at loading their spans and evaluations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import attributes, evaluations, request_trace
from collectors.evaluations import Evaluation
from collectors.request_trace import RequestTraceError

NOT_READ = "a log record of a kind that is not read"
HELD_TEXT = "request_payload: holds the prompt in clear"
TOO_LONG = "a request_end record longer than 1 MiB"
LIMIT_PAYLOAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """The records of an export that are read, what was left out and why, and how many that is."""

    request: ExportLogsServiceRequest
    records: int
    dropped: Counter[str]


@dataclass(slots=True)
class Read:
    """What kept records say: a trace export and the number of its spans, evaluations, and why others say nothing."""

    spans: ExportTraceServiceRequest = field(default_factory=ExportTraceServiceRequest)
    span_count: int = 0
    evaluations: list[Evaluation] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


def kept(request: ExportLogsServiceRequest) -> Kept:
    """The records that are read, without any text: no body, and of the attributes those that carry a fact."""
    chosen, dropped, records = ExportLogsServiceRequest(), Counter[str](), 0
    for resource in request.resource_logs:
        owner = chosen.resource_logs.add()
        owner.resource.CopyFrom(resource.resource)
        for scope in resource.scope_logs:
            into = owner.scope_logs.add()
            into.scope.name = scope.scope.name
            for record in _of_scope(scope.scope.name, scope.log_records, dropped):
                into.log_records.append(record)
                records += 1
    return Kept(chosen, records, dropped)


def read(request: ExportLogsServiceRequest, received_unix_nano: int) -> Read:
    """What the records of a kept export say."""
    found = Read()
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            spans: list[Span] = []
            for record in scope.log_records:
                try:
                    if scope.scope.name == request_trace.SCOPE:
                        spans.append(_span(record))
                    else:
                        found.evaluations.append(_evaluation(record, resource.resource, received_unix_nano))
                except ValueError as error:  # ours, and text that is no Unicode
                    found.rejected[str(error)] += 1
            if spans:
                found.spans.MergeFromString(request_trace.export(spans, resource.resource.attributes))
                found.span_count += len(spans)
    return found


def _of_scope(scope: str, records: Any, dropped: Counter[str]) -> Iterator[LogRecord]:
    if scope == request_trace.SCOPE:
        yield from _ended(records, dropped)
        return
    for record in records:
        said = attributes.texts(record.attributes)
        if (record.event_name or said.get("event.name")) == evaluations.EVENT:
            yield _bare(record, {key: value for key, value in said.items() if evaluations.is_read(key)})
        else:
            dropped[NOT_READ] += 1


def _ended(records: Any, dropped: Counter[str]) -> Iterator[LogRecord]:
    """The records of requests that ended, with the facts that their payload records state."""
    facts: dict[str, dict[str, str]] = {}
    for record in records:
        said = attributes.texts(record.attributes)
        kind, request_id = said.get("event_type"), said.get("rid", "")
        if kind == request_trace.PAYLOAD:
            dropped[HELD_TEXT] += 1
            facts[request_id] = _facts(said)
        elif kind != request_trace.ENDED:
            dropped[NOT_READ] += 1
        elif len(said.get("payload", "")) > LIMIT_PAYLOAD_BYTES:
            dropped[TOO_LONG] += 1
        else:
            told = {name: said[name] for name in (*request_trace.FACTS, "payload") if name in said}
            yield _bare(record, facts.get(request_id, {}) | told)


def _facts(said: dict[str, str]) -> dict[str, str]:
    told = {"model": said["model"]} if "model" in said else {}
    text = said.get("payload", "")
    if len(text) > LIMIT_PAYLOAD_BYTES:
        return told
    try:
        payload = request_trace.parsed(text).get("payload")
    except RequestTraceError:
        return told
    return told | request_trace.facts_of(payload) if isinstance(payload, dict) else told


def _bare(record: LogRecord, said: dict[str, str]) -> LogRecord:
    bare = LogRecord(time_unix_nano=record.time_unix_nano, observed_time_unix_nano=record.observed_time_unix_nano, trace_id=record.trace_id)
    bare.attributes.extend(KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in said.items())
    return bare


def _span(record: LogRecord) -> Span:
    said = attributes.texts(record.attributes)
    return request_trace.span(request_trace.parsed(said.get("payload", "")), said, record.trace_id)


def _evaluation(record: LogRecord, resource: Resource, received_unix_nano: int) -> Evaluation:
    said = attributes.texts(resource.attributes) | attributes.texts(record.attributes)
    moment = record.time_unix_nano or record.observed_time_unix_nano
    return evaluations.of_event(said, moment or received_unix_nano, record.trace_id.hex())
