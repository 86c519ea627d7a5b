"""Broken exports are refused exactly when the reference protobuf parser refuses them, and nothing outside a body is ever read."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import product
from pathlib import Path

import collectors_wire as wire
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, EntityRef, KeyValue, KeyValueList
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from collectors import decode, wire_fields
from collectors import wire as kernels
from collectors import wire_layout as at
from collectors.door import reference_check

fixed = settings(derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
SCRIPT = """
import sys
import numpy as np
from collectors import decode

class Guarded(np.ndarray):
    def __getitem__(self, index):
        if not 0 <= index < len(self):
            raise IndexError(index)
        return super().__getitem__(index)

frombuffer = np.frombuffer
np.frombuffer = lambda *args: frombuffer(*args).view(Guarded)
for line in sys.stdin:
    print(int(decode.check(bytes.fromhex(line)).sound))
"""


def attribute(key: str, **value: object) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def rich() -> bytes:
    """An export with something in every field that is read."""
    items = ArrayValue(values=[AnyValue(string_value="é"), AnyValue(int_value=-1)])
    pairs = KeyValueList(values=[attribute("inner", array_value=items), attribute("ключ", double_value=0.5)])
    attributes = [attribute("text", string_value="名"), attribute("list", kvlist_value=pairs), attribute("raw", bytes_value=b"\xff")]
    span = Span(
        trace_id=bytes(range(16)), span_id=bytes(range(8)), parent_span_id=bytes(8), trace_state="a=b", name="llm_request",
        kind=2, flags=257,
        start_time_unix_nano=1_700_000_000_000_000_000, end_time_unix_nano=1_700_000_001_000_000_000, attributes=attributes,
        events=[Span.Event(time_unix_nano=7, name="first", attributes=[attribute("yes", bool_value=True)])],
        links=[Span.Link(trace_id=bytes(16), span_id=bytes(8), trace_state="c=d", attributes=[attribute("n", int_value=3)])],
        status=Status(code=2, message="trop tard ✗"),
    )  # fmt: skip
    entity = EntityRef(schema_url="u", type="service", id_keys=["service.name"])
    scope = ScopeSpans(spans=[span], schema_url="https://schema")
    scope.scope.name, scope.scope.version = "vllm.llm_engine", "1"
    resource = ResourceSpans(resource=Resource(attributes=attributes[:1], entity_refs=[entity]), scope_spans=[scope], schema_url="s")
    return bytes(ExportTraceServiceRequest(resource_spans=[resource]).SerializeToString())


def assert_agreement(body: bytes) -> None:
    assert decode.check(body) == reference_check(body), body.hex()


def test_an_export_cut_at_any_byte_is_judged_as_the_reference_parser_judges_it() -> None:
    body = rich()
    assert decode.check(body) == decode.Checked(sound=True, spans=1)
    for end in range(len(body)):
        assert_agreement(body[:end])


def test_an_export_with_any_byte_changed_or_lost_is_judged_as_the_reference_parser_judges_it() -> None:
    body = rich()
    for place in range(len(body)):
        assert_agreement(body[:place] + body[place + 1 :])
        for other in {body[place] ^ 1 << bit for bit in range(8)} | {0, 0x7F, 0x80, 0xFF}:
            assert_agreement(body[:place] + bytes([other]) + body[place + 1 :])


edits = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.binary(max_size=11)), min_size=1, max_size=3)


@settings(fixed, max_examples=500)
@given(wire.export, edits)
def test_a_generated_export_with_bytes_put_in_and_cut_out_is_judged_alike(body: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    for place, lost, added in edits:
        body = body[: place % (len(body) + 1)] + added + body[place % (len(body) + 1) + lost :]
    assert_agreement(body)


@pytest.mark.parametrize("width", range(1, 12))
@pytest.mark.parametrize("number", [1, 0x7F, 2**32 - 8, 2**64 - 1])
def test_padded_and_endless_numbers_are_judged_alike(width: int, number: int) -> None:
    padded = wire.varint(number, width)
    for before in (b"", wire.tag(10, wire.VARINT), wire.tag(10, wire.LENGTH), wire.tag(9, wire.GROUP)):
        for behind in (b"", b"\x00", b"abc", wire.tag(9, wire.GROUP_END)):
            assert_agreement(before + padded + behind)


@pytest.mark.parametrize("number", [0, 1, 2, 2**29 - 1, 2**29])
@pytest.mark.parametrize("kind", range(8))
def test_every_wire_type_is_judged_alike_where_it_is_not_expected(number: int, kind: int) -> None:
    head = wire.varint(number << 3 | kind)
    closing = wire.varint(number << 3 | wire.GROUP_END)
    for behind in (b"", b"\x00", b"\x01", bytes(8), b"\x07abcdefg", closing, head + closing, head + closing + closing, b"\x01" + closing):
        assert_agreement(head + behind)
        assert_agreement(wire.length(1, wire.length(2, wire.length(2, head + behind))))


@pytest.mark.parametrize("place", ["key", "value", "name", "trace_state", "status", "event", "schema", "scope", "entity"])
@pytest.mark.parametrize("raw", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xf0\x9f\x98\x80"])
def test_text_that_is_no_utf_8_is_refused_wherever_it_stands(place: str, raw: bytes) -> None:
    pair = wire.length(1, raw) if place == "key" else wire.length(2, wire.length(5, wire.length(1, wire.length(1, raw))))
    in_span = {
        "key": wire.length(9, pair),
        "value": wire.length(9, pair),
        "name": wire.length(5, raw),
        "trace_state": wire.length(3, raw),
        "status": wire.length(15, wire.length(2, raw)),
        "event": wire.length(11, wire.length(2, raw)),
    }
    in_resource = {
        "schema": wire.length(3, raw),
        "scope": wire.length(2, wire.length(1, wire.length(2, raw))),
        "entity": wire.length(1, wire.length(3, wire.length(4, raw))),
    }
    inside = wire.length(2, wire.length(2, in_span[place])) if place in in_span else in_resource[place]
    body = wire.length(1, inside)
    assert decode.check(body).sound == (raw == b"\xf0\x9f\x98\x80")
    assert_agreement(body)


def test_utf_8_is_told_as_python_tells_it() -> None:
    edges = bytes([0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEE, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF])
    raws = [bytes(pair) for pair in product(range(256), repeat=2)] + [bytes(four) for four in product(edges, repeat=4)]
    buffer = np.frombuffer(b"".join(raws), np.uint8)
    start = 0
    for raw in raws:
        assert wire_fields.is_text(buffer, start, start + len(raw)) == is_utf8(raw), raw
        start += len(raw)


def is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def nested(depth: int, *, in_pairs: bool) -> bytes:
    """An attribute whose value holds `depth` arrays or maps, one in the other."""
    inner = wire.length(1, b"x")
    for _ in range(depth):
        pair = wire.length(1, b"k") + wire.length(2, inner)
        inner = wire.length(6, wire.length(1, pair)) if in_pairs else wire.length(5, wire.length(1, inner))
    return wire.length(1, wire.length(2, wire.length(2, wire.length(9, wire.length(2, inner)))))


@pytest.mark.parametrize("in_pairs", [False, True])
def test_nesting_is_bounded_at_64_messages_where_the_reference_parser_takes_some_more(in_pairs: bool) -> None:
    """A walk without recursion needs a bound of its own; no sender nests attribute values 20 deep."""
    ours = [decode.check(nested(depth, in_pairs=in_pairs)).sound for depth in range(1, 130)]
    theirs = [reference_check(nested(depth, in_pairs=in_pairs)).sound for depth in range(1, 130)]
    assert ours == sorted(ours, reverse=True)
    assert 20 < sum(ours) <= sum(theirs)


def test_groups_in_groups_are_bounded_at_64_where_the_reference_parser_takes_100() -> None:
    """Nothing in OTLP is a group: a sender of the future may add one, never 64 in each other."""
    deep = [wire.tag(9, wire.GROUP) * depth + wire.tag(9, wire.GROUP_END) * depth for depth in range(1, 110)]
    assert sum(decode.check(body).sound for body in deep) == wire_fields.DEPTH_LIMIT
    for body in deep[: wire_fields.DEPTH_LIMIT] + deep[100:]:
        assert_agreement(body)


def broken_bodies(count: int) -> list[bytes]:
    chance = random.Random(2)
    whole, broken = rich(), []
    for _ in range(count):
        body = bytearray(whole[: chance.choice([len(whole), chance.randrange(len(whole))])])
        for _ in range(chance.randrange(1, 3)):
            if body:
                body[chance.randrange(len(body))] = chance.choice([0x00, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        broken.append(bytes(body))
    return broken


@pytest.mark.parametrize("around", [b"\x00", b"\x80", b"\xff", b"\x0a"])
def test_what_stands_around_a_body_changes_nothing(around: bytes) -> None:
    for body in broken_bodies(1000):
        buffer = np.frombuffer(around * 20 + body + around * 20, np.uint8)
        counts = np.zeros(at.COUNTS, np.int64)
        alone = decode.check(body)
        found = kernels.request(buffer, 20, 20 + len(body), False, counts, decode._NO_TABLES, 0)
        assert (found == at.OK) == alone.sound
        assert not alone.sound or counts[at.SPANS] == alone.spans


def cut_at_the_end() -> list[bytes]:
    """Bodies whose last field lacks bytes: a number, a tag, text, each at top level and in a message."""
    fields = [wire.tag(9, wire.FIXED64) + bytes(7), wire.tag(9, wire.FIXED32) + bytes(3), wire.tag(9, wire.VARINT) + b"\x80", b"\x80"]
    fields += [wire.length(3, raw) for raw in (b"\xc3", b"\xe2\x82", b"\xe2", b"\xf0\x9f\x98", b"\xf0")]
    cut = [field[lost:] for field in fields for lost in range(len(field))] + [
        field[:-lost] for field in fields for lost in range(1, len(field))
    ]
    return fields + cut + [wire.length(1, field) for field in fields + cut] + [wire.tag(9, wire.GROUP) + field for field in fields + cut]


def test_no_kernel_reads_outside_a_broken_body() -> None:
    """Compiled kernels do not check bounds; the same code as plain Python over a guarded array would raise."""
    bodies = [rich(), *broken_bodies(3000), *cut_at_the_end()]
    text = "\n".join(body.hex() for body in bodies)
    where = {"cwd": Path(__file__).parents[1], "env": {**os.environ, "NUMBA_DISABLE_JIT": "1"}}
    done = subprocess.run([sys.executable, "-c", SCRIPT], input=text, capture_output=True, text=True, check=False, **where)
    assert done.returncode == 0, done.stderr
    assert [bool(int(line)) for line in done.stdout.split()] == [decode.check(body).sound for body in bodies]
