"""Rows of spans in, one row for each run of neighbors that state the same levers out, or what they say that was not said before."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
LIMIT_KNOWN = 100_000  # settings that are remembered; beyond, all are said again


class SettingsSaid:
    """Which settings of levers were said lately, so that each is stored where it changes, not with every batch."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str | None], tuple[str, datetime]] = {}

    def new(self, spans: pa.Table) -> pa.Table:
        """Rows of `lever_settings` that differ from what the same replica, lever and arm had, or begin before it."""
        if len(self._known) > LIMIT_KNOWN:
            self._known.clear()
        rows = [row for row in _settings(spans) if self._is_new(*row)]
        names = ("replica", "lever", "arm", "setting")
        columns = {name: pa.array([row[number] for row in rows], pa.string()) for number, name in enumerate(names)}
        return pa.table({**columns, "since": pa.array([row[4] for row in rows], pa.timestamp("us", "UTC"))})

    def _is_new(self, replica: str, lever: str, arm: str | None, setting: str, since: datetime) -> bool:
        known = self._known.get((replica, lever, arm))
        if known is not None and known[0] == setting and known[1] <= since:
            return False
        self._known[replica, lever, arm] = setting, since
        return True


def _settings(spans: pa.Table) -> list[tuple[str, str, str | None, str, datetime]]:
    """Replica, lever, arm and setting of spans, each with its earliest start, in the order of these."""
    found: dict[tuple[str, str, str | None, str], datetime] = {}
    for row in runs(spans).to_pylist(maps_as_pydicts="lossy"):
        if row["replica"] is None:
            continue
        for lever, setting in (row["levers"] or {}).items():
            key = row["replica"], lever, (row["arms"] or {}).get(lever), setting
            if setting is not None:
                found[key] = min(row["started_at"], found.get(key, row["started_at"]))
    return sorted(((*key, since) for key, since in found.items()), key=lambda row: row[4])


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
