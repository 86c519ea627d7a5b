"""NVIDIA Dynamo 1.6 with its KV router: a request record in, the spans of its frontend and of the workers that took part out.

Dynamo's processes state their name alone. The facts of a worker are put on its resource by the Collector beside it, and the frontend, which
serves several workers, has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from demo.engines import dynamo_forms, dynamo_legs, wire
from demo.engines.dynamo_forms import CALL, CHOOSING, HANDLE, HTTP, SELECT
from demo.engines.dynamo_legs import Leg
from demo.records import Deployment, Request

FRONTEND = "dynamo-frontend"
SERVICES = {"unified": "dynamo-worker", "prefill": "dynamo-prefill", "decode": "dynamo-decode"}
TRACKED = {"ok": "success", "aborted": "cancelled", "error": "error"}
ERROR_TYPE = {"aborted": "cancelled", "error": "internal"}
STATUS = {"ok": "200", "aborted": "499", "error": "500"}
LOCAL, REMOTE = 0x101, 0x301
"""Flags of a span that was sampled, whose parent is of this process or of another."""
BUSY_SHARE = 0.02


class Emitter:
    """Emits the requests of a fleet's Dynamo frontends and workers."""

    def __init__(self) -> None:
        self._forms, self._events = dynamo_forms.forms(), dynamo_forms.events()
        self._frontend = wire.Source((("service.name", FRONTEND),), FRONTEND)
        self._workers: dict[Deployment, wire.Source] = {}

    def spans(self, request: Request) -> Iterator[wire.Emitted]:
        """All spans of the request, the frontend's first."""
        legs = dynamo_legs.legs(request)
        known_as = dynamo_legs.request_id(request)
        yield self._http(request, legs, known_as)
        for leg in legs:
            yield from self._selection(request, leg)
            yield self._call(request, leg, known_as)
            yield self._handling(request, leg, known_as)

    def _http(self, request: Request, legs: tuple[Leg, ...], known_as: str) -> wire.Emitted:
        parent, ended_ns, elapsed_ms = wire.caller(request), request.ended_ns, str(int(request.e2e_s * 1e3))
        of_trace = (request.trace_id.hex(), parent.hex())
        span = self._encode(
            request, HTTP, "", parent, REMOTE, request.started_ns, ended_ns, of_trace + _http_values(request, legs, known_as)
        )
        model, outcome, events = request.at.model, TRACKED[request.outcome], self._events
        received = events["received"].encoded(request.started_ns + 100_000, known_as, model)
        completed = events["completed"].encoded(ended_ns - 100_000, known_as, model, outcome, elapsed_ms)
        answered = events["answered"].encoded(ended_ns - 50_000, STATUS[request.outcome], elapsed_ms)
        return wire.Emitted(ended_ns, self._frontend, span + received + completed + answered)

    def _selection(self, request: Request, leg: Leg) -> Iterator[wire.Emitted]:
        since_ns, until_ns = leg.selecting_ns, leg.selected_ns
        selecting = _id(request, f"{SELECT} {leg.phase}")
        span = self._encode(request, SELECT, leg.phase, _id(request, HTTP + " "), LOCAL, since_ns, until_ns, ())
        yield wire.Emitted(until_ns, self._frontend, span)
        step_ns = (until_ns - since_ns) // (len(CHOOSING) + 1)
        for name in CHOOSING:
            since_ns += step_ns
            span = self._encode(request, name, leg.phase, selecting, LOCAL, since_ns - step_ns // 2, since_ns, ())
            yield wire.Emitted(since_ns, self._frontend, span)

    def _call(self, request: Request, leg: Leg, known_as: str) -> wire.Emitted:
        outcome = TRACKED[request.outcome]
        span = self._encode(
            request, CALL, leg.phase, _id(request, HTTP + " "), LOCAL, leg.called_ns, leg.returned_ns, _call_values(request, leg, known_as)
        )
        routed = self._events["routed"].encoded(leg.returned_ns - 50_000, outcome)
        return wire.Emitted(leg.returned_ns, self._frontend, span + routed)

    def _handling(self, request: Request, leg: Leg, known_as: str) -> wire.Emitted:
        parent = _id(request, f"{CALL} {leg.phase}")
        component = "prefill" if leg.phase == "Prefill" else "backend"
        values = (request.trace_id.hex(), parent.hex(), known_as, component, str(dynamo_legs.worker_id(leg.at.replica)))
        span = self._encode(request, HANDLE, leg.phase, parent, REMOTE, leg.taken_ns, leg.done_ns, values)
        taken = self._events["taken"].encoded(leg.taken_ns, known_as)
        done = self._events["done"].encoded(leg.done_ns, known_as)
        return wire.Emitted(leg.done_ns, self._worker(leg.at), span + taken + done)

    def _encode(
        self,
        request: Request,
        name: str,
        phase: str,
        parent: bytes,
        flags: int,
        started_ns: int,
        ended_ns: int,
        values: tuple[wire.Value, ...],
    ) -> bytes:
        busy_ns = round((ended_ns - started_ns) * BUSY_SHARE)
        return self._forms[name].encode(
            name=name,
            trace_id=request.trace_id,
            span_id=_id(request, f"{name} {phase}"),
            parent=parent,
            flags=flags,
            started_ns=started_ns,
            ended_ns=ended_ns,
            values=(*values, busy_ns, ended_ns - started_ns - busy_ns),
        )

    def _worker(self, at: Deployment) -> wire.Source:
        if at not in self._workers:
            name = SERVICES[at.role]
            resource = {"service.name": name, "leverwatch.replica": at.replica, **wire.facts(at)}
            self._workers[at] = wire.Source(tuple(resource.items()), name)
        return self._workers[at]


def _http_values(request: Request, legs: tuple[Leg, ...], known_as: str) -> tuple[wire.Value, ...]:
    """An attempt that failed gave no token, so the frontend has none to time."""
    failed, itl_ms = request.outcome == "error", dynamo_legs.itl_ms(request)
    return (
        known_as,
        request.at.model,
        str(request.prompt_tokens),
        None if failed else str(request.output_tokens),
        None if failed else f"{request.ttft_s * 1e3:.2f}",
        None if failed or itl_ms is None else f"{itl_ms:.2f}",
        str(dynamo_legs.worker_id(legs[0].at.replica)),
        str(dynamo_legs.worker_id(legs[-1].at.replica)),
        TRACKED[request.outcome],
        ERROR_TYPE["error"] if failed else None,
    )


def _call_values(request: Request, leg: Leg, known_as: str) -> tuple[wire.Value, ...]:
    overlap = request.cached_tokens // leg.at.kv_block_tokens if leg.phase != "Decode" else 0
    return (
        known_as,
        str(overlap),
        leg.phase,
        str(dynamo_legs.worker_id(leg.at.replica)),
        False,
        None if leg.phase == "Prefill" else "0",
        TRACKED[request.outcome],
        "stop" if request.outcome == "aborted" else None,
        ERROR_TYPE.get(request.outcome),
    )


def _id(request: Request, role: str) -> bytes:
    return wire.span_id(request.trace_id, f"{role} {request.attempt}")
