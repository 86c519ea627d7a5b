"""Export bodies in, broken and odd ones out: bytes changed blindly, and fields changed in a tree whose lengths are then written anew.

What the second kind makes is mostly sound and reaches deep into the decoder; what the first makes is mostly refused early. Both are drawn
from one seeded generator, so that a body can be made again from its seed.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import collectors_wire as wire
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.rows import LATEST_NS

EXPORT = ExportTraceServiceRequest.DESCRIPTOR
ODD_NUMBERS = (0, 1, 2, 127, 128, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1)
ODD_TIMES = (0, 1, 999, LATEST_NS - 1, LATEST_NS, LATEST_NS + 1, 2**63 - 1, 2**63, 2**64 - 1)
ODD_DOUBLES = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7e308, 1e16, 0.1)
ODD_TEXTS = (
    b"",
    b"\0",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    "𝄞é".encode(),
    b"NaN",
    b'{"a": [',
    b"x" * 70_000,
)
ODD_IDS = (b"", bytes(8), bytes(16), b"\x01" * 7, b"\x02" * 8, b"\x03" * 15, b"\x04" * 16, b"\x05" * 17)


@dataclass
class Field:
    """One field as it stands in a body: a number, bytes, or the fields of a message of a known kind."""

    number: int
    wire: int
    value: Any
    kind: Any = None
    width: int = 1

    def written(self) -> bytes:
        """Its bytes; lengths are those of what it holds now."""
        head = wire.varint(self.number << 3 | self.wire)
        if self.wire == wire.VARINT:
            return head + wire.varint(self.value, self.width)
        if self.wire == wire.LENGTH:
            payload = self.value if isinstance(self.value, bytes) else written(self.value)
            return head + wire.varint(len(payload), self.width) + payload
        if self.wire == wire.GROUP:
            inner: bytes = written(self.value)
            return head + inner + wire.varint(self.number << 3 | wire.GROUP_END)
        raw: bytes = self.value
        return head + raw


def written(fields: Sequence[Field]) -> bytes:
    """The bytes of some fields."""
    return b"".join(field.written() for field in fields)


def read(body: bytes, kind: Any = EXPORT) -> list[Field]:
    """The fields of a message of a kind; raises ValueError where the bytes are none."""
    fields, at = [], 0
    while at < len(body):
        tag, at = read_varint(body, at)
        number, how = tag >> 3, tag & 7
        if how == wire.VARINT:
            value, at = read_varint(body, at)
            fields.append(Field(number, how, value))
            continue
        size = {wire.FIXED64: 8, wire.FIXED32: 4}.get(how)
        if how == wire.LENGTH:
            size, at = read_varint(body, at)
        if size is None or at + size > len(body):
            msg = f"no field at byte {at}"
            raise ValueError(msg)
        raw, at = body[at : at + size], at + size
        known = kind.fields_by_number.get(number)
        inner = known.message_type if known is not None and how == wire.LENGTH else None
        fields.append(Field(number, how, read(raw, inner) if inner else raw, inner))
    return fields


def read_varint(body: bytes, at: int) -> tuple[int, int]:
    """A base-128 number and where it ends."""
    number = 0
    for place in range(10):
        if at + place >= len(body):
            break
        number |= (body[at + place] & 127) << 7 * place
        if body[at + place] < 128:
            return number, at + place + 1
    msg = f"no number at byte {at}"
    raise ValueError(msg)


def every_list(fields: list[Field], kind: Any = EXPORT) -> list[tuple[list[Field], Any]]:
    """The fields of the message and of all messages in it, each with its kind."""
    found = [(fields, kind)]
    for field in fields:
        if field.kind is not None and isinstance(field.value, list):
            found += every_list(field.value, field.kind)
    return found


class Breaker:
    """Makes odd bodies of a corpus, from a seed."""

    def __init__(self, corpus: Sequence[bytes], seed: int) -> None:
        self.chance = random.Random(seed)
        self.corpus = corpus
        self.trees: list[Callable[[list[Field], Any], None]] = [
            self._repeat, self._lose, self._shuffle, self._put_unknown, self._put_group, self._nest, self._other_wire,
            self._odd_value, self._odd_value, self._odd_value, self._pad, self._splice,
        ]  # fmt: skip

    def body(self) -> bytes:
        """The next one."""
        body = self.chance.choice(self.corpus)
        kind = self.chance.random()
        if kind < 0.65:
            fields = read(body)
            for _ in range(self.chance.choice((1, 1, 2, 3, 8))):
                inside, of = self.chance.choice(every_list(fields))
                self.chance.choice(self.trees)(inside, of)
            body = written(fields)
        if kind > 0.55:
            for _ in range(self.chance.choice((1, 1, 2, 4))):
                body = self._blindly(body)
        return body

    def _blindly(self, body: bytes) -> bytes:
        chance = self.chance
        at, much = chance.randrange(len(body) + 1), chance.choice((1, 1, 2, 8, 40))
        other = chance.choice(self.corpus)
        start = chance.randrange(len(other) + 1)
        return chance.choice(
            (
                lambda: body[:at],
                lambda: body[:at] + body[at + much :],
                lambda: body[:at] + chance.randbytes(much) + body[at:],
                lambda: body[:at] + chance.randbytes(much) + body[at + much :],
                lambda: body[:at] + bytes(byte ^ 1 << chance.randrange(8) for byte in body[at : at + 1]) + body[at + 1 :],
                lambda: body[:at] + chance.choice((b"\x80", b"\xff", b"\x7f", b"\x00")) * much + body[at + much :],
                lambda: body[:at] + body[max(0, at - much) : at] + body[at:],
                lambda: body[:at] + other[start:],
                lambda: body + other,
                lambda: body[:at] + wire.varint(chance.choice(ODD_NUMBERS), chance.randrange(1, 12)) + body[at:],
            )
        )()

    def _repeat(self, inside: list[Field], _: Any) -> None:
        if inside:
            inside.insert(self.chance.randrange(len(inside) + 1), self.chance.choice(inside))

    def _lose(self, inside: list[Field], _: Any) -> None:
        if inside:
            inside.pop(self.chance.randrange(len(inside)))

    def _shuffle(self, inside: list[Field], _: Any) -> None:
        self.chance.shuffle(inside)

    def _put_unknown(self, inside: list[Field], of: Any) -> None:
        number = self.chance.choice((19, 100, 2**29 - 1, *of.fields_by_number))
        inside.insert(self.chance.randrange(len(inside) + 1), self._field(number))

    def _field(self, number: int) -> Field:
        chance = self.chance
        return chance.choice(
            (
                Field(number, wire.VARINT, chance.choice(ODD_NUMBERS), width=chance.choice((1, 1, 10))),
                Field(number, wire.FIXED64, chance.randbytes(8)),
                Field(number, wire.FIXED32, chance.randbytes(4)),
                Field(number, wire.LENGTH, chance.choice((*ODD_TEXTS[:-1], chance.randbytes(5)))),
            )
        )

    def _put_group(self, inside: list[Field], of: Any) -> None:
        group = [self._field(self.chance.choice((1, 9, 1000)))]
        for _ in range(self.chance.choice((0, 1, 5, 62, 63, 70, 110))):
            group = [Field(7, wire.GROUP, group)]
        inside.append(Field(self.chance.choice((3, 999, *of.fields_by_number)), wire.GROUP, group))

    def _nest(self, inside: list[Field], of: Any) -> None:
        if of.name not in ("AnyValue", "KeyValue", "ArrayValue", "Span", "Resource"):
            return
        raw = b"\x0a\x01x"
        for _ in range(self.chance.choice((1, 2, 10, 27, 29, 40, 60, 130))):
            pair = wire.length(1, b"k") + wire.length(2, raw)
            raw = wire.length(6, wire.length(1, pair)) if self.chance.random() < 0.5 else wire.length(5, wire.length(1, raw))
        value = Field(2, wire.LENGTH, raw)
        if of.name in ("Span", "Resource"):
            inside.append(Field(9 if of.name == "Span" else 1, wire.LENGTH, wire.length(1, b"deep") + value.written()))
        else:
            inside[:] = [value] if of.name == "KeyValue" else [Field(1, wire.LENGTH, raw)]

    def _other_wire(self, inside: list[Field], _: Any) -> None:
        if inside:
            at = self.chance.randrange(len(inside))
            inside[at] = self._field(inside[at].number)

    def _odd_value(self, inside: list[Field], of: Any) -> None:
        plain = [field for field in inside if not isinstance(field.value, list)]
        if not plain:
            return
        field = self.chance.choice(plain)
        if field.wire == wire.VARINT:
            field.value = self.chance.choice(ODD_NUMBERS)
        elif field.wire == wire.FIXED64:
            is_time = of.name in ("Span", "Event")
            field.value = (
                struct.pack("<Q", self.chance.choice(ODD_TIMES)) if is_time else struct.pack("<d", self.chance.choice(ODD_DOUBLES))
            )
        elif field.wire == wire.LENGTH:
            is_id = of.name in ("Span", "Link") and field.number in (1, 2, 4)
            field.value = self.chance.choice(ODD_IDS if is_id else ODD_TEXTS)

    def _pad(self, inside: list[Field], _: Any) -> None:
        if inside:
            self.chance.choice(inside).width = self.chance.choice((2, 5, 9, 10, 11))

    def _splice(self, inside: list[Field], of: Any) -> None:
        other = [fields for fields, kind in every_list(read(self.chance.choice(self.corpus))) if kind is of]
        if other:
            inside += self.chance.choice(other)
