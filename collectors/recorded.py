"""A recorded file in, bodies of trace exports out: raw protobuf, OTLP/JSON, or a Collector's JSON lines, told by content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.otlp_json import OtlpJsonError, plain_to_protobuf

OTHER_SIGNALS = {"resourceMetrics": "metrics", "resource_metrics": "metrics", "resourceLogs": "logs", "resource_logs": "logs"}


class NotLoadedError(ValueError):
    """Something in the file is not loaded; says where and why. `is_known` where it is a sound signal not read yet."""

    def __init__(self, message: str, *, is_known: bool = False) -> None:
        super().__init__(message)
        self.is_known = is_known


def bodies(path: Path) -> Iterator[bytes | NotLoadedError]:
    """The trace exports in a file in order; an error stands in the place of what could not be read.

    Raises:
        OSError: the file cannot be read.
    """
    content = path.read_bytes()
    if _is_trace_export(content):  # asked first: an export may begin as JSON does, with a newline and a brace
        yield content
    elif content.lstrip()[:1] in (b"{", b"["):
        yield from _json_bodies(path, content)
    else:
        kind = _other_signal(content)
        msg = f"{path}: neither a protobuf trace export nor OTLP/JSON ({len(content)} bytes)"
        yield _not_read_yet(str(path), kind) if kind else NotLoadedError(msg)


def _not_read_yet(where: str, kind: str) -> NotLoadedError:
    return NotLoadedError(f"{where}: an export of {kind}; only traces are read so far", is_known=True)


def _is_trace_export(content: bytes) -> bool:
    try:
        request = ExportTraceServiceRequest.FromString(content)
    except DecodeError:
        return False
    spans = [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return bool(spans) and all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)


def _other_signal(content: bytes) -> str | None:
    try:
        metrics = ExportMetricsServiceRequest.FromString(content)
        named = [metric.name for resource in metrics.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics]
        if named and all(name.isprintable() and name for name in named):
            return "metrics"
    except DecodeError:
        pass
    try:
        logs = ExportLogsServiceRequest.FromString(content)
        records = [record for resource in logs.resource_logs for scope in resource.scope_logs for record in scope.log_records]
        if records and any(record.time_unix_nano or record.observed_time_unix_nano for record in records):
            return "logs"
    except DecodeError:
        pass
    return None


def _json_bodies(path: Path, content: bytes) -> Iterator[bytes | NotLoadedError]:
    try:
        whole = json.loads(content)
    except (ValueError, RecursionError):
        lines = content.splitlines()
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _json_line(f"{path}:{number}", line)
        return
    for item in whole if isinstance(whole, list) else [whole]:
        yield _json_export(str(path), item)


def _json_line(where: str, line: bytes) -> bytes | NotLoadedError:
    try:
        return _json_export(where, json.loads(line))
    except (ValueError, RecursionError) as error:
        return NotLoadedError(f"{where}: not JSON: {error}")


def _json_export(where: str, item: Any) -> bytes | NotLoadedError:
    if not isinstance(item, dict):
        return NotLoadedError(f"{where}: a JSON object with resourceSpans is taken, not {type(item).__name__}")
    for key, kind in OTHER_SIGNALS.items():
        if key in item:
            return _not_read_yet(where, kind)
    if "resourceSpans" not in item and "resource_spans" not in item:
        return NotLoadedError(f"{where}: no resourceSpans in it; keys: {', '.join(list(item)[:5])}")
    try:
        return plain_to_protobuf(item)
    except OtlpJsonError as error:
        return NotLoadedError(f"{where}: {error}")
