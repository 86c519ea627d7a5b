"""TensorRT-LLM's per-request records (`/perf_metrics`, its JSON lines) in, trace exports out: a span per server that took part.

Their times are of a steady clock: differences are right, the moment is not known. The newest time of a file is taken for the file's own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SCOPE = "trtllm.perf_metrics"
LEGS = {"ctx_perf_metrics": ("prefill", "ctx_server"), "gen_perf_metrics": ("decode", "gen_server")}
SPANS_A_BODY = 512
# A duration, and the two times that it lies between.
DURATIONS = {
    "queue_s": ("arrival_time", "first_scheduled_time"),
    "prefill_s": ("first_scheduled_time", "first_token_time"),
    "ttft_s": ("arrival_time", "first_token_time"),
    "decode_s": ("first_token_time", "last_token_time"),
    "e2e_s": ("arrival_time", "last_token_time"),
    "kv_transfer_s": ("kv_cache_transfer_start", "kv_cache_transfer_end"),
}
BLOCKS = ("num_total_allocated_blocks", "num_new_allocated_blocks", "num_reused_blocks", "num_missed_blocks")
DRAFTS = ("total_accepted_draft_tokens", "total_draft_tokens")


class PerfMetricsError(ValueError):
    """A record is no perf-metrics record; says what is missing."""


@dataclass(frozen=True, slots=True)
class _Leg:
    """What one server says of a request."""

    phase: str
    server: str
    request_id: str
    metrics: Mapping[str, Any]
    timing: Mapping[str, Any]

    def time(self, name: str) -> float | None:
        value = self.timing.get(name)
        is_time = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 < value < 1e10
        return float(value) if is_time else None  # type: ignore[arg-type]


def is_record(item: object) -> bool:
    """Whether a parsed JSON object is such a record, of one server or of a pair."""
    return isinstance(item, dict) and ("perf_metrics" in item or any(key in item for key in LEGS))


def exports(records: Sequence[Mapping[str, Any]], file_unix_nano: int) -> Iterator[bytes | PerfMetricsError]:
    """Trace exports of the records of one file, with an error in the place of each that cannot be read."""
    read: list[tuple[Mapping[str, Any], list[_Leg]]] = []
    for number, record in enumerate(records, 1):
        try:
            read.append((record, _legs(record)))
        except PerfMetricsError as error:
            yield PerfMetricsError(f"record {number}: {error}")
    newest = max((leg.time("last_token_time") or 0.0 for _, legs in read for leg in legs), default=0.0)
    offset_ns = file_unix_nano - round(newest * 1e9)
    for start in range(0, len(read), SPANS_A_BODY):
        request = ExportTraceServiceRequest()
        for record, legs in read[start : start + SPANS_A_BODY]:
            for leg in legs:
                _add(request, record, leg, offset_ns)
        yield request.SerializeToString()


def _legs(record: Mapping[str, Any]) -> list[_Leg]:
    if not is_record(record):
        msg = "an object with perf_metrics, or with ctx_perf_metrics and gen_perf_metrics, is taken"
        raise PerfMetricsError(msg)
    pairs = [(LEGS[key], record[key], record) for key in LEGS if record.get(key)] or [(("", ""), record, record)]
    return [_leg(phase, str(owner.get(server) or ""), said) for (phase, server), said, owner in pairs]


def _leg(phase: str, server: str, said: Any) -> _Leg:
    metrics = said.get("perf_metrics") if isinstance(said, dict) else None
    timing = metrics.get("timing_metrics") if isinstance(metrics, dict) else None
    if not isinstance(metrics, dict) or not isinstance(timing, dict):
        msg = "perf_metrics.timing_metrics is missing"
        raise PerfMetricsError(msg)
    leg = _Leg(phase, server, str(said.get("request_id", "")), metrics, timing)
    first, last = leg.time("arrival_time"), leg.time("last_token_time")
    if first is None or last is None or last < first:
        msg = "arrival_time or last_token_time is missing, or the last comes before the first"
        raise PerfMetricsError(msg)
    return leg


def _add(request: ExportTraceServiceRequest, record: Mapping[str, Any], leg: _Leg, offset_ns: int) -> None:
    owner = request.resource_spans.add()
    if leg.server:
        owner.resource.attributes.append(KeyValue(key="service.instance.id", value=AnyValue(string_value=leg.server)))
    scope = owner.scope_spans.add()
    scope.scope.name = SCOPE
    whole = msgspec.json.encode(record, order="sorted")
    first, last = leg.time("arrival_time") or 0.0, leg.time("last_token_time") or 0.0
    made = Span(
        trace_id=hashlib.blake2b(whole, digest_size=16).digest(),
        span_id=hashlib.blake2b(whole + leg.phase.encode(), digest_size=8).digest(),
        name=f"perf_metrics {leg.phase}".rstrip(),
        start_time_unix_nano=offset_ns + round(first * 1e9),
        end_time_unix_nano=offset_ns + round(last * 1e9),
    )
    made.attributes.append(KeyValue(key="request_id", value=AnyValue(string_value=leg.request_id)))
    if leg.phase:  # each server counts ids for itself: nothing else says that both legs are one request
        made.attributes.append(KeyValue(key="pair", value=AnyValue(string_value=made.trace_id.hex())))
    made.attributes.append(KeyValue(key="clock", value=AnyValue(string_value="steady, placed by the file's time")))
    for name, value in _numbers(leg):
        made.attributes.append(KeyValue(key=name, value=AnyValue(double_value=value)))
    scope.spans.append(made)


def _numbers(leg: _Leg) -> Iterator[tuple[str, float]]:
    for name, (start, end) in DURATIONS.items():
        since, until = leg.time(start), leg.time(end)
        if since is not None and until is not None and until >= since:
            yield name, until - since
    for group, names in (("kv_cache_metrics", BLOCKS), ("speculative_decoding", DRAFTS), ("", ("first_iter", "last_iter"))):
        owner = leg.metrics.get(group) if group else leg.metrics
        for name in names:
            value = owner.get(name) if isinstance(owner, dict) else None
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
                yield name, float(value)
    size = leg.timing.get("kv_cache_size")
    if isinstance(size, int | float) and not isinstance(size, bool) and 0 < size < 1e18:
        yield "kv_cache_size", float(size)
