"""Attributes of the reference parser's messages in, a plain dict of text out: what labels are made of."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

LIMIT_LABELS = 128
LIMIT_LABEL_CHARACTERS = 4096

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    """The attributes that have a value, as text; of a repeated key the last."""
    return {one.key: text(one.value) for one in attributes if one.value.WhichOneof("value")}


def text(value: AnyValue) -> str:
    """One value as text: `true`, `7`, `0.5`, and JSON where it is nested."""
    plain = _plain(value)
    if isinstance(plain, str):
        return plain
    return str(plain) if isinstance(plain, float) else json.dumps(plain, ensure_ascii=False)


def excess(labels: Mapping[str, str]) -> str:
    """Why labels are too many or too long to be kept; empty where they are not."""
    if len(labels) > LIMIT_LABELS:
        return f"more than {LIMIT_LABELS} labels"
    if any(len(key) + len(value) > LIMIT_LABEL_CHARACTERS for key, value in labels.items()):
        return f"a label is longer than {LIMIT_LABEL_CHARACTERS} characters"
    return ""


def _plain(value: AnyValue) -> Plain:
    member = value.WhichOneof("value")
    if member is None:
        return None
    if member == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if member == "kvlist_value":
        return {item.key: _plain(item.value) for item in value.kvlist_value.values}
    if member == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    plain: Plain = getattr(value, member)
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain
