"""SGLang 0.5.23: a request record in, the spans of its one leg or of both out.

Each leg is a root below the caller's span, with one span a process and one a stage below it; `bootstrap_room` ties two legs. It is as at
trace level 3 behind a Collector that drops the spans of single steps and chunks, and the copies that other ranks send of everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from demo.engines import sglang_legs, wire
from demo.engines.sglang_legs import Leg
from demo.records import Deployment, Request

SCOPE = "sglang server"
THREAD_CLOSES_NS = 300_000
"""After a process's last stage."""
SPAN_IDS = 12
"""More than the spans of a leg."""

IDENTITY: dict[str, wire.Kind] = {"rid": "string", "module": "string", "bootstrap_room": "string"}
USAGE: dict[str, wire.Kind] = {
    "gen_ai.usage.prompt_tokens": "int",
    "gen_ai.usage.completion_tokens": "int",
    "gen_ai.response.model": "string",
    "gen_ai.response.finish_reasons": "string",
    "gen_ai.request.id": "string",
    "gen_ai.usage.cached_tokens": "int",
    "gen_ai.request.max_tokens": "int",
    "gen_ai.request.temperature": "double",
    "gen_ai.request.top_p": "double",
    "gen_ai.request.n": "int",
}
LATENCIES: dict[str, wire.Kind] = {
    "gen_ai.latency.time_to_first_token": "double",
    "gen_ai.latency.e2e": "double",
    "gen_ai.latency.time_in_model_decode": "double",
    "gen_ai.latency.time_in_model_inference": "double",
    "gen_ai.latency.time_in_model_prefill": "double",
}
TOKENIZER: dict[str, wire.Kind] = {"host_id": "string", "pid": "int", "thread_label": "string"}
SCHEDULER: dict[str, wire.Kind] = {"tp_rank": "int", "pp_rank": "int", "dp_rank": "int", **TOKENIZER}
REASONS = {"aborted": "Aborted by its client", "error": "Refused"}


@dataclass(frozen=True, slots=True)
class _Worker:
    source: wire.Source
    host_id: str
    pid: int

    def thread(self, label: str, pid: int) -> str:
        return f"{label}(host:{self.host_id[:8]} | pid:{pid})"


class _Span(NamedTuple):
    """A span of a leg before encoding, at its place among the leg's; a parent of None is the caller, `follows` a place and flags."""

    form: str
    place: int
    name: str
    parent: int | None
    flags: int
    started_ns: int
    ended_ns: int
    values: tuple[wire.Value, ...] = ()
    follows: tuple[int, int] | None = None
    events: tuple[wire.Event, ...] = ()


ROOT_PLACE, TOKENIZER_PLACE, SCHEDULER_PLACE, FIRST_STAGE = range(4)


class Emitter:
    """Emits the requests of a fleet's SGLang workers."""

    def __init__(self) -> None:
        root, failed = {**IDENTITY, **USAGE, **LATENCIES}, {**SCHEDULER, "reason": "string"}
        keys: dict[str, dict[str, wire.Kind]] = {"root": root, "tokenizer": TOKENIZER, "scheduler": SCHEDULER, "stage": {}}
        self._forms = {form: wire.SpanForm(wire.INTERNAL, attributes) for form, attributes in keys.items()}
        self._forms["failed"] = wire.SpanForm(wire.INTERNAL, failed, failed=True)
        self._workers: dict[Deployment, _Worker] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """The spans of every leg."""
        caller = wire.caller(request)
        for leg in sglang_legs.legs(request):
            worker = self._worker(leg.at)
            drawn = _drawn(request, leg.role, request.attempt, 8 * SPAN_IDS)
            ids = [drawn[place : place + 8] for place in range(0, len(drawn), 8)]
            for span in (_root(request, leg), *_threads(request, leg, worker), *_stages(leg, drawn)):
                encoded = self._forms[span.form].encode(
                    name=span.name,
                    trace_id=request.trace_id,
                    span_id=ids[span.place],
                    parent=caller if span.parent is None else ids[span.parent],
                    flags=span.flags,
                    started_ns=span.started_ns,
                    ended_ns=span.ended_ns,
                    values=span.values,
                    links=(wire.Link(ids[span.follows[0]], span.follows[1]),) if span.follows else (),
                    events=span.events,
                )
                yield wire.Emitted(span.ended_ns, worker.source, encoded)

    def _worker(self, at: Deployment) -> _Worker:
        if at not in self._workers:
            resource = {**wire.sdk("sglang", at.replica), **wire.facts(at)}
            host_id = hashlib.blake2b(at.replica.encode(), digest_size=16).hexdigest()
            self._workers[at] = _Worker(wire.Source(tuple(resource.items()), SCOPE), host_id, at.process_id)
        return self._workers[at]


def request_id(request: Request, role: str | None = None) -> str:
    """The id under which a leg is known, by default the one that answers: the same however often it is told of."""
    role = sglang_legs.legs(request)[-1].role if role is None else role
    return _drawn(request, role, request.attempt % wire.TOLD_AGAIN, 16, b"rid").hex()


def _drawn(request: Request, role: str, attempt: int, size: int, key: bytes = b"") -> bytes:
    return hashlib.shake_128(b"%b%b %d%b" % (key, role.encode(), attempt, request.trace_id)).digest(size)


def _root(request: Request, leg: Leg) -> _Span:
    rid, room = request_id(request, leg.role), hex(int.from_bytes(request.trace_id[:8], "big") >> 1) if leg.role else None
    values = (rid, "sglang::request", room, *_usage(request, leg, rid), *_latencies(leg))
    name = f"{leg.role} Req {rid[:8]}"  # without a role it begins with a space
    return _Span("root", ROOT_PLACE, name, None, wire.REMOTE_PARENT, leg.started_ns, leg.ended_ns, values)


def _usage(request: Request, leg: Leg, rid: str) -> tuple[wire.Value, ...]:
    """Nothing of a request that did not come to its end."""
    if request.outcome != "ok":
        return (None,) * len(USAGE)
    reason = request.finish_reason if leg.role != "prefill" else "length"
    used = (request.prompt_tokens, leg.output_tokens, request.at.model, f'["{reason}"]', rid, request.cached_tokens)
    return (*used, request.max_tokens, request.temperature or None, request.top_p, 1)


def _latencies(leg: Leg) -> tuple[float, ...]:
    """To the first token, in all, decode, inference, prefill: seconds, the last two counted from dispatch, waiting included."""
    moments = (
        (leg.started_ns, leg.ended_ns),
        (leg.first_token_ns, leg.ended_ns),
        (leg.dispatched_ns, leg.ended_ns),
        (leg.dispatched_ns, leg.first_token_ns),
    )
    return leg.ttft_s, *((until_ns - since_ns) / wire.NS for since_ns, until_ns in moments)


def _threads(request: Request, leg: Leg, worker: _Worker) -> Iterator[_Span]:
    values: tuple[wire.Value, ...] = (worker.host_id, worker.pid, "Tokenizer")
    name = worker.thread("Tokenizer", worker.pid)
    yield _Span("tokenizer", TOKENIZER_PLACE, name, ROOT_PLACE, wire.LOCAL_PARENT, leg.started_ns, leg.dispatched_ns, values)
    form, values = "scheduler", (0, 0, 0, worker.host_id, worker.pid + 1, "Scheduler")
    if request.outcome != "ok":
        form, values = "failed", (*values, REASONS[request.outcome])
    name = worker.thread("Scheduler [TP 0]  [PP 0]  [DP 0] ", worker.pid + 1)
    started_ns, ended_ns = leg.scheduler[0].started_ns, leg.scheduler[-1].ended_ns + THREAD_CLOSES_NS
    events = _retracted(request, leg)
    yield _Span(form, SCHEDULER_PLACE, name, ROOT_PLACE, wire.REMOTE_PARENT, started_ns, ended_ns, values, events=events)


def _retracted(request: Request, leg: Leg) -> tuple[wire.Event, ...]:
    """When the request lost its place, spread over its decoding; told by the process that decodes."""
    if not request.preemptions or leg.role == "prefill":
        return ()
    decoding, parts = leg.scheduler[-1], request.preemptions + 1
    length_ns = decoding.ended_ns - decoding.started_ns
    return tuple(wire.Event("retract", decoding.started_ns + length_ns * part // parts) for part in range(1, parts))


def _stages(leg: Leg, drawn: bytes) -> Iterator[_Span]:
    """The stages, each linked to the one before it; the first of the scheduler follows one of another process."""
    before = None
    for place, stage in enumerate((*leg.tokenizer, *leg.scheduler), FIRST_STAGE):
        scheduled = place - FIRST_STAGE - len(leg.tokenizer)
        thread = SCHEDULER_PLACE if scheduled >= 0 else TOKENIZER_PLACE
        flags = wire.REMOTE_PARENT if scheduled == 0 else wire.LOCAL_PARENT
        follows = None if before is None else (before, flags)
        events = (_schedule(leg, stage.started_ns, drawn),) if stage.name == "prefill_forward" else ()
        yield _Span("stage", place, stage.name, thread, wire.LOCAL_PARENT, stage.started_ns, stage.ended_ns, (), follows, events)
        before = place


def _schedule(leg: Leg, at_ns: int, drawn: bytes) -> wire.Event:
    """The forward pass that the request was first part of."""
    return wire.Event("schedule", at_ns, (("bid", drawn[-4:].hex()), ("batch_size", leg.batch), ("forward_mode", "prefill")))
