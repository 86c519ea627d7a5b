"""Bodies of metrics, logs, scrapes and evaluations in; what the door takes of them out, and why not the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from collectors import evaluations, imported, otlp_logs, otlp_metrics
from collectors.evaluations import EvaluationError
from collectors.imported import ImportedError
from collectors.samples import Skipped

LIMIT_POINTS = 1_000_000
TOO_LARGE = "export is too large"
UNSOUND_METRICS = "body is not a sound ExportMetricsServiceRequest"
UNSOUND_LOGS = "body is not a sound ExportLogsServiceRequest"
UNSOUND_REQUESTS = "body is no array of requests"
UNSOUND_EVALUATION = "an evaluation that cannot be taken"


class UnsoundBodyError(ValueError):
    """The body is not what it says it is, or beyond a limit; sending it again will not help. `reason` is the ledger's, without figures."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Entry:
    """What was taken of a body: the bytes for the spool, the number of items in them, and why others were left out.

    `dropped` are sound and not kept; `rejected` stay in the bytes and are counted when they are loaded.
    """

    body: bytes
    items: int
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)

    @property
    def rejected_count(self) -> int:
        """How many items cannot be taken."""
        return self.rejected.total()

    @property
    def message(self) -> str:
        """Why, with how many each; empty where all are taken."""
        return "; ".join(f"{count} of {reason}" for reason, count in self.rejected.most_common(10))


def of_metrics(body: bytes) -> Entry:
    """A metrics export, whole. Raises UnsoundBodyError."""
    try:
        request = ExportMetricsServiceRequest.FromString(body)
    except DecodeError as error:
        msg = f"{UNSOUND_METRICS} ({len(body)} bytes)"
        raise UnsoundBodyError(msg, UNSOUND_METRICS) from error
    count, wrong = 0, Counter[str]()
    for point in otlp_metrics.points(request, (), ""):
        count += 1
        if isinstance(point, Skipped):
            wrong[point.reason] += 1
        if count > LIMIT_POINTS:
            msg = f"more than {LIMIT_POINTS:,} data points in one export"
            raise UnsoundBodyError(msg, TOO_LARGE)
    return Entry(body, count, rejected=wrong)


def of_logs(body: bytes) -> Entry:
    """A logs export without the records that are not read, and without any text. Raises UnsoundBodyError."""
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        msg = f"{UNSOUND_LOGS} ({len(body)} bytes)"
        raise UnsoundBodyError(msg, UNSOUND_LOGS) from error
    kept = otlp_logs.kept(request)
    return Entry(kept.request.SerializeToString() if kept.records else b"", kept.records, kept.dropped)


def of_spooled_logs(body: bytes) -> Entry:
    """A logs export as `of_logs` left it, whose bare records are not to be chosen from again. Raises UnsoundBodyError."""
    try:
        request = ExportLogsServiceRequest.FromString(body)
    except DecodeError as error:
        raise UnsoundBodyError(UNSOUND_LOGS, UNSOUND_LOGS) from error
    return Entry(body, sum(len(scope.log_records) for resource in request.resource_logs for scope in resource.scope_logs))


def of_evaluations(body: bytes) -> Entry:
    """Posted evaluations, all or none. Raises UnsoundBodyError."""
    try:
        return Entry(body, len(evaluations.posted(body)))
    except EvaluationError as error:
        raise UnsoundBodyError(str(error), UNSOUND_EVALUATION) from error


def of_requests(body: bytes) -> Entry:
    """Canonical requests, those that can be taken. Raises UnsoundBodyError."""
    try:
        found, wrong = imported.taken(body)
    except ImportedError as error:
        raise UnsoundBodyError(str(error), UNSOUND_REQUESTS) from error
    return Entry(body, len(found) + len(wrong), rejected=Counter(wrong))


CHECKS: Mapping[str, Callable[[bytes], Entry]] = {
    "metrics": of_metrics,
    "logs": of_logs,
    "evaluations": of_evaluations,
    "requests": of_requests,
    "scrapes": lambda body: Entry(body, 1),
}
SPOOLED: Mapping[str, Callable[[bytes], Entry]] = {**CHECKS, "logs": of_spooled_logs}
