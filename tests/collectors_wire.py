"""Trace exports written byte by byte: every field, repeated, in any order, between fields nobody knows."""

from __future__ import annotations

import struct
from collections.abc import Callable

from hypothesis import strategies as st

from collectors.rows import LATEST_NS

Bytes = st.SearchStrategy[bytes]
VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = 0, 1, 2, 3, 4, 5
UINT64 = st.integers(0, 2**64 - 1)


def varint(number: int, width: int = 1) -> bytes:
    """A base-128 number, padded to at least `width` bytes."""
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127)
    digits += [0] * (width - len(digits))
    return bytes(digit | 128 for digit in digits[:-1]) + bytes(digits[-1:])


def tag(number: int, wire: int) -> bytes:
    """What stands before a field's value."""
    return varint(number << 3 | wire)


def length(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return tag(number, LENGTH) + varint(len(payload)) + payload


def group(number: int, payload: bytes) -> bytes:
    """A field between group tags."""
    return tag(number, GROUP) + payload + tag(number, GROUP_END)


def _number(number: int, values: st.SearchStrategy[int]) -> Bytes:
    return values.map(lambda value: tag(number, VARINT) + varint(value % 2**64))


def _fixed64(number: int, values: st.SearchStrategy[int]) -> Bytes:
    return values.map(lambda value: tag(number, FIXED64) + struct.pack("<Q", value))


def _double(number: int) -> Bytes:
    return st.floats().map(lambda value: tag(number, FIXED64) + struct.pack("<d", value))


def _in(number: int, payloads: Bytes) -> Bytes:
    return payloads.map(lambda payload: length(number, payload))


def _text(number: int, texts: st.SearchStrategy[str]) -> Bytes:
    return texts.map(lambda text: length(number, text.encode()))


def _shuffled(*fields: Bytes, at_most: int) -> Bytes:
    return st.lists(st.one_of(*fields, unknown), max_size=at_most).map(b"".join)


def _with(*always: Bytes) -> Callable[[Bytes], Bytes]:
    """Fields that are there, in any order, before or behind the others."""
    ordered = st.tuples(*always).flatmap(lambda drawn: st.permutations(drawn).map(b"".join))
    return lambda others: st.one_of(st.tuples(ordered, others), st.tuples(others, ordered)).map(b"".join)


_flat_unknown: Bytes = st.integers(1000, 2**29 - 1).flatmap(
    lambda number: st.one_of(
        _number(number, UINT64),
        _fixed64(number, UINT64),
        st.binary(max_size=9).map(lambda payload: length(number, payload)),
        st.binary(min_size=4, max_size=4).map(lambda payload: tag(number, FIXED32) + payload),
    )
)
unknown: Bytes = st.one_of(
    _flat_unknown,
    st.recursive(_flat_unknown, lambda inner: st.lists(inner, max_size=2).map(lambda parts: group(999, b"".join(parts))), max_leaves=4),
)

_texts = st.text(max_size=6)
_keys = st.sampled_from(["a", "b", "gen_ai.request.id", "ключ", ""]) | _texts
_flags = st.sampled_from([0, 1, 2, 127, 2**63, 2**64 - 1])
_ints = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)

_scalar: Bytes = st.one_of(_text(1, _texts), _number(2, _flags), _number(3, _ints), _double(4), _in(7, st.binary(max_size=5)))


def _nested(values: Bytes) -> Bytes:
    pair = st.tuples(_text(1, _keys), _in(2, values)).map(b"".join)
    return st.one_of(
        _in(5, st.lists(_in(1, values), max_size=3).map(b"".join)), _in(6, st.lists(_in(1, pair), max_size=3).map(b"".join)), _scalar
    )


_value: Bytes = st.lists(st.one_of(st.recursive(_scalar, _nested, max_leaves=6), unknown), max_size=3).map(b"".join)
# A second array in a second `value` is left out: the reference parser joins the two, ours takes the last. No writer repeats `value`.
attribute: Bytes = st.one_of(
    _with(_text(1, _keys), _in(2, _value))(_shuffled(_text(1, _keys), at_most=1)),
    _with(_in(2, _scalar))(_shuffled(_in(2, _scalar), _text(1, _keys), _in(2, st.just(b"")), at_most=3)),
    _shuffled(_text(1, _keys), at_most=2),
)

_ids = st.sampled_from([b"", b"\0" * 16, b"\x01" * 15]) | st.binary(min_size=1, max_size=17)
_event = _shuffled(_fixed64(1, UINT64), _text(2, _texts), _in(3, attribute), _number(4, UINT64), at_most=6)
_link = st.tuples(
    _in(1, st.binary(min_size=16, max_size=16) | _ids),
    _in(2, st.binary(min_size=8, max_size=8) | _ids),
    _shuffled(_text(3, _texts), _in(4, attribute), _number(5, UINT64), at_most=4),
).map(b"".join)
_enums = st.integers(-1, 7) | st.sampled_from([2**31, 2**32 + 1, 2**63])
_status = _shuffled(_text(2, _texts), _number(3, _enums), at_most=3)
_times = st.integers(1, LATEST_NS)
_span = _with(
    _in(1, st.binary(min_size=16, max_size=16)),
    _in(2, st.binary(min_size=8, max_size=8)),
    _fixed64(7, _times),
    _fixed64(8, _times),
)(
    _shuffled(
        _text(3, _texts),
        _in(4, st.binary(min_size=8, max_size=8)),
        _text(5, _texts),
        _number(6, _enums),
        _in(9, attribute),
        _in(9, attribute),
        _number(10, UINT64),
        _in(11, _event),
        _in(13, _link),
        _in(15, _status),
        st.binary(min_size=4, max_size=4).map(lambda raw: tag(16, FIXED32) + raw),
        at_most=9,
    )
)
_odd_span = st.tuples(_span, st.one_of(_in(1, _ids), _in(2, _ids), _in(4, _ids), _fixed64(7, UINT64), _fixed64(8, UINT64))).map(b"".join)
_entity = _shuffled(*(_text(number, _texts) for number in range(1, 5)), at_most=3)
_resource = _shuffled(_in(1, attribute), _number(2, UINT64), _in(3, _entity), at_most=4)
_scope = _shuffled(_text(1, _texts), _text(2, _texts), _in(3, attribute), _number(4, UINT64), at_most=4)
_scope_spans = _shuffled(_in(1, _scope), _in(2, _span), _in(2, _span), _in(2, _odd_span), _text(3, _texts), at_most=5)
_resource_spans = _shuffled(_in(1, _resource), _in(2, _scope_spans), _in(2, _scope_spans), _text(3, _texts), at_most=4)
export: Bytes = _shuffled(_in(1, _resource_spans), _in(1, _resource_spans), at_most=3)
