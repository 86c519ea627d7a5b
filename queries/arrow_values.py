"""An Arrow array in, the same values as what JSON can hold out."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_ZERO = date(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1


def plain(array: pa.Array) -> list[Any]:
    """The values as JSON-able ones, as the head of `queries.results` says."""
    kind = array.type
    for matches, convert in _BY_KIND:
        if matches(kind):
            return convert(array)
    values: list[Any] = array.to_pylist()
    return values


def _floats(array: pa.Array) -> list[Any]:
    return [_float(value) for value in array.to_pylist()]


def _float(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimals(array: pa.Array) -> list[Any]:
    return [None if value is None else _decimal(value) for value in array.to_pylist()]


def _decimal(value: Decimal) -> float | int | str:
    if value == value.to_integral_value() and abs(value) <= _INT64_MAX:
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _timestamps(array: pa.Array) -> list[Any]:
    zone = "Z" if array.type.tz else ""
    return [None if value is None else _iso(value, array.type.unit, zone) for value in array.cast(pa.int64()).to_pylist()]


def _iso(value: int, unit: str, zone: str) -> str:
    if abs(value) >= _INT64_MAX:
        return "infinity" if value > 0 else "-infinity"
    if unit == "ns" or abs(value) // _PER_SECOND[unit] > 60_000_000_000:  # finer or further than datetime goes
        return _far(value, unit) + zone
    at = _EPOCH + timedelta(microseconds=value * (1_000_000 // _PER_SECOND[unit]))
    return at.replace(tzinfo=None).isoformat() + zone


def _dates(array: pa.Array) -> list[Any]:
    return [None if value is None else _iso_date(value) for value in array.cast(pa.int32()).to_pylist()]


def _iso_date(days: int) -> str:
    if abs(days) >= _INT32_MAX:
        return "infinity" if days > 0 else "-infinity"
    try:
        return (_DAY_ZERO + timedelta(days=days)).isoformat()
    except OverflowError:
        return _far(days, "D")


def _far(value: int, unit: str) -> str:
    """ISO text of a moment that `datetime` has no year or no digits for; years have at least four digits."""
    sign, year, rest = re.fullmatch(r"(-?)(\d+)(.*)", str(np.array(value).astype(f"datetime64[{unit}]"))).groups()  # type: ignore[union-attr]
    return f"{sign}{year.zfill(4)}{rest}"


def _times(array: pa.Array) -> list[Any]:
    per_second = _PER_SECOND[array.type.unit]
    whole = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64())
    return [None if value is None else _iso_time(value, per_second) for value in whole.to_pylist()]


def _iso_time(value: int, per_second: int) -> str:
    """ISO text of a time of day; unlike `datetime.time` up to 24:00:00."""
    seconds, rest = divmod(value, per_second)
    digits = f".{rest * 1_000_000_000 // per_second:09d}".removesuffix("000") if rest else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{digits}"


def _blobs(array: pa.Array) -> list[Any]:
    return [None if value is None else base64.b64encode(value).decode() for value in array.to_pylist()]


def _enums(array: pa.Array) -> list[Any]:
    return plain(array.dictionary_decode())


def _lists(array: pa.Array) -> list[Any]:
    values, offsets = plain(array.values), array.offsets.to_pylist()
    return [values[offsets[n] : offsets[n + 1]] if here else None for n, here in enumerate(_present(array))]


def _fixed_lists(array: pa.Array) -> list[Any]:
    size = array.type.list_size
    values = plain(array.values.slice(array.offset * size, len(array) * size))
    return [values[n * size : (n + 1) * size] if here else None for n, here in enumerate(_present(array))]


def _structs(array: pa.Array) -> list[Any]:
    names = [array.type.field(n).name for n in range(array.type.num_fields)]
    rows = zip(*(plain(child) for child in array.flatten()), strict=True) if names else [()] * len(array)
    return [dict(zip(names, row, strict=True)) if here else None for row, here in zip(rows, _present(array), strict=True)]


def _maps(array: pa.Array) -> list[Any]:
    keys, items, offsets = plain(array.keys), plain(array.items), array.offsets.to_pylist()
    pairs = [(key if isinstance(key, str) else json.dumps(key), item) for key, item in zip(keys, items, strict=True)]
    return [dict(pairs[offsets[n] : offsets[n + 1]]) if here else None for n, here in enumerate(_present(array))]


def _present(array: pa.Array) -> list[bool]:
    present: list[bool] = array.is_valid().to_pylist()
    return present


_BY_KIND: tuple[tuple[Callable[[Any], bool], Callable[[Any], list[Any]]], ...] = (
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_date, _dates),
    (pa.types.is_time, _times),
    (pa.types.is_binary, _blobs),
    (pa.types.is_large_binary, _blobs),
    (pa.types.is_dictionary, _enums),
    (pa.types.is_map, _maps),
    (pa.types.is_list, _lists),
    (pa.types.is_fixed_size_list, _fixed_lists),
    (pa.types.is_struct, _structs),
)
