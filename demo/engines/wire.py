"""What emitters share: a span's prepared parts and a request's values in, encoded OTLP spans out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from demo.records import Deployment, Request

LOCAL_PARENT = 0x100
"""Span flags: whether the parent is remote is known, and it is not."""
REMOTE_PARENT = 0x300
INTERNAL = Span.SPAN_KIND_INTERNAL
SERVER = Span.SPAN_KIND_SERVER
CLIENT = Span.SPAN_KIND_CLIENT
NS = 1_000_000_000

TOLD_AGAIN = 100
"""Added to the attempt of a request whose engine tells of it twice, the second time under other span ids."""

Kind: TypeAlias = Literal["string", "int", "double", "bool"]
Value: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Who sends a span: the resource's attributes, all text, and the scope's name. Made once for each sender, and itself alone."""

    resource: tuple[tuple[str, str], ...]
    scope: str


class Emitted(NamedTuple):
    """An encoded span, with what decides when and under which resource it leaves."""

    ended_ns: int
    source: Source
    span: bytes


class Link(NamedTuple):
    """A link to another span of the same trace."""

    span_id: bytes
    flags: int


class Event(NamedTuple):
    """Something that happened during a span."""

    name: str
    at_ns: int
    attributes: Sequence[tuple[str, str | int]] = ()


class Emitter(Protocol):
    """Gives the spans of a request. One thread at a time."""

    def spans(self, request: Request) -> Iterable[Emitted]:
        """The request's spans, in no particular order."""
        ...


def sdk(service: str, instance: str | None) -> dict[str, str]:
    """The resource attributes that the OpenTelemetry SDK for Python sets by itself."""
    attributes = {"telemetry.sdk.language": "python", "telemetry.sdk.name": "opentelemetry", "telemetry.sdk.version": "1.45.2"}
    if instance is not None:
        attributes["service.instance.id"] = instance
    return {**attributes, "service.name": service}


def facts(of: Deployment) -> dict[str, str]:
    """What a process's environment says of it, as it stands on a resource: all text."""
    known = {"model": of.model, "hardware": of.hardware, "topology": of.topology, "gpus": str(of.gpus)}
    if of.role != "unified":
        known["pool"] = of.role
    if of.link_peak_bytes_per_s is not None:
        known["link_peak_bytes_per_s"] = f"{of.link_peak_bytes_per_s:.0f}"
    known |= {f"lever.{name}": setting for name, setting in of.levers} | {f"arm.{name}": arm for name, arm in of.arms}
    return {f"leverwatch.{name}": value for name, value in known.items()}


def caller(request: Request) -> bytes:
    """The id of the span that called the engine: each attempt has its own, one that is told again has the same."""
    attempt = request.attempt % TOLD_AGAIN
    return request.parent_span_id if attempt == 1 else span_id(request.trace_id, f"attempt {attempt}")


def span_id(trace_id: bytes, role: str) -> bytes:
    """The id of a request's span: the same for the same request and role."""
    return hashlib.blake2b(trace_id, digest_size=8, key=role.encode()).digest()


class SpanForm:
    """A span whose attribute keys and types are prepared; filled once a request, which is far cheaper than building it anew."""

    def __init__(
        self,
        kind: Span.SpanKind.ValueType,
        attributes: Mapping[str, Kind],
        *,
        failed: bool = False,
        ok: bool = False,
        fixed: Sequence[tuple[str, str | int]] = (),
    ) -> None:
        """`fixed` attributes stand before the others; `ok` is for an engine that says so, most leave the status unset."""
        self._kind, self._fixed = kind, fixed
        self._status = Status(code=Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_OK if ok else Status.STATUS_CODE_UNSET)
        self._attributes = attributes
        self._filled: dict[tuple[bool, ...], tuple[Span, list[tuple[AnyValue, str]]]] = {}

    def encode(
        self,
        *,
        name: str,
        trace_id: bytes,
        span_id: bytes,
        parent: bytes,
        flags: int,
        started_ns: int,
        ended_ns: int,
        values: Sequence[Value] = (),
        links: Sequence[Link] = (),
        events: Sequence[Event] = (),
    ) -> bytes:
        """The span with these values in the attributes' order; an attribute whose value is None is left out."""
        span, places = self._prepared(tuple(value is not None for value in values))
        for (place, field), value in zip(places, (value for value in values if value is not None), strict=True):
            setattr(place, field, value)
        span.name, span.trace_id, span.span_id, span.parent_span_id, span.flags = name, trace_id, span_id, parent, flags
        span.start_time_unix_nano, span.end_time_unix_nano = started_ns, ended_ns
        del span.links[:], span.events[:]
        for link in links:
            span.links.add(trace_id=trace_id, span_id=link.span_id, flags=link.flags)
        for event in events:
            _add_event(span, event)
        encoded: bytes = span.SerializeToString()
        return encoded

    def _prepared(self, present: tuple[bool, ...]) -> tuple[Span, list[tuple[AnyValue, str]]]:
        if present not in self._filled:
            span = Span(kind=self._kind, status=self._status)
            _add_attributes(span.attributes, self._fixed)
            places = []
            for (key, kind), there in zip(self._attributes.items(), present, strict=True):
                if there:
                    span.attributes.append(KeyValue(key=key))
                    places.append((span.attributes[-1].value, f"{kind}_value"))
            self._filled[present] = span, places
        return self._filled[present]


def _add_event(span: Span, event: Event) -> None:
    added = span.events.add(time_unix_nano=event.at_ns, name=event.name)
    _add_attributes(added.attributes, event.attributes)


def _add_attributes(to: RepeatedCompositeFieldContainer[KeyValue], attributes: Sequence[tuple[str, str | int]]) -> None:
    for key, value in attributes:
        place = to.add(key=key).value
        if isinstance(value, str):
            place.string_value = value
        else:
            place.int_value = value
