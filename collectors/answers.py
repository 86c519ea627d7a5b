"""What the door took in, OTLP's answer out: empty, or what was rejected of the export and why."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from collectors.entry import Entry

# A signal's response, and the field of its partial success that counts.
RESPONSES: dict[str, tuple[type[Message], str]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records"),
}


def answer(signal: str, taken: Entry) -> Message:
    """The response to an export that was acknowledged. What is sound and not kept is no rejection."""
    kind, counter = RESPONSES[signal]
    made: Any = kind()
    if taken.rejected:
        setattr(made.partial_success, counter, taken.rejected_count)
        made.partial_success.error_message = taken.message
    response: Message = made
    return response
