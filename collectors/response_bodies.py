"""Recorded response bodies in, one JSON line each; OTLP trace exports out, with the span that the response tap would have sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors.json_words import json_word
from collectors.response_tap import NAME, SCOPE, Answer, named

SPANS_A_BODY = 512
ENVELOPE = ("request_id", "trace_id", "received_at", "body")


class ResponseBodyError(ValueError):
    """A line holds no response body that can be stored; says which line, and what is taken."""


def exports(lines: Iterable[bytes | str], now: datetime) -> Iterator[bytes | ResponseBodyError]:
    """Trace exports of up to 512 spans, in order; an error stands in the place of a line that could not be read.

    A line is an answer as an engine gave it, or `{"request_id", "trace_id", "received_at", "body"}`. The same line gives the same span
    ids. The time is `received_at`, else what the answer states, else `now`.
    """
    export = _empty()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            span = _span(json.loads(line), now)
        except (ValueError, RecursionError) as error:
            yield ResponseBodyError(f"line {number}: {error}")
            continue
        spans = export.resource_spans[0].scope_spans[0].spans
        spans.append(span)
        if len(spans) == SPANS_A_BODY:
            yield export.SerializeToString()
            export = _empty()
    if export.resource_spans[0].scope_spans[0].spans:
        yield export.SerializeToString()


def is_response_body(item: Any) -> bool:
    """Whether a JSON line is an answer of an LLM server, or the envelope of one."""
    if isinstance(item, list):
        return bool(item) and all(isinstance(entry, dict) and "meta_info" in entry for entry in item)
    if not isinstance(item, dict):
        return False
    if "body" in item:
        return set(item) <= set(ENVELOPE)
    return "meta_info" in item or ("id" in item and ("choices" in item or "usage" in item))


def _empty() -> ExportTraceServiceRequest:
    export = ExportTraceServiceRequest()
    export.resource_spans.add().scope_spans.add().scope.name = SCOPE
    return export


def _span(item: Any, now: datetime) -> Span:
    """The span of one line.

    Raises:
        ResponseBodyError: says what came and what is taken.
    """
    envelope = item if isinstance(item, dict) and "body" in item else {"body": item}
    _check(item, envelope)
    body, answer = envelope["body"], Answer()
    answer.add(body)
    facts = answer.facts()
    request_id = envelope.get("request_id") or facts.get("request_id")
    if not request_id:
        msg = "no id: an answer's `id` or `meta_info.id`, or `request_id` beside `body` is taken"
        raise ResponseBodyError(msg)
    facts.update(request_id=request_id, is_streamed=False)
    facts.update({"join_key": f"{request_id}-0"} if _is_numbered(body, request_id) else {})
    facts.update({"outcome": "error"} if answer.has_failed else {})
    trace_id = envelope.get("trace_id") or _digest(request_id, 16).hex()
    started_ns, ended_ns = _times(envelope.get("received_at"), body, now)
    span = Span(
        trace_id=bytes.fromhex(trace_id),
        span_id=_digest(f"{trace_id} {request_id} {json.dumps(body, sort_keys=True)}", 8),
        name=NAME,
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=started_ns,
        end_time_unix_nano=ended_ns,
    )
    for key, value in named(facts).items():
        _set(span.attributes.add(key=key).value, value)
    return span


def _check(item: Any, envelope: dict[str, Any]) -> None:
    if not is_response_body(item) or not (isinstance(envelope["body"], dict) or is_response_body(envelope["body"])):
        keys = f"keys {', '.join(list(item)[:5])}" if isinstance(item, dict) else json_word(item)
        msg = f"no response body ({keys}): an answer with `id` or `meta_info`, or an object of {', '.join(ENVELOPE)} is taken"
        raise ResponseBodyError(msg)
    trace_id, request_id = envelope.get("trace_id"), envelope.get("request_id")
    if trace_id is not None and not (isinstance(trace_id, str) and re.fullmatch(r"(?!0{32})[0-9a-f]{32}", trace_id)):
        msg = f"trace_id {trace_id!r}: 32 hex digits in lower case are taken"
        raise ResponseBodyError(msg)
    if request_id is not None and not isinstance(request_id, str):
        msg = f"request_id {request_id!r}: a text is taken"
        raise ResponseBodyError(msg)


def _is_numbered(body: Any, request_id: str) -> bool:
    """Whether the answer is of vLLM's /v1/completions, whose engine span has the number of its prompt behind the id."""
    return isinstance(body, dict) and body.get("object") == "text_completion" and request_id.startswith("cmpl-")


def _times(received_at: Any, body: Any, now: datetime) -> tuple[int, int]:
    """Start and end in nanoseconds: what the answer states of its times, before when it was received."""
    first = body[0] if isinstance(body, list) else body
    meta = first.get("meta_info") or {}
    took_s = _seconds(meta.get("e2e_latency")) or 0.0
    created_s, ended_s = _seconds(first.get("created")), _seconds(meta.get("request_finished_ts"))
    if received_at is not None:
        ended_s = _instant(received_at)
    elif created_s is not None:
        ended_s = created_s + took_s
    elif ended_s is None:
        ended_s = now.timestamp()
    ended_ns = int(ended_s * 1e9)
    return ended_ns - int(took_s * 1e9), ended_ns


def _instant(said: Any) -> float:
    if _seconds(said) is not None:
        return float(said)
    try:
        at = datetime.fromisoformat(said)
    except (TypeError, ValueError):
        msg = f"received_at {said!r}: ISO 8601 or seconds since 1970 are taken"
        raise ResponseBodyError(msg) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _seconds(value: Any) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e10 else None


def _digest(text: str, length: int) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=length).digest()


def _set(value: Any, said: Any) -> None:
    kinds = {bool: "bool_value", int: "int_value", float: "double_value", str: "string_value"}
    setattr(value, kinds[type(said)], said)
