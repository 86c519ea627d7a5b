"""Cells of a window of blocks in, arrays of each arm's sums by pair and block out, metric by metric; a pair is a lever in a segment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.measure import BLOCK_S, REQUESTS

ARMS = ("treated", "control")
SUMS = ("n", "num", "den")
_NAMES = ("lever", "segment", "metric", "arm")
_BLOCK_US = BLOCK_S * 1_000_000

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Kind = tuple[str | None, str | None]
Codes = npt.NDArray[np.uint32]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm's sums of one metric, arrays (pairs, blocks), and its requests, (pairs,)."""

    n: Reals
    num: Reals
    den: Reals
    requests: Reals


@dataclass(frozen=True, slots=True)
class Window:
    """The pairs that have a treated arm, sorted (`names`: lever, segment), and what their cells hold.

    `places` (rows,) is each cell's pair and block, `sums` are its SUMS. Cells lie by metric and arm; `ends` says from where to where.
    """

    names: pl.DataFrame
    blocks: int
    has_control: Truths
    places: npt.NDArray[np.int32]
    sums: tuple[Reals | Whole, ...]
    ends: Mapping[Kind, tuple[int, int]]

    def arms(self, metric: str) -> tuple[Arm, Arm]:
        """Both arms' sums of a metric; zeros where there is no cell."""
        treated, control = (self._arm(metric, arm) for arm in ARMS)
        return treated, control

    def _arm(self, metric: str, arm: str) -> Arm:
        n, num, den = self._added(metric, arm)
        return Arm(n, num, den, self._added(REQUESTS, arm, 1)[0].sum(axis=1))

    def _added(self, metric: str, arm: str, parts: int = len(SUMS)) -> list[Reals]:
        first, end = self.ends.get((metric, arm), (0, 0))
        shape, places = (len(self.names), self.blocks), self.places[first:end]
        return [np.bincount(places, one[first:end], shape[0] * shape[1]).astype(np.float64).reshape(shape) for one in self.sums[:parts]]


def window(cells: pl.DataFrame) -> Window:
    """The window of these cells: rows of lever, segment, metric, arm, block_started_at and SUMS; those of one key add up."""
    (lever, levers), (segment, segments), (metric, metrics), (arm, arms) = (_coded(cells, name) for name in _NAMES)
    pair = segment if len(levers) == 1 else lever * np.uint32(len(segments)) + segment
    names = _crossed(levers, segments)
    treated, control = (_present(pair[arm == _place(arms, name)], len(names)) for name in ARMS)
    held = names.filter(treated).sort("lever", "segment")
    place = np.full(len(names), -1, np.int32)
    place[held["pair"].to_numpy()] = np.arange(len(held))
    kind = (metric * np.uint32(len(arms)) + arm).astype(np.uint16)
    order = np.argsort(kind, kind="stable") if treated.all() else _of_held(kind, place[pair] >= 0)
    began, blocks = _blocks(cells["block_started_at"])
    places = place[pair] * blocks + began
    ends = _ends([(one, other) for one in metrics for other in arms], kind[order])
    sums = tuple(cells[name].to_numpy()[order] for name in SUMS)
    return Window(held.drop("pair"), blocks, control[held["pair"].to_numpy()], places[order], sums, ends)


def _coded(cells: pl.DataFrame, name: str) -> tuple[Codes, list[str | None]]:
    """(each row's number, what the numbers stand for, None for one that no row has). The store has numbers of its own for some names."""
    names, number = cells[name], f"{name}_id"
    coded = cells[number] if number in cells.columns else names.cast(pl.Categorical(pl.Categories.random())).to_physical()
    codes = coded.cast(pl.UInt32).to_numpy()
    rows = np.full(int(codes.max(initial=0)) + 1, -1)
    rows[codes] = np.arange(len(codes))
    return codes, names.gather(pl.select(pl.when(pl.lit(pl.Series(rows)) >= 0).then(pl.lit(pl.Series(rows)))).to_series()).to_list()


def _crossed(levers: list[str | None], segments: list[str | None]) -> pl.DataFrame:
    """The lever and segment of each number of a pair; there are numbers that no row has."""
    both = pl.DataFrame({"lever": levers}).join(pl.DataFrame({"segment": segments}), how="cross", maintain_order="left_right")
    return both.with_columns(pl.int_range(pl.len()).alias("pair"))


def _place(names: list[str | None], name: str) -> int:
    return names.index(name) if name in names else -1


def _present(pairs: Codes, count: int) -> Truths:
    found = np.zeros(count, np.bool_)
    found[pairs] = True
    return found


def _of_held(kind: npt.NDArray[np.uint16], is_held: Truths) -> Whole:
    kept = np.flatnonzero(is_held)
    return kept[np.argsort(kind[kept], kind="stable")]


def _blocks(started_at: pl.Series) -> tuple[npt.NDArray[np.int32], int]:
    """(the number of each row's block, counted from the first; how many blocks there are)."""
    moments_us = started_at.dt.epoch("us").to_numpy()
    block = ((moments_us - moments_us.min(initial=2**62)) // _BLOCK_US).astype(np.int32)
    return block, int(block.max(initial=-1)) + 1


def _ends(kinds: list[Kind], sorted_kinds: npt.NDArray[np.uint16]) -> dict[Kind, tuple[int, int]]:
    stops = np.searchsorted(sorted_kinds, np.arange(len(kinds) + 1)).tolist()
    return dict(zip(kinds, pairwise(stops), strict=True))
