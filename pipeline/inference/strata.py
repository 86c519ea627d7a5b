"""Block sums of the strata of many groups in, each group's standardized contrasts out, all groups at once: `standardize.total` of arrays.

Arrays have shape (strata, blocks, metrics), those that are given out (groups, blocks, metrics).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from pipeline.inference import contrast
from pipeline.inference.contrast import Reference, Sums
from pipeline.inference.standardize import LEAST_COVERAGE, LEAST_TREATED

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Prepare = Callable[[Sums, Sums], tuple[Sums, Sums]]


@dataclass(frozen=True, slots=True)
class Level:
    """One way to divide strata: the node of each stratum (strata,), and the group of each node (nodes,); numbers from 0 without gaps."""

    nodes: Whole
    groups: Whole


@dataclass(frozen=True, slots=True)
class Series:
    """What blocks say of each group, NaN = nothing. `difference` is relative, positive where treated is worse.

    share: treated's of the requests. coverage: the weight that was covered. `ih` and `b` are what a scale needs, as of one stream (see
    `contrast.Contrast`). level: which one a block was told at, -1 = none.
    """

    difference: Reals
    share: Reals
    coverage: Reals
    ih: Reals
    b: Reals
    level: Whole


def summed(values: Reals, places: Whole) -> Reals:
    """The sums of rows (rows, ...) at each place; every place from 0 on has a row."""
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


def of_nodes(arm: Sums, nodes: Whole) -> Sums:
    """An arm's sums by node."""
    return Sums(*(summed(getattr(arm, one.name), nodes) for one in fields(Sums)))


def chosen(treated_n: Reals, control_n: Reals, weight: Reals, levels: Sequence[Level], least: float = LEAST_TREATED) -> Whole:
    """The finest level at which nodes with `least` requests in both arms have 90 % of a group's weight; -1 where none has.

    `weight` (strata,) sums up to 1 within each group. Counts decide, never values.
    """
    found: Whole | None = None
    for number, level in enumerate(levels):
        shares = summed(weight, level.nodes)
        mine, theirs = summed(treated_n, level.nodes), summed(control_n, level.nodes)
        has_both = (mine >= least) & (theirs >= least)
        covered = summed(shares[:, None, None] * has_both, level.groups)
        found = np.full(covered.shape, -1, np.int64) if found is None else found
        found = np.where((found < 0) & (covered >= LEAST_COVERAGE), number, found)
    return np.zeros((0, *treated_n.shape[1:]), np.int64) if found is None else found


def series(
    treated: Sums,
    control: Sums,
    weight: Reals,
    levels: Sequence[Level],
    prepare: Prepare,
    sign: Reals,
    least: float = LEAST_TREATED,
) -> Series:
    """Each group's standardized contrast of each block (theta0 = 1), at the finest level that covers 90 % of its weight in that block.

    `prepare` makes the metrics' sums of a level's. Sums of earlier blocks are the reference, so the first block says nothing. sign:
    (metrics,), 1 where lower is better.
    """
    n_treated, n_control = (one.n for one in prepare(treated, control))
    level = chosen(n_treated, n_control, weight, levels, least)
    out = [np.full(level.shape, np.nan)] * 5
    for number in np.unique(level[level >= 0]).tolist():
        told = _at(treated, control, weight, levels[number], prepare, sign, least)
        out = [np.where(level == number, new, old) for new, old in zip(told, out, strict=True)]
    difference, share, coverage, ih, b = out
    return Series(difference, share, coverage, ih, b, level)


def _at(treated: Sums, control: Sums, weight: Reals, level: Level, prepare: Prepare, sign: Reals, least: float) -> list[Reals]:
    """[difference, share, coverage, ih, b] of all groups at one level."""
    mine, theirs = prepare(of_nodes(treated, level.nodes), of_nodes(control, level.nodes))
    difference, b = _contrasts(mine, theirs, sign)
    told = np.isfinite(difference) & (mine.n >= least) & (theirs.n >= least)
    part = summed(weight, level.nodes)[:, None, None] * told
    coverage = summed(part, level.groups)
    is_enough = coverage >= LEAST_COVERAGE
    part = part / np.where(is_enough, coverage, 1.0)[level.groups]
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(told, part**2 * (1 / mine.n + 1 / theirs.n), 0.0)
        share = np.where(told, part * mine.n / (mine.n + theirs.n), 0.0)
        ih = summed(noise, level.groups)
        spread = summed(noise * np.where(told, b, 0.0), level.groups) / ih
    whole = (summed(part * np.where(told, difference, 0.0), level.groups), summed(share, level.groups))
    return [np.where(is_enough, one, np.nan) for one in (*whole, coverage, ih, spread)]


def _contrasts(treated: Sums, control: Sums, sign: Reals) -> tuple[Reals, Reals]:
    """(differences, variances of one request's value) of nodes, block by block: earlier blocks are the reference."""
    nodes, blocks, metrics = treated.n.shape
    reference = Reference(*np.zeros((6, nodes, metrics)))
    difference, b = np.full((2, nodes, blocks, metrics), np.nan)
    for block in range(blocks):
        mine, theirs = (Sums(*(getattr(arm, one.name)[:, block] for one in fields(Sums))) for arm in (treated, control))
        told = contrast.block(mine, theirs, reference, 1.0, sign)
        difference[:, block], b[:, block] = told.difference, told.b
        reference = contrast.learn(reference, mine, theirs)
    return difference, b
