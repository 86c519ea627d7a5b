"""Requests and looks of one worker made by hand, and what is fixed about the spans of a recording."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from demo_dispatches import types, unfolded
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo.engines.exports import Exports
from demo.engines.wire import Emitter
from demo.records import Deployment, Reading, Request, Role

OURS = "leverwatch."
BEGAN_NS = 1_764_000_000 * 10**9
Told = tuple[dict[str, str], str, Span]


def deployment(engine: str, replica: str = "chat-0", role: Role = "unified", *, drafts: int | None = 4) -> Deployment:
    """A worker on four GPUs, in the treated arm of a lever."""
    return Deployment(
        engine, "m-70b", "h100", "tp4", 4, replica, role, (("speculation", "ngram-4"),), (("speculation", "treated"),),
        kv_block_tokens=32, kv_blocks=8000, speculative_tokens=drafts,
    )  # fmt: skip


def request(at: Deployment, number: int = 1, **fields: Any) -> Request:
    """A request of 1,200 prompt tokens with 201 tokens of answer, a hundred steps of four drafts; fields override."""
    drawn = hashlib.blake2b(str(number).encode(), digest_size=40).digest()
    made = Request(
        started_ns=BEGAN_NS + number * 10**9, trace_id=drawn[:16], parent_span_id=drawn[16:24], request_key=drawn[24:], attempt=1, at=at,
        prefill_at=None, tenant="a", outcome="ok", finish_reason="stop", temperature=0.7, top_p=0.95, max_tokens=512, prompt_tokens=1200,
        cached_tokens=800, output_tokens=201, frontend_s=0.004, queue_s=0.05, prefill_s=0.08, kv_transfer_s=None, kv_transfer_bytes=None,
        decode_queue_s=0.0, decode_s=2.0, ttft_s=0.134, e2e_s=2.135, draft_tokens=400, accepted_tokens=100, verify_steps=100,
        accepted_by_position=(50, 30, 15, 5), decode_steps=100, batch=7, queue_depth=3, preemptions=0,
    )  # fmt: skip
    return made._replace(**fields)


def moved(engine: str, number: int = 1, **fields: Any) -> Request:
    """The same, read by one worker and answered by another; 40 MB took 20 ms."""
    prefill, decode = deployment(engine, "p-0", "prefill"), deployment(engine, "d-0", "decode")
    split = {"prefill_at": prefill, "kv_transfer_s": 0.02, "kv_transfer_bytes": 4e7, "ttft_s": 0.154, "e2e_s": 2.155}
    return request(decode, number, **(split | fields))


def plain(request: Request) -> Request:
    """The request of an arm that does not draft."""
    return request._replace(draft_tokens=None, accepted_tokens=None, verify_steps=None, accepted_by_position=None, decode_steps=200)


def look(of: Deployment, number: int = 1, **fields: Any) -> Reading:
    """A look at a worker that has had fifty such requests between every two looks."""
    counts = {"prompt_tokens": 1200, "cached_tokens": 800, "output_tokens": 201, "draft_tokens": 400, "accepted_tokens": 100}
    made = Reading(
        at_ns=BEGAN_NS + number * 30 * 10**9, of=of, running=7, waiting=3, transferring=2, kv_used_blocks=4000.0, kv_cached_blocks=100,
        memory_used_bytes=3e11, memory_free_bytes=1e10, **{name: count * 50 * number for name, count in counts.items()},
        verify_steps=5000 * number, accepted_by_position=(2500 * number, 1500 * number, 750 * number, 250 * number), preemptions=number,
        evicted_blocks=12 * number, iterations=1000.5 * number, seconds_busy=20.0 * number, collective_s=0.1, collective_bytes=1e6,
    )  # fmt: skip
    return made._replace(**fields)


def exported(requests: Iterable[Request], *emitters: Emitter) -> list[bytes]:
    """Export requests of what emitters tell."""
    return [body for body, _ in Exports().bodies([span for one in requests for emitter in emitters for span in emitter.spans(one)])]


def told(requests: Iterable[Request], *emitters: Emitter) -> list[Told]:
    """The spans that emitters tell, as they arrive."""
    return unfolded(ExportTraceServiceRequest.FromString(body) for body in exported(requests, *emitters))


def recorded(recordings: Path, name: str) -> list[Told]:
    """The spans of a recording."""
    paths = sorted((recordings / name / "traces").glob("*.pb"))
    return unfolded(ExportTraceServiceRequest.FromString(path.read_bytes()) for path in paths)


def theirs(attributes: dict[str, Any]) -> tuple[str, ...]:
    """The keys without our own facts, in order."""
    return tuple(key for key in attributes if not key.startswith(OURS))


def generic(name: str) -> str:
    """A span's name without its request, host and process."""
    return re.sub(r"(?<=Req )\w+|(?<=host:)\w+|(?<=pid:)\d+", "*", name)


def shapes(seen: Sequence[Told], without: frozenset[str] = frozenset()) -> set[tuple[Any, ...]]:
    """All that is fixed about spans: resource, scope, name, kind, status, flags, parent, links, keys with types, events' names."""
    names = {span.span_id: generic(span.name) for _, _, span in seen}
    found = set()
    for resource, scope, span in seen:
        keys = tuple(pair for pair in sorted(types(span.attributes).items()) if pair[0] not in without)
        links = tuple((names[link.span_id], link.flags, link.trace_id == span.trace_id) for link in span.links)
        parent = names.get(span.parent_span_id, "remote" if span.parent_span_id else "none")
        status = span.HasField("status"), span.status.code
        found.add((theirs(resource), scope, generic(span.name), span.kind, status, span.flags, parent, links, keys))
    return found
