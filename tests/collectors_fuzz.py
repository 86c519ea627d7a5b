"""Odd export bodies in, what the decoder and the loader do otherwise than the reference protobuf parser out.

Known differences, each a decision: more than 64 messages or groups in each other are refused here and taken there; an AnyValue that is
given twice in one place is joined there and the last one taken here; an AnyValue's index into a profile's table of texts, which no trace
export has, is a member of its own there and an unknown field here. The loader finds a copy of a span whose start was changed only within
a margin about the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import collectors_wire as wire
from collectors_fuzz_bodies import EXPORT, Breaker, read_varint
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from test_collectors_decode import assert_agreement, hex_id, is_usable

from collectors import decode, wire_fields
from collectors.door import reference_check
from collectors.load import Loader
from collectors.load_spans import MARGIN_NS
from collectors.spool import Spool
from queries import fresh_parts
from queries.store import Store

GOOD_MARK = b"\xfe" * 8
ARRIVAL = 1_750_000_000_000_000_000
TEXT_INDEX = 8
JOINED = {"KeyValue": (2,), "AnyValue": (5, 6)}


class DisagreementError(AssertionError):
    """The decoder says otherwise than the reference parser; holds the body in hexadecimal."""


def fields(body: bytes, kind: Any) -> Iterator[tuple[int, int, Any, bytes, int]]:
    """The fields of a sound message: number, wire type, kind of message where it is one, payload, and in how many groups it stands."""
    at = groups = 0
    while at < len(body):
        tag, at = read_varint(body, at)
        number, how, size = tag >> 3, tag & 7, 0
        known = kind.fields_by_number.get(number) if not groups else None
        if how == wire.VARINT:
            _, at = read_varint(body, at)
        elif how == wire.LENGTH:
            size, at = read_varint(body, at)
        elif how in (wire.FIXED64, wire.FIXED32):
            size = 8 if how == wire.FIXED64 else 4
        else:
            groups += 1 if how == wire.GROUP else -1
        yield number, how, known and how == wire.LENGTH and known.message_type, body[at : at + size], groups
        at += size


def depth(body: bytes, kind: Any = EXPORT) -> int:
    """How many messages and groups stand in each other, known ones only."""
    found = fields(body, kind)
    return max((max(groups, 1 + depth(payload, inner) if inner else 0) for _, _, inner, payload, groups in found), default=0)


def is_decided_otherwise(body: bytes, kind: Any = EXPORT) -> bool:
    """Whether a value that is an array or a map is given twice in one place, or is an index into a table of texts."""
    messages = []
    for number, how, inner, payload, groups in fields(body, kind):
        if kind.name == "AnyValue" and (number, how, groups) == (TEXT_INDEX, wire.VARINT, 0):
            return True
        if inner:
            messages.append(number)
            if is_decided_otherwise(payload, inner):
                return True
    return any(messages.count(number) > 1 for number in JOINED.get(kind.name, ()))


def check_verdict(body: bytes) -> bool:
    """Holds the door's verdict against the reference parser's; says whether both take the body."""
    got, want = decode.check(body), reference_check(body)
    if got == want:
        return got.sound
    if want.sound and not got.sound and depth(body) >= wire_fields.DEPTH_LIMIT:
        return False
    msg = f"{got} here, {want} there: {body.hex()}"
    raise DisagreementError(msg)


def check_rows(bodies: Sequence[bytes]) -> None:
    """Holds the rows of sound bodies against what the reference parser reads; first together, as a batch is read, then each."""
    try:
        assert_agreement(list(bodies))
    except Exception as together:
        alike = True
        for body in bodies:
            if is_decided_otherwise(body):
                alike = False
                continue
            try:
                assert_agreement([body])
            except Exception as error:
                msg = f"{type(error).__name__}: {str(error)[:2000]}: {body.hex()}"
                raise DisagreementError(msg) from error
        if alike:
            msg = f"each alone is read well, together not: {together}: {[body.hex() for body in bodies]}"
            raise DisagreementError(msg) from together


def good_body(number: int, spans: int = 3) -> bytes:
    """A plain export whose spans have ids of their own."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for place in range(spans):
        ids = (number * 100 + place + 1).to_bytes(8, "big")
        span = scope.spans.add(trace_id=GOOD_MARK + ids, span_id=ids, name="good", kind=2)
        span.start_time_unix_nano, span.end_time_unix_nano = ARRIVAL - 1_000_000_000, ARRIVAL
    body: bytes = request.SerializeToString()
    return body


def span_ids(body: bytes) -> set[tuple[str | None, str | None]]:
    """The ids of the spans of a body that can be stored."""
    request = ExportTraceServiceRequest.FromString(body)
    spans = (span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans)
    return {(hex_id(span.trace_id, 16), hex_id(span.span_id, 8)) for span in spans if is_usable(span)}


class LoadCheck:
    """A store that odd bodies are loaded into beside good ones; every good span must be there, once."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.loader = Loader(self.store)
        self.spool = Spool(folder / "spool", self.loader.position())
        self.wanted: set[tuple[str | None, str | None]] = set()
        self.numbers = 0

    def load(self, bodies: Sequence[bytes]) -> None:
        """Loads them all, with a good body between each two."""
        waiting = []
        for body in bodies:
            self.numbers += 1
            good = good_body(self.numbers)
            self.wanted |= span_ids(good)
            if decode.check(body).sound and not decode.check(body).too_large:
                self.wanted |= span_ids(body)
            waiting += [self.spool.append("traces", "fuzz", ARRIVAL, one) for one in (good, body)]
        for future in waiting:
            future.result(10)
        while self.loader.load_next(self.spool):
            pass

    def check(self) -> None:
        """Holds what is stored against what must be."""
        ids = "select trace_id, span_id, count(*) as n, max(start_unix_nano) - min(start_unix_nano) as apart_ns from spans group by all"
        rows = self.store.rows(ids)
        stored = {(row["trace_id"], row["span_id"]) for row in rows}
        twice = [row for row in rows if row["n"] > 1 and row["apart_ns"] <= MARGIN_NS]
        if stored != self.wanted or twice:
            msg = f"lost {sorted(self.wanted - stored)[:5]}, too many {sorted(stored - self.wanted)[:5]}, twice {twice[:5]}"
            raise DisagreementError(msg)

    def close(self) -> None:
        """Lets the folder go."""
        self.spool.close()
        self.store.close()


def run(breaker: Breaker, rounds: int, bodies_a_round: int = 32) -> tuple[int, int]:
    """Some rounds over one store; gives how many bodies were made and how many of them were sound."""
    made = sound = 0
    with TemporaryDirectory() as folder:
        loads = LoadCheck(Path(folder))
        usual, fresh_parts.MIN_ROWS = fresh_parts.MIN_ROWS, breaker.chance.choice((1, fresh_parts.MIN_ROWS))
        try:
            for _ in range(rounds):
                bodies = [breaker.body() for _ in range(bodies_a_round)]
                good = [body for body in bodies if check_verdict(body)]
                check_rows(good)
                loads.load(bodies)
                made, sound = made + len(bodies), sound + len(good)
            loads.check()
        finally:
            fresh_parts.MIN_ROWS = usual
            loads.close()
    return made, sound
