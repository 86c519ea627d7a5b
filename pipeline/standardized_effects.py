"""A lever's cells of a window and the weights of its strata in, rows of effects by group out: pooled, by stratum and standardized together.

Weights are fixed before the window, so a shift of the mix is no effect. The gain is of the window's sums; its anytime-valid t interval is
of what each block moves it by (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import standardize, strata
from pipeline.inference.contrast import Sums
from pipeline.inference.interval import LEAST_BLOCKS, avt_radius
from pipeline.inference.standardize import LEAST_COVERAGE, LEAST_TREATED, Mix
from pipeline.inference.strata import of_nodes, summed
from pipeline.lever_cells import METRICS, SIGN, Groups, arm, node_names, prepared

ALPHA = 0.05
METHOD = "standardized_blocks"
TREATED, CONTROL, OFF_IN_PLACE = "treated", "control", "disabled_in_place"
TIMES = pl.Datetime("us", "UTC")
SCHEMA: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "lever": pl.String, "segment": pl.String, "metric": pl.String, "arm_a": pl.String, "arm_b": pl.String, "since": TIMES, "until": TIMES,
    "blocks": pl.Int64, "n_a": pl.Int64, "n_b": pl.Int64, "value_a": pl.Float64, "value_b": pl.Float64, "gain": pl.Float64,
    "gain_low": pl.Float64, "gain_high": pl.Float64, "pooled_gain": pl.Float64, "least_gain": pl.Float64, "greatest_gain": pl.Float64,
    "strata": pl.Int64, "is_misleading": pl.Boolean, "coverage": pl.Float64, "method": pl.String, "basis": pl.String, "note": pl.String,
    "strata_keys": pl.List(pl.String), "strata_segments": pl.List(pl.String), "strata_gains": pl.List(pl.Float64),
}  # fmt: skip

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Window:
    """The blocks that count, from `since` to `until` (excluded); cells of before are what contrasts refer to.

    weighed: a word on the weights, for notes.
    """

    since: datetime
    until: datetime
    weighed: str | None = None


@dataclass(frozen=True, slots=True)
class _Sides:
    """Both arms' sums of the window at one level, by node and metric, the same by block, and where they belong."""

    treated: Sums
    control: Sums
    blocks: tuple[Sums, ...]
    weight: Reals
    nodes_of: tuple[Whole, ...]
    names: list[str]


def effects(
    cells: pl.DataFrame, weight: Reals, among: Groups, window: Window, lever: str, arm_a: str = TREATED, alpha: float = ALPHA
) -> pl.DataFrame:
    """One row per group and metric (SCHEMA) that has requests of `arm_a`: gains are ratios, positive when the arm helps.

    `gain` is standardized over the strata; `pooled_gain` is of all requests together, and `is_misleading` says that it does not show what
    the strata do (Simpson). coverage: the weight of the strata that have both arms.
    """
    starts = cells["block_started_at"].unique().sort().to_list()
    if not starts or not among.strata:
        return pl.DataFrame(schema=SCHEMA)
    mine, theirs = (arm(cells, name, among.strata, starts) for name in (arm_a, CONTROL))
    inside = np.array([window.since <= start < window.until for start in starts])
    found = strata.series(mine, theirs, weight, among.levels, prepared, SIGN)
    counted = np.isfinite(found.difference[:, inside]).sum(axis=1)
    common = {"lever": lever, "arm_a": arm_a, "arm_b": CONTROL, "since": window.since, "until": window.until, "method": METHOD}
    rows = [
        {**common, **row, "blocks": int(counted[group, metric])}
        for group, metric, row in _mixes(mine, theirs, weight, among, inside, alpha)
    ]
    blocks = int(inside.sum())
    return pl.DataFrame([_noted(row, blocks, window.weighed) for row in rows], schema=SCHEMA)


def _mixes(
    mine: Sums, theirs: Sums, weight: Reals, among: Groups, inside: npt.NDArray[np.bool_], alpha: float
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(group, metric, what the window's sums say) of each group that has requests of the arm."""
    sides = [_sides(mine, theirs, weight, among, number, inside) for number in range(len(among.levels))]
    finest = sides[0]
    level = strata.chosen(finest.treated.n[:, None], finest.control.n[:, None], weight, among.levels)[:, 0]
    asked = summed(finest.treated.n, among.of)
    for group in range(len(among.names)):
        for metric in range(len(METRICS)):
            if asked[group, metric] > 0:
                number = max(int(level[group, metric]), 0)
                yield (
                    group,
                    metric,
                    {"segment": among.names[group], **_mixed(sides[number], group, metric, alpha), "strata_keys": among.keys[number]},
                )


def _sides(mine: Sums, theirs: Sums, weight: Reals, among: Groups, number: int, inside: npt.NDArray[np.bool_]) -> _Sides:
    level = among.levels[number]
    whole = prepared(of_nodes(mine, level.nodes), of_nodes(theirs, level.nodes))
    blocks = tuple(Sums(*(getattr(side, name)[:, inside] for name in Sums.__slots__)) for side in whole)
    treated, control = (Sums(*(getattr(side, name).sum(axis=1) for name in Sums.__slots__)) for side in blocks)
    order = np.argsort(level.groups, kind="stable")
    nodes_of = tuple(np.split(order, np.flatnonzero(np.diff(level.groups[order])) + 1))
    return _Sides(treated, control, blocks, summed(weight, level.nodes), nodes_of, node_names(among, number))


def _mixed(sides: _Sides, group: int, metric: int, alpha: float) -> dict[str, Any]:
    """What one group's strata show of a metric; a stratum with fewer than 20 requests in an arm shows nothing."""
    nodes = sides.nodes_of[group]
    enough = (sides.treated.n[nodes, metric] >= LEAST_TREATED) & (sides.control.n[nodes, metric] >= LEAST_TREATED)
    arms = [np.stack([side.num[nodes, metric], side.den[nodes, metric]], axis=1) for side in (sides.treated, sides.control)]
    with np.errstate(divide="ignore", invalid="ignore"):
        told = standardize.mix(arms[0] * enough[:, None], arms[1] * enough[:, None], sides.weight[nodes], float(SIGN[metric]))
        values = [side[:, 0].sum() / side[:, 1].sum() for side in arms]
        pooled = float(SIGN[metric] * (1 - values[0] / values[1]))
    return {
        "metric": METRICS[metric], "n_a": int(sides.treated.n[nodes, metric].sum()), "n_b": int(sides.control.n[nodes, metric].sum()),
        "value_a": _known(values[0]), "value_b": _known(values[1]), "pooled_gain": _known(pooled), **_shown(told),
        **_ends(sides, nodes[enough], metric, told.standardized, alpha),
        "strata_segments": [sides.names[node] for node in nodes.tolist()],
    }  # fmt: skip


def _ends(sides: _Sides, nodes: Whole, metric: int, gain: float, alpha: float) -> dict[str, float | None]:
    """The interval of a standardized gain: its variance is that of what each block adds to it (the delta method, blocks as clusters)."""
    (a, b), sign = ((side.num[nodes, :, metric], side.den[nodes, :, metric]) for side in sides.blocks), SIGN[metric]
    told = (a[1] > 0).any(axis=0) & (b[1] > 0).any(axis=0)
    count = int(told.sum())
    unknown: dict[str, float | None] = {"gain_low": None, "gain_high": None}
    if count < LEAST_BLOCKS or not np.isfinite(gain):
        return unknown
    value_a, value_b = (side[0].sum(axis=1, keepdims=True) / side[1].sum(axis=1, keepdims=True) for side in (a, b))
    moved_a, moved_b = (
        (side[0] - value * side[1]) * count / side[1].sum(axis=1, keepdims=True) for side, value in ((a, value_a), (b, value_b))
    )
    share = sides.weight[nodes, None] / sides.weight[nodes].sum()
    moved = (sign * share * (moved_b * value_a / value_b**2 - moved_a / value_b)).sum(axis=0)[told]
    radius = float(avt_radius(np.array(count), np.array((moved**2).sum() / (count - 1)), alpha))
    return {"gain_low": gain - radius, "gain_high": gain + radius} if np.isfinite(radius) else unknown


def _shown(told: Mix) -> dict[str, Any]:
    known = told.strata[np.isfinite(told.strata)]
    return {
        "gain": _known(told.standardized), "least_gain": _known(known.min(initial=np.inf)),
        "greatest_gain": _known(known.max(initial=-np.inf)), "strata": len(known),
        "is_misleading": told.is_misleading, "coverage": told.coverage, "strata_gains": [_known(gain) for gain in told.strata],
    }  # fmt: skip


def _noted(row: dict[str, Any], blocks: int, weighed: str | None) -> dict[str, Any]:
    said = _unknown(row, blocks)
    if row["is_misleading"]:
        said.insert(0, _misleading(row))
    elif row["gain"] is not None and row["pooled_gain"] * row["gain"] < 0:
        told = f"pooled {100 * row['pooled_gain']:+.1f} % counts segments by their requests in this window, the same in both arms"
        said.insert(0, f"{told}; the gain counts them by those of the time before")
    return {**row, "basis": "control" if row["n_b"] else "none", "note": "; ".join([*said, *([weighed] if weighed else [])]) or None}


def _misleading(row: dict[str, Any]) -> str:
    keys = ", ".join(row["strata_keys"])
    spread = f"{100 * row['least_gain']:+.1f} % to {100 * row['greatest_gain']:+.1f} %"
    pooled = f"{100 * row['pooled_gain']:+.1f} %"
    return f"pooled misleads: it shows {pooled}, the strata {spread}: the arms have another mix of {keys} (Simpson)"


def _unknown(row: dict[str, Any], blocks: int) -> list[str]:
    """Why a number is missing."""
    if not row["n_b"]:
        return ["no control arm: nothing to compare with"]
    if row["value_b"] == 0:
        return ["control's value is 0: no ratio of the two"]
    if row["coverage"] < LEAST_COVERAGE:
        covered = f"{100 * row['coverage']:.0f} %"
        return [f"strata with {LEAST_TREATED:.0f} requests in both arms make up {covered} of what counts; 90 % are needed"]
    if row["gain_low"] is None:
        return [
            f"no interval yet: {row['blocks']} of {blocks} blocks have {LEAST_TREATED:.0f} requests in both arms of 90 % of what counts"
        ]
    return []


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
