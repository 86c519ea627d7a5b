"""Encoded spans in the order they ended in, the bytes of OTLP export requests out, each with the spans of its replicas side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from demo.engines.wire import Emitted, Source

SPANS_PER_EXPORT = 512


class Exports:
    """Puts encoded spans under their resources. An export is a few nested lengths around bytes that are already there."""

    def __init__(self) -> None:
        self._heads: dict[Source, tuple[bytes, bytes]] = {}

    def bodies(self, emitted: Sequence[Emitted]) -> Iterator[tuple[bytes, int]]:
        """`ExportTraceServiceRequest`s of at most 512 spans, each with the number of its spans."""
        for start in range(0, len(emitted), SPANS_PER_EXPORT):
            some = emitted[start : start + SPANS_PER_EXPORT]
            yield self._body(some), len(some)

    def _body(self, emitted: Sequence[Emitted]) -> bytes:
        by_source: dict[Source, list[bytes]] = {}
        for span in emitted:
            by_source.setdefault(span.source, []).append(_field(2, span.span))
        return b"".join(self._resource_spans(source, spans) for source, spans in by_source.items())

    def _resource_spans(self, source: Source, spans: list[bytes]) -> bytes:
        if source not in self._heads:
            attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in source.resource]
            scope = InstrumentationScope(name=source.scope).SerializeToString()
            self._heads[source] = _field(1, Resource(attributes=attributes).SerializeToString()), _field(1, scope)
        resource, scope = self._heads[source]
        return _field(1, resource + _field(2, scope + b"".join(spans)))


def _field(number: int, content: bytes) -> bytes:
    """A protobuf field of kind length and bytes; the number is below 16."""
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content
