"""The kinds of recorded JSON, a row each: how it is told by its content, and what bodies for the door are made of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from collectors import imported, nccl, perf_metrics, recorded_requests, request_trace, response_bodies
from collectors.otlp_json import ROOTS, OtlpJsonError, plain_to_protobuf

RECORDS_A_BODY = 500


class NotLoadedError(ValueError):
    """Something in the file is not loaded; says where and why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a file: where it stands, its text, and the text parsed."""

    where: str
    text: bytes
    item: Any


Bodies = Iterator[bytes | NotLoadedError]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of recorded JSON, and the signal that it becomes."""

    name: str
    signal: str
    is_of: Callable[[Any], bool]
    bodies: Callable[[Sequence[Line], Path], Bodies]

    @property
    def is_otlp(self) -> bool:
        """Whether it may also stand as protobuf."""
        return self.name.startswith("otlp-")


def named(name: str) -> Kind:
    """The kind of a name. Raises NotLoadedError with the known ones."""
    found = next((kind for kind in KINDS if kind.name == name), None)
    if found is None:
        msg = f"--kind {name!r} is unknown; known: {', '.join(kind.name for kind in KINDS)}"
        raise NotLoadedError(msg)
    return found


def is_one(whole: Any) -> bool:
    """Whether a parsed file is one record, rather than a list of them."""
    return not isinstance(whole, list) or response_bodies.is_response_body(whole)


def _has_root(signal: str) -> Callable[[Any], bool]:
    root = ROOTS[signal]
    return lambda item: isinstance(item, dict) and (root in item or root.replace("resource", "resource_").lower() in item)


def _otlp(signal: str) -> Callable[[Sequence[Line], Path], Bodies]:
    def bodies(lines: Sequence[Line], _: Path) -> Bodies:
        for line in lines:
            try:
                yield plain_to_protobuf(line.item, signal)
            except (OtlpJsonError, AttributeError) as error:
                yield NotLoadedError(f"{line.where}: {error}")

    return bodies


def _is_request_trace(item: Any) -> bool:
    event = item.get("event") if isinstance(item, dict) and isinstance(item.get("event"), dict) else item
    return isinstance(event, dict) and str(event.get("schema", "")).startswith("dynamo.request.trace.")


def _request_trace(lines: Sequence[Line], _: Path) -> Bodies:
    """Logs exports as Dynamo sends them, without the prompts of their payload records: those are told to the door to be counted."""
    events: list[dict[str, Any]] = []
    for line in lines:
        try:
            events.append(request_trace.parsed(line.text))
        except request_trace.RequestTraceError as error:
            yield NotLoadedError(f"{line.where}: {error}")
    payloads = ((event, event.get("payload")) for event in events)
    facts = {request_trace.request_id_of(event): request_trace.facts_of(told) for event, told in payloads if isinstance(told, dict)}
    for start in range(0, len(events), RECORDS_A_BODY):
        request = ExportLogsServiceRequest()
        scope = request.resource_logs.add().scope_logs.add()
        scope.scope.name = request_trace.SCOPE
        for event in events[start : start + RECORDS_A_BODY]:
            request_trace.add_record(scope.log_records.add(), event, facts.get(request_trace.request_id_of(event), {}))
        yield request.SerializeToString()


def _perf_metrics(lines: Sequence[Line], path: Path) -> Bodies:
    return _from(perf_metrics.exports([line.item for line in lines], path.stat().st_mtime_ns), path)


def _nccl(lines: Sequence[Line], path: Path) -> Bodies:
    return _from(nccl.exports([line.item for line in lines]), path)


def _response_bodies(lines: Sequence[Line], path: Path) -> Bodies:
    return _from(response_bodies.exports([line.text for line in lines], datetime.fromtimestamp(path.stat().st_mtime, UTC)), path)


def _requests(lines: Sequence[Line], path: Path) -> Bodies:
    for one in recorded_requests.bodies((line.where, line.item) for line in lines):
        yield one if isinstance(one, bytes) else NotLoadedError(str(one) if str(one).startswith(str(path)) else f"{path}: {one}")


def _from(found: Iterator[bytes | Any], path: Path) -> Bodies:
    for one in found:
        yield one if isinstance(one, bytes) else NotLoadedError(f"{path}: {one}")


KINDS = (
    Kind("otlp-traces", "traces", _has_root("traces"), _otlp("traces")),
    Kind("otlp-metrics", "metrics", _has_root("metrics"), _otlp("metrics")),
    Kind("otlp-logs", "logs", _has_root("logs"), _otlp("logs")),
    Kind("dynamo-request-trace", "logs", _is_request_trace, _request_trace),
    Kind("trtllm-perf-metrics", "traces", perf_metrics.is_record, _perf_metrics),
    Kind("nccl-inspector", "metrics", nccl.is_record, _nccl),
    Kind("requests", "requests", imported.is_request, _requests),
    Kind("response-bodies", "traces", response_bodies.is_response_body, _response_bodies),
)
