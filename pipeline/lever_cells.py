"""A lever's cells (`effect_cells`) in, arrays of both arms' sums by stratum, block and metric out, and the ways to put strata together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import MEANS, SUMS
from pipeline.inference.charge import added_s
from pipeline.inference.contrast import LEAST_REQUESTS, Sums
from pipeline.inference.strata import Level
from pipeline.metrics import by_name
from pipeline.segments import CELL_SEGMENT_KEYS, canonical

METRICS, RAW = MEANS.metrics, MEANS.raw
_FIRST = RAW.index("ttft_s")
_MADE_OF = [RAW.index(MEANS.made_of[metric]) for metric in METRICS]
_CHARGED = np.array([metric in MEANS.charged for metric in METRICS])
SIGN = np.array([-1.0 if by_name()[metric].better == "higher" else 1.0 for metric in METRICS])

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Groups:
    """Strata and the groups that they are in. `levels` are the ways to divide them, finest first; `keys` those told apart at each.

    `of` (strata,) is the number of each stratum's group; `names` are the groups' segments.
    """

    strata: tuple[str, ...]
    names: tuple[str, ...]
    of: Whole
    levels: tuple[Level, ...]
    keys: tuple[tuple[str, ...], ...]


def groups(segments: Sequence[str], by: Sequence[str] | None) -> Groups:
    """The groups of judging segments by the keys `by`; segments that lack one of them are left out. None: each is a group of its own.

    At each level the finest key is dropped of those that differ, and the last is kept: all strata in one would be pooled.
    """
    told = {segment: json.loads(segment) for segment in sorted(set(segments))}
    strata = tuple(name for name, keys in told.items() if by is None or all(key in keys for key in by))
    whole = {name: name if by is None else canonical({key: told[name][key] for key in by}) for name in strata}
    names = tuple(dict.fromkeys(sorted(whole.values())))
    place = {name: number for number, name in enumerate(names)}
    of = np.array([place[whole[name]] for name in strata], np.int64)
    kept = [key for key in CELL_SEGMENT_KEYS if by is not None and len({told[name].get(key) for name in strata}) > 1 and key not in by]
    divided = [tuple(kept[:count]) for count in range(len(kept), 0, -1)] or [()]
    levels = [Level(np.arange(len(strata)), of)]
    levels += [_level([tuple(told[name].get(key) for key in keys) for name in strata], of) for keys in divided[1:]]
    return Groups(strata, names, of, tuple(levels), tuple(divided))


def node_names(among: Groups, number: int) -> list[str]:
    """The segment of each node at a level: the keys that its strata have in common."""
    level, kept = among.levels[number], among.keys[number]
    _, firsts = np.unique(level.nodes, return_index=True)
    named = [(json.loads(among.strata[first]), json.loads(among.names[among.of[first]])) for first in firsts.tolist()]
    if number == 0:
        return [among.strata[first] for first in firsts.tolist()]
    return [canonical({key: value for key, value in told.items() if key in kept or key in whole}) for told, whole in named]


def _level(kept: Sequence[tuple[str | None, ...]], of: Whole) -> Level:
    numbers: dict[tuple[int, tuple[str | None, ...]], int] = {}
    nodes = [numbers.setdefault((int(group), values), len(numbers)) for group, values in zip(of, kept, strict=True)]
    return Level(np.array(nodes, np.int64), np.array([group for group, _ in numbers], np.int64))


def weights(requests: Mapping[str, float], among: Groups) -> Reals:
    """Each stratum's share of its group's requests, (strata,); 0 where a group had none."""
    counted = np.array([requests.get(name, 0.0) for name in among.strata], np.float64)
    whole = np.bincount(among.of, counted, len(among.names))[among.of] if len(counted) else counted
    return np.asarray(np.divide(counted, whole, out=np.zeros_like(counted), where=whole > 0))


def arm(cells: pl.DataFrame, name: str, strata: Sequence[str], starts: Sequence[datetime], metrics: Sequence[str] = RAW) -> Sums:
    """One arm's sums, arrays (strata, blocks, metrics); zeros where there is no cell. Blocks that are not among `starts` are left out."""
    shape = (len(strata), len(starts), len(metrics))
    places = [
        pl.DataFrame({column: list(values), f"{column}_place": range(len(values))}, schema_overrides={column: cells.schema[column]})
        for column, values in (("segment", strata), ("block_started_at", starts), ("metric", metrics))
    ]
    rows = cells.filter(pl.col("arm") == name)
    for place in places:
        rows = rows.join(place, on=place.columns[0])
    index = np.ravel_multi_index(tuple(rows[place.columns[1]].to_numpy() for place in places), shape)
    size = int(np.prod(shape))
    return Sums(*(np.bincount(index, rows[column].to_numpy(), size).astype(np.float64).reshape(shape) for column in SUMS))


def prepared(treated: Sums, control: Sums) -> tuple[Sums, Sums]:
    """The sums of METRICS made of those of RAW: net ITL charges treated with the TTFT that it adds within a stratum."""
    first_a, first_b = (Sums(*(getattr(one, name)[..., _FIRST] for name in SUMS)) for one in (treated, control))
    charge = added_s(first_a.n, first_a.num, first_b.n, first_b.num, LEAST_REQUESTS)
    mine, theirs = (Sums(*(getattr(one, name)[..., _MADE_OF] for name in SUMS)) for one in (treated, control))
    return mine.charged(charge[..., None] * _CHARGED), theirs
