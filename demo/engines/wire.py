"""What emitters share: a span's prepared parts and a request's values in, encoded OTLP spans out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from demo.records import Request

LOCAL_PARENT = 0x100
"""Span flags: whether the parent is remote is known, and it is not."""
REMOTE_PARENT = 0x300
INTERNAL = Span.SPAN_KIND_INTERNAL
SERVER = Span.SPAN_KIND_SERVER
NS = 1_000_000_000

Kind: TypeAlias = Literal["string", "int", "double"]
Value: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Source:
    """Who sends a span: the resource's attributes, all text, and the scope's name."""

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


def facts(request: Request) -> dict[str, str]:
    """The deployment's facts of the replica that served the request, as the environment sets them on a resource: all text."""
    known = {"model": request.model, "hardware": request.hardware, "topology": request.topology, "gpus": str(request.gpus)}
    if request.speculation is not None:
        known["lever.speculation"] = request.speculation
    return {f"leverwatch.{name}": value for name, value in known.items()}


def span_id(trace_id: bytes, role: str) -> bytes:
    """The id of a request's span: the same for the same request and role."""
    return hashlib.blake2b(trace_id, digest_size=8, key=role.encode()).digest()


class SpanForm:
    """A span whose attribute keys and types are prepared; filled once a request, which is far cheaper than building it anew."""

    def __init__(self, kind: Span.SpanKind.ValueType, attributes: Mapping[str, Kind]) -> None:
        self._kind = kind
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
    ) -> bytes:
        """The span with these values in the attributes' order; an attribute whose value is None is left out."""
        span, places = self._prepared(tuple(value is not None for value in values))
        for (place, field), value in zip(places, (value for value in values if value is not None), strict=True):
            setattr(place, field, value)
        span.name, span.trace_id, span.span_id, span.parent_span_id, span.flags = name, trace_id, span_id, parent, flags
        span.start_time_unix_nano, span.end_time_unix_nano = started_ns, ended_ns
        del span.links[:]
        for link in links:
            span.links.add(trace_id=trace_id, span_id=link.span_id, flags=link.flags)
        encoded: bytes = span.SerializeToString()
        return encoded

    def _prepared(self, present: tuple[bool, ...]) -> tuple[Span, list[tuple[AnyValue, str]]]:
        if present not in self._filled:
            span = Span(kind=self._kind, status=Status())
            places = []
            for (key, kind), there in zip(self._attributes.items(), present, strict=True):
                if there:
                    span.attributes.append(KeyValue(key=key))
                    places.append((span.attributes[-1].value, f"{kind}_value"))
            self._filled[present] = span, places
        return self._filled[present]
