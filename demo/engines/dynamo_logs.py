"""Dynamo's request trace (DYN_REQUEST_TRACE=1): a request record in, the log records of its end out, or the lines of the file sink.

Of each request that ended there are two: what was asked and answered, in clear, and what it took. They carry no trace.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Any

import msgspec
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord

from demo.engines import dynamo_body, dynamo_legs, wire
from demo.engines.dynamo import FRONTEND
from demo.engines.log_exports import EmittedLog
from demo.records import Request

SCOPE, SCHEMA = "dynamo.request_trace", "dynamo.request.trace.v1"
PAYLOAD, ENDED = "request_payload", "request_end"
ENDPOINT = "openai.chat_completion"
PROMPT = "a prompt in clear"
WRITTEN_NS = 30_000_000
"""From a request's end to its records' being written."""
DAY_MS = 86_400_000
SOURCE = wire.Source((("service.name", FRONTEND),), SCOPE)


def records(request: Request) -> Iterator[EmittedLog]:
    """The request's log records: first what it said, then what it took."""
    rid, observed_ns = dynamo_legs.request_id(request), request.ended_ns + WRITTEN_NS
    for event in events(request):
        named = {"model": request.at.model, "endpoint": ENDPOINT} if event["event_type"] == PAYLOAD else {}
        yield EmittedLog(observed_ns, SOURCE, _record(event, rid, named, observed_ns))


def request_trace_line(request: Request) -> dict[str, Any]:
    """The line of the file sink of what a request took. Its `timestamp` counts ms of the frontend's life, here of the day."""
    return {"timestamp": request.ended_ns // 1_000_000 % DAY_MS, "event": _ended(request)}


def events(request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both records as JSON objects."""
    return _payload(request), _ended(request)


def _payload(request: Request) -> dict[str, Any]:
    asked = {
        "messages": [{"role": "user", "content": PROMPT}],
        "model": request.at.model,
        "max_tokens": request.max_tokens,
        "stream": False,
        "temperature": request.temperature,
        "top_p": request.top_p,
    }
    said = {
        "request_id": dynamo_legs.request_id(request),
        "endpoint": ENDPOINT,
        "model": request.at.model,
        "request": asked,
        "response": None if request.outcome == "error" else dynamo_body.completion(request),
        "payload_complete": request.outcome == "ok",
    }
    return {**_head(PAYLOAD, request.started_ns), "event_source": "dynamo", "payload": said}


def _ended(request: Request) -> dict[str, Any]:
    took = {
        "request_id": dynamo_legs.request_id(request),
        "input_tokens": request.prompt_tokens,
        **(_served(request) if request.outcome != "error" else {}),
        "request_received_ms": request.started_ns // 1_000_000,
        **(_times(request) if request.outcome != "error" else {}),
        "total_time_ms": request.e2e_s * 1e3,
        "queue_depth": request.queue_depth,
        "worker": _worker(request),
        "replay": _replay(request),
    }
    return {**_head(ENDED, request.ended_ns), "request": took}


def _head(kind: str, at_ns: int) -> dict[str, Any]:
    return {"schema": SCHEMA, "event_type": kind, "event_time_unix_ms": at_ns // 1_000_000}


def _served(request: Request) -> dict[str, Any]:
    """What was answered; the hit rate is what the router hoped for when it chose."""
    hoped = request.cached_tokens / request.prompt_tokens if request.prompt_tokens else 0.0
    return {"output_tokens": request.output_tokens, "cached_tokens": request.cached_tokens, "kv_hit_rate": hoped}


def _times(request: Request) -> dict[str, float]:
    """The wait counts from the arrival, so that wait and prefill are the time to the first token where nothing had to move."""
    times = {
        "prefill_wait_time_ms": (request.frontend_s + request.queue_s) * 1e3,
        "prefill_time_ms": request.prefill_s * 1e3,
        "ttft_ms": request.ttft_s * 1e3,
    }
    itl_ms = dynamo_legs.itl_ms(request)
    if itl_ms is not None:
        times["avg_itl_ms"] = itl_ms
    if request.prefill_at is not None:
        times["kv_transfer_estimated_latency_ms"] = dynamo_legs.handed_s(request) * 1e3
    return times


def _worker(request: Request) -> dict[str, int]:
    prefill, decode = (dynamo_legs.worker_id(at.replica) for at in (request.prefill_at or request.at, request.at))
    return {"prefill_worker_id": prefill, "prefill_dp_rank": 0, "decode_worker_id": decode, "decode_dp_rank": 0}


def _replay(request: Request) -> dict[str, Any]:
    """Hashes in number and kind as of the prompt's blocks, but each of this request alone: the record does not know what prompts share."""
    size = request.at.kv_block_tokens
    blocks = -(-request.prompt_tokens // size)
    drawn = hashlib.shake_128(request.request_key).digest(8 * blocks)
    return {"trace_block_size": size, "input_length": request.prompt_tokens, "input_sequence_hashes": struct.unpack(f">{blocks}Q", drawn)}


def _record(event: dict[str, Any], rid: str, named: dict[str, str], observed_ns: int) -> bytes:
    kind = event["event_type"]
    record = LogRecord(
        time_unix_nano=event["event_time_unix_ms"] * 1_000_000,
        observed_time_unix_nano=observed_ns,
        severity_number=SEVERITY_NUMBER_INFO,
        severity_text="INFO",
    )
    record.body.string_value = kind
    for key, value in ({"schema": SCHEMA, "event_type": kind, "rid": rid} | named).items():
        record.attributes.add(key=key).value.string_value = value
    record.attributes.add(key="payload_complete").value.bool_value = True
    record.attributes.add(key="payload").value.string_value = msgspec.json.encode(event).decode()
    encoded: bytes = record.SerializeToString()
    return encoded
