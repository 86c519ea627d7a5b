"""What a Leverwatch says of itself is left out at the door, whoever sends it on, and all else is taken as it came."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors import decode, kafka_pieces, own
from collectors.door import Door, Handled
from collectors.kafka_progress import Arrived, Place
from collectors.ledger import Note
from collectors.spool import Spool
from collectors.spool_records import Position, Record


def traces(*services: str) -> bytes:
    """An export of two spans a service, in a group each."""
    request = ExportTraceServiceRequest()
    for number, service in enumerate(services, 1):
        group = request.resource_spans.add()
        group.resource.attributes.add(key="host.name").value.string_value = "h" * 200
        group.resource.attributes.add(key="service.name").value.string_value = service
        spans = group.scope_spans.add().spans
        for place in (1, 2):
            spans.add(
                trace_id=bytes([number]) * 16, span_id=bytes([place]) * 8, name="llm_request", start_time_unix_nano=1, end_time_unix_nano=2
            )
    body: bytes = request.SerializeToString()
    return body


def services(body: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(body)
    return [
        next(one.value.string_value for one in group.resource.attributes if one.key == "service.name") for group in request.resource_spans
    ]


def test_groups_of_our_own_service_are_cut_out_and_are_an_export_by_themselves() -> None:
    kept, ours = own.cut(traces("vllm", "leverwatch", "sglang", "leverwatch"))
    assert services(kept) == ["vllm", "sglang"]
    assert services(ours) == ["leverwatch", "leverwatch"]


@pytest.mark.parametrize("service", ["vllm", "leverwatch-tap", "my-leverwatch", "leverwatc"])
def test_an_export_of_others_is_the_same_bytes(service: str) -> None:
    body = traces(service, "vllm")
    kept, ours = own.cut(body)
    assert kept is body
    assert ours == b""


def test_a_span_that_quotes_our_name_is_not_ours() -> None:
    request = ExportTraceServiceRequest.FromString(traces("vllm"))
    request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="service.name").value.string_value = "leverwatch"
    body = request.SerializeToString()
    assert own.cut(body) == (body, b"")


@pytest.mark.parametrize(
    "body", [b"", b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x05ab", b"\x12\x00", b"\x0a\x02\x0a\x7f"]
)
def test_bytes_of_another_form_are_left_as_they_are(body: bytes) -> None:
    assert own.cut(body) == (body, b"")


def handed(folder: Path, signal: str, body: bytes) -> tuple[list[Record], list[Note], list[Handled]]:
    """What lies in the spool after a body came to the door, and what was told of it."""
    spool, noted, told = Spool(folder, Position(0, 0)), list[Note](), list[Handled]()
    door = Door(spool, lambda: 1, noted.append, decode.check, told=told.append)
    try:
        asyncio.run(door.take(signal, "collector", body))
        kept = [one for one in spool.read(Position(0, 0), 1 << 20) if isinstance(one, Record)]
    finally:
        spool.close()
    return kept, noted, told


def test_own_spans_among_others_are_dropped_and_counted_and_the_others_stored(tmp_path: Path) -> None:
    kept, noted, (told,) = handed(tmp_path, "traces", traces("vllm", "leverwatch"))
    assert [services(record.body) for record in kept] == [["vllm"]]
    assert decode.counted(kept[0].body, kept[0].counts).spans == 2
    assert [(note.reason, note.count, note.is_dropped) for note in noted] == [(own.REASON, 2, True)]
    assert (told.outcome, told.items, told.is_own) == ("taken", 2, True)


def test_an_export_of_own_spans_alone_is_acknowledged_and_wakes_nobody(tmp_path: Path) -> None:
    kept, noted, (told,) = handed(tmp_path, "traces", traces("leverwatch"))
    assert kept == []
    assert sum(note.count for note in noted) == 2
    assert told.is_own


def test_own_metrics_become_no_samples(tmp_path: Path) -> None:
    request = ExportMetricsServiceRequest()
    for service in ("vllm", "leverwatch"):
        group = request.resource_metrics.add()
        group.resource.attributes.add(key="service.name").value.string_value = service
        group.scope_metrics.add().metrics.add(name="n").gauge.data_points.add(time_unix_nano=1, as_double=1.0)
    (kept,), noted, (told,) = handed(tmp_path, "metrics", request.SerializeToString())
    assert len(ExportMetricsServiceRequest.FromString(kept.body).resource_metrics) == 1
    assert [(note.reason, note.count) for note in noted] == [(own.REASON, 1)]
    assert told.items == 1


def test_a_message_of_kafka_in_front_of_a_lake_is_cut_too() -> None:
    message = Arrived(Place("spans", 0), 7, "traces", traces("leverwatch", "vllm"))
    found = kafka_pieces.weighed(message, "otlp_proto", lambda: 1)
    assert found.record is not None
    assert services(found.record.body) == ["vllm"]
    assert [(note.reason, note.count) for note in found.dropped] == [(own.REASON, 2)]
    alone = kafka_pieces.weighed(Arrived(Place("spans", 0), 8, "traces", traces("leverwatch")), "otlp_proto", lambda: 1)
    assert alone.record is None
    assert not alone.refused
