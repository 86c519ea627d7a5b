"""Rows in, the same rows with a table's columns and by the hour of their time out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queries.lake_tables import TIMELESS, hour_name


def conformed(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with exactly these columns, in their order: what the rows lack is null, what the table lacks is dropped.

    Raises:
        pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError: a value does not fit its column.
    """
    names = set(rows.schema.names)
    arrays = [_fitted(rows[one.name], one.type) if one.name in names else pa.nulls(rows.num_rows, one.type) for one in columns]
    return pa.table(arrays, schema=columns)


def _fitted(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return values if values.type == kind else pa.chunked_array([_cast(chunk, kind) for chunk in values.chunks], kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values as another type, structs by the names of their fields, also inside lists and maps."""
    if values.type == kind:
        return values
    if pa.types.is_dictionary(values.type):
        return _cast(values.dictionary_decode(), kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(values.type):
        there = {one.name for one in values.type}
        parts = [_cast(values.field(one.name), one.type) if one.name in there else pa.nulls(len(values), one.type) for one in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=values.is_null())
    if pa.types.is_map(kind) and pa.types.is_map(values.type):
        values = _whole(values)
        keys, items = _cast(values.keys, kind.key_type), _cast(values.items, kind.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=_mask(values))
    if pa.types.is_list(kind) and pa.types.is_list(values.type):
        values = _whole(values)
        return pa.ListArray.from_arrays(values.offsets, _cast(values.values, kind.value_type), type=kind, mask=_mask(values))
    return values.cast(kind)


def _whole(values: pa.Array) -> pa.Array:
    """The same values in buffers of their own: a mask cannot be put beside a slice."""
    return pa.concat_arrays([values, values[:0]]) if values.offset else values


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def by_hour(rows: pa.Table, time: str | None) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each hour of a time column; those of a table without one are one part."""
    if time is None:
        yield TIMELESS, rows
        return
    hours = pc.floor_temporal(rows[time], unit="hour")
    found = pc.unique(hours)
    if len(found) == 1:
        yield _part(found[0].as_py()), rows
        return
    numbers = np.asarray(pc.index_in(hours, found))
    for number, hour in enumerate(found.to_pylist()):
        yield _part(hour), rows.filter(pa.array(numbers == number))


def _part(hour: datetime | None) -> str:
    return TIMELESS if hour is None else hour_name(hour)


def between(rows: pa.Table, time: str, since: datetime | None, until: datetime | None) -> pa.Table:
    """The rows whose time lies in `[since, until)`; None is open."""
    if since is not None:
        rows = rows.filter(pc.greater_equal(rows[time], pa.scalar(since, rows[time].type)))
    if until is not None:
        rows = rows.filter(pc.less(rows[time], pa.scalar(until, rows[time].type)))
    return rows
