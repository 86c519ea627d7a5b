"""Rows of spans in, one row for each run of neighbors that state the same levers out: few rows instead of many."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]


def runs(spans: pa.Table) -> pa.Table:
    """`replica`, `levers`, `arms` of each run of equal neighbors, with its earliest `started_at`; empty where no lever is stated."""
    chosen = spans.select(["replica", "levers", "arms", "started_at"])
    if chosen["levers"].null_count == len(chosen):
        return chosen.slice(0, 0)
    columns = [chosen[name].combine_chunks() for name in ("replica", "levers", "arms")]
    differs = _differs(columns[0])
    for column in columns[1:]:
        differs = differs | _map_differs(column)
    first = np.flatnonzero(np.concatenate([[True], differs]))
    started = chosen["started_at"].combine_chunks()
    earliest = np.minimum.reduceat(np.asarray(started.cast(pa.int64())), first)
    taken = chosen.take(pa.array(first))
    return taken.set_column(3, "started_at", pa.array(earliest).cast(started.type))


def _differs(values: pa.Array) -> Mask:
    """Whether each value but the first differs from the one before; null is equal to null."""
    same: Mask = np.asarray(pc.fill_null(pc.equal(values[1:], values[:-1]), False))
    nulls = np.asarray(values.is_null())
    differs: Mask = ~(same | (nulls[1:] & nulls[:-1]))
    return differs


def _map_differs(maps: pa.MapArray) -> Mask:
    """The same of maps. Where they have different numbers of entries, every map counts as another: that costs time, nothing else."""
    if maps.null_count == len(maps):
        return np.zeros(len(maps) - 1, np.bool_)
    offsets = np.asarray(maps.offsets)
    sizes = np.diff(offsets)
    size = int(sizes[0])
    if maps.null_count or size == 0 or (sizes != size).any():
        return np.ones(len(maps) - 1, np.bool_)
    differs = np.zeros(len(maps) - 1, np.bool_)
    for entries in (maps.keys, maps.items):
        held = entries.slice(int(offsets[0]), size * len(maps))
        same = np.asarray(pc.fill_null(pc.equal(held[size:], held[:-size]), False))
        differs |= ~same.reshape(-1, size).all(axis=1)
    return differs
