"""SGLang 0.5.23, prefill and decode apart: a request record in, the spans of both legs out, as at trace level 2 (no span a decode step).

Each leg is a root below the caller's span, tied to the other by `bootstrap_room`, with one span a thread and one a stage below it.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from demo.engines import sglang_legs, wire
from demo.engines.sglang_legs import Leg
from demo.records import Request

SCOPE = "sglang server"
THREAD_CLOSES_NS = 300_000
"""After a thread's last stage."""

ROOT: dict[str, wire.Kind] = {
    "rid": "string",
    "module": "string",
    "bootstrap_room": "string",
    "gen_ai.usage.prompt_tokens": "int",
    "gen_ai.usage.completion_tokens": "int",
    "gen_ai.response.model": "string",
    "gen_ai.request.id": "string",
    "gen_ai.usage.cached_tokens": "int",
    "gen_ai.request.max_tokens": "int",
    "gen_ai.request.temperature": "double",
    "gen_ai.request.top_p": "double",
    "gen_ai.request.n": "int",
    "gen_ai.latency.time_to_first_token": "double",
    "gen_ai.latency.e2e": "double",
    "gen_ai.latency.time_in_model_decode": "double",
    "gen_ai.latency.time_in_model_inference": "double",
    "gen_ai.latency.time_in_model_prefill": "double",
}
TOKENIZER: dict[str, wire.Kind] = {"host_id": "string", "pid": "int", "thread_label": "string"}
SCHEDULER: dict[str, wire.Kind] = {"tp_rank": "int", "pp_rank": "int", "dp_rank": "int", **TOKENIZER}


@dataclass(frozen=True, slots=True)
class _Worker:
    source: wire.Source
    host_id: str
    pid: int

    def thread(self, label: str, pid: int) -> str:
        return f"{label}(host:{self.host_id[:8]} | pid:{pid})"


class _Span(NamedTuple):
    """A span of a leg before encoding: named by its role, from which its id comes; a parent of None is the caller."""

    form: str
    role: str
    name: str
    parent: str | None
    flags: int
    started_ns: int
    ended_ns: int
    values: tuple[wire.Value, ...] = ()
    follows: tuple[str, int] | None = None


class Emitter:
    """Emits the requests of a fleet's SGLang prefill and decode workers."""

    def __init__(self) -> None:
        keys: dict[str, dict[str, wire.Kind]] = {"root": ROOT, "tokenizer": TOKENIZER, "scheduler": SCHEDULER, "stage": {}}
        self._forms = {form: wire.SpanForm(wire.INTERNAL, attributes) for form, attributes in keys.items()}
        self._workers: dict[str, _Worker] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The spans of both legs."""
        for leg, replica in ((sglang_legs.prefill(request), request.prefill_replica), (sglang_legs.decode(request), request.replica)):
            worker = self._worker(request, replica or request.replica, leg.role)
            for span in (_root(request, leg), *_threads(leg, worker), *_stages(leg)):
                yield wire.Emitted(span.ended_ns, worker.source, self._encode(request, leg, span))

    def _encode(self, request: Request, leg: Leg, span: _Span) -> bytes:
        def id_of(role: str) -> bytes:
            return wire.span_id(request.trace_id, f"{leg.role} {role}")

        return self._forms[span.form].encode(
            name=span.name,
            trace_id=request.trace_id,
            span_id=id_of(span.role),
            parent=request.parent_span_id if span.parent is None else id_of(span.parent),
            flags=span.flags,
            started_ns=span.started_ns,
            ended_ns=span.ended_ns,
            values=span.values,
            links=[wire.Link(id_of(span.follows[0]), span.follows[1])] if span.follows else (),
        )

    def _worker(self, request: Request, replica: str, role: str) -> _Worker:
        if replica not in self._workers:
            resource = {**wire.sdk("sglang", replica), **wire.facts(request), "leverwatch.pool": role}
            host_id = hashlib.blake2b(replica.encode(), digest_size=16).hexdigest()
            source = wire.Source(tuple(resource.items()), SCOPE)
            self._workers[replica] = _Worker(source, host_id, 1000 + zlib.crc32(replica.encode()) % 60000)
        return self._workers[replica]


def _root(request: Request, leg: Leg) -> _Span:
    rid = hashlib.blake2b(request.trace_id, digest_size=16, key=leg.role.encode()).hexdigest()
    room = hex(int.from_bytes(request.trace_id[:8], "big") >> 1)
    asked = (request.max_tokens, request.temperature or None, request.top_p, 1)
    used = (request.prompt_tokens, leg.output_tokens, request.model, rid, request.cached_tokens)
    values = (rid, "sglang::request", room, *used, *asked, *_latencies(leg))
    return _Span("root", "root", f"{leg.role} Req {rid[:8]}", None, wire.REMOTE_PARENT, leg.started_ns, leg.ended_ns, values)


def _latencies(leg: Leg) -> tuple[float, ...]:
    """To the first token, in all, decode, inference, prefill: seconds, the last two counted from dispatch, waiting included."""
    moments = (
        (leg.started_ns, leg.first_token_ns),
        (leg.started_ns, leg.ended_ns),
        (leg.first_token_ns, leg.ended_ns),
        (leg.dispatched_ns, leg.ended_ns),
        (leg.dispatched_ns, leg.first_token_ns),
    )
    return tuple((until_ns - since_ns) / wire.NS for since_ns, until_ns in moments)


def _threads(leg: Leg, worker: _Worker) -> Iterator[_Span]:
    values: tuple[wire.Value, ...] = (worker.host_id, worker.pid, "Tokenizer")
    name = worker.thread("Tokenizer", worker.pid)
    yield _Span("tokenizer", "tokenizer", name, "root", wire.LOCAL_PARENT, leg.started_ns, leg.dispatched_ns, values)
    values = (0, 0, 0, worker.host_id, worker.pid + 1, "Scheduler")
    name = worker.thread("Scheduler [TP 0]  [PP 0]  [DP 0] ", worker.pid + 1)
    ended_ns = leg.scheduler[-1].ended_ns + THREAD_CLOSES_NS
    yield _Span("scheduler", "scheduler", name, "root", wire.REMOTE_PARENT, leg.scheduler[0].started_ns, ended_ns, values)


def _stages(leg: Leg) -> Iterator[_Span]:
    """The stages, each linked to the one before it; the first of the scheduler follows one of another process."""
    before = None
    for stage in (*leg.tokenizer, *leg.scheduler):
        thread = "tokenizer" if stage in leg.tokenizer else "scheduler"
        flags = wire.REMOTE_PARENT if stage == leg.scheduler[0] else wire.LOCAL_PARENT
        follows = None if before is None else (before, flags)
        yield _Span("stage", stage.name, stage.name, thread, wire.LOCAL_PARENT, stage.started_ns, stage.ended_ns, follows=follows)
        before = stage.name
