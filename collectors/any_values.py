"""Nested attribute values in, JSON text out: arrays, maps and bytes, each distinct value read once."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable

import pyarrow as pa
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from collectors import wire_layout as at
from collectors.columns import Bytes, Ints, interned, offsets_and_data

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


def written(buffer: Bytes, rows: Ints, is_dropped: Callable[[str], bool] | None = None) -> tuple[Ints, Bytes]:
    """The text of each attribute row with a nested value, as offsets and bytes; without the keys that are dropped."""
    ids, firsts = interned(buffer, rows[:, at.VALUE], rows[:, at.VALUE_LEN])
    distinct = rows[firsts][:, [at.TYPE, at.VALUE, at.VALUE_LEN]].tolist()
    keeps = (lambda _: True) if is_dropped is None else (lambda key: not is_dropped(key))
    texts = [_text(kind, buffer[start : start + length].tobytes(), keeps) for kind, start, length in distinct]
    return offsets_and_data(pa.array(texts, pa.string()).take(pa.array(ids)))


def _text(kind: int, raw: bytes, keeps: Callable[[str], bool]) -> str:
    if kind == at.BYTES:
        return base64.b64encode(raw).decode()
    try:
        plain = _plain(AnyValue.FromString(raw), keeps)
    except (DecodeError, RecursionError):
        return '"<unreadable>"'
    return json.dumps(plain, ensure_ascii=False)


def _plain(value: AnyValue, keeps: Callable[[str], bool]) -> Plain:
    member = value.WhichOneof("value")
    if member is None:
        return None
    if member == "array_value":
        return [_plain(item, keeps) for item in value.array_value.values]
    if member == "kvlist_value":
        return {item.key: _plain(item.value, keeps) for item in value.kvlist_value.values if keeps(item.key)}
    if member == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    plain: Plain = getattr(value, member)
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain  # JSON has no word for these
