"""A small fleet of TensorRT-LLM or Dynamo, its requests and readings, and an engine room that has read what is told of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from demo import scenarios
from demo.engines.exports import Exports
from demo.engines.wire import Emitted
from demo.fleet import Fleet
from demo.records import Reading, Request
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom

BEGAN_NS = 1_764_000_000 * 10**9
MINUTE_NS = 60 * 10**9
SCENARIO = """
name = "small"
what = "a fleet for tests"
hours = 1
scrape_s = 20
[[pools]]
name = "p"
model = "m-8b"
engine = "{engine}"
network = "dense-8b"
hardware = "h100"
groups = 4
lever = "{lever}"
setting = "on"
kv_block_tokens = 64
[pools.serving]
{speculation}
{split}
[pools.control]
{split_control}
[[traffic]]
name = "chat"
pool = "p"
requests_per_s = {rate}
input_tokens = [256, 4096]
output_median_tokens = 120
turns = 3
system_tokens = 500
temperatures = [0.0, 0.7]
"""
SPLIT = "[pools.{}.split]\nprefill = 1\ndecode = 1\nlink_bytes_per_s = 25e9"


def events(engine: str, *, split: bool = False, speculation: bool = False, rate: float = 5.0) -> list[Any]:
    """What happens in the fleet in a minute, in order of time."""
    text = SCENARIO.format(
        engine=engine,
        lever="speculation" if speculation else "disaggregation" if split else "prefix_caching",
        rate=rate,
        speculation="speculation = { draft_tokens = 4, acceptance = [0.7, 0.6] }" if speculation else "",
        split=SPLIT.format("serving") if split else "",
        split_control=SPLIT.format("control") if split else "",
    )
    return list(Fleet(scenarios.parse(text, "small.toml"), BEGAN_NS, 7).until(BEGAN_NS + MINUTE_NS))


def requests(engine: str, **fleet: Any) -> list[Request]:
    """The requests of the fleet."""
    return [event for event in events(engine, **fleet) if isinstance(event, Request)]


def looks(told: Iterable[Any]) -> dict[str, Reading]:
    """The last look at each replica among events."""
    return {event.of.replica: event for event in told if isinstance(event, Reading)}


def spans(emitted: Iterable[Emitted]) -> list[tuple[dict[str, str], str, Span]]:
    """Spans as they arrive: the resource, the scope, the span."""
    return unfolded(ExportTraceServiceRequest.FromString(body) for body, _ in Exports().bodies(list(emitted)))


def unfolded(exports: Iterable[ExportTraceServiceRequest]) -> list[tuple[dict[str, str], str, Span]]:
    """The spans of exports: the resource, the scope, the span."""
    return [
        ({one.key: one.value.string_value for one in owner.resource.attributes}, scope.scope.name, span)
        for export in exports
        for owner in export.resource_spans
        for scope in owner.scope_spans
        for span in scope.spans
    ]


def values(attributes: Iterable[Any]) -> dict[str, Any]:
    """Attributes by key."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in attributes}


def types(attributes: Iterable[Any]) -> dict[str, str]:
    """The keys and their OTLP types."""
    return {one.key: one.value.WhichOneof("value") for one in attributes}


def rows(folder: Path, **bodies: Iterable[bytes]) -> list[dict[str, Any]]:
    """The rows of `requests` after bodies of some signals came in, in order of start."""
    room = EngineRoom(folder, Config())
    try:
        for signal, contents in bodies.items():
            for body in contents:
                room.spool.append(signal, "10.0.0.1", BEGAN_NS + 60 * MINUTE_NS, body).result(10)
        room.drain()
        return room.store.rows("select * from requests order by started_at, request_id")
    finally:
        room.close()
