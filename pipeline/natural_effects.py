"""The sums of a natural experiment's two sides in (`queries.natural`), out one row per segment and metric: the gain and what it may say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import segments
from pipeline.inference import matching, natural
from pipeline.inference.contrast import Sums
from pipeline.inference.natural import Experiment, Grade
from pipeline.natural_balance import balanced

ALPHA = 0.05
METHOD = "matched_blocks"
ROLLOUTS, COLD_WORKERS = "rollouts", "cold_workers"
SIDES = ("treated", "without")
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
SAID = {natural.PAYS: "pays", natural.LOSES: "loses", natural.OPEN: None}
LEAST_DROP = 0.5  # a cold cache skips at most this part of what a warm one does

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Group:
    """One segment's sums of one metric: both sides as arrays (strata, blocks), and the error that its replicas' levels leave."""

    treated: Sums
    without: Sums
    error: float


def effects(sums: pl.DataFrame, experiment: Experiment, lever: str, alpha: float = ALPHA) -> pl.DataFrame:
    """One row per segment and metric that compare (columns of `effects`, then `grade` and `says`: `pays`, `loses` or null).

    gain is a ratio, positive when the lever helps; both metrics are better when lower. `note` says which way the comparison leans.
    """
    named = _named(sums, lever, by_batch=experiment.name != ROLLOUTS)
    rows = [
        _row(str(segment), str(metric), rows, experiment, lever, alpha)
        for (segment, metric), rows in named.group_by(["segment", "metric"], maintain_order=True)
    ]
    return pl.DataFrame([row for row in rows if row], infer_schema_length=None)


def _named(sums: pl.DataFrame, lever: str, *, by_batch: bool) -> pl.DataFrame:
    """The sums with `segment`, and `stratum`: what is compared within."""
    keys = list(segments.keys_for(lever))
    distinct = sums.select(keys).unique()
    texts = [segments.canonical(row) for row in distinct.iter_rows(named=True)]
    named = sums.join(distinct.with_columns(pl.Series("segment", texts, pl.String)), on=keys, nulls_equal=True)
    stratum = pl.col("batch_bucket").fill_null("") if by_batch else pl.lit("")
    return named.with_columns(stratum.alias("stratum")).sort("segment", "metric", "block_started_at", "stratum", "replica", "side")


def _row(segment: str, metric: str, rows: pl.DataFrame, experiment: Experiment, lever: str, alpha: float) -> dict[str, Any] | None:
    if rows["side"].n_unique() < len(SIDES):
        return None
    group = _rollout(rows) if experiment.name == ROLLOUTS else _Group(*_sides(rows), 0.0)
    streams = np.zeros(len(group.treated.n), np.int64)
    found = matching.matched(group.treated, group.without, streams, 1)
    blocks, coverage = int(np.isfinite(found.differences).sum()), float(found.coverage[0])
    if not blocks:
        return None
    mean, low, high = (float(part[0]) for part in matching.intervals(found.differences, found.shares, alpha, group.error))
    balance = balanced(rows)
    grade = _grade(natural.grade(balance.distances, blocks, coverage), rows, experiment)
    return {
        "lever": lever, "segment": segment, "metric": metric, "arm_a": "treated", "arm_b": None,
        "since": rows["block_started_at"].min(), "until": rows["block_started_at"].max(), "blocks": blocks,
        "n_a": balance.n_treated, "n_b": balance.n_without, "value_a": balance.value_treated, "value_b": balance.value_without,
        "gain": _known(mean), "gain_low": _known(low), "gain_high": _known(high), "evidence": None,
        "method": METHOD, "basis": experiment.name, "coverage": coverage, "note": _note(experiment, grade),
        "grade": grade, "says": SAID[natural.says(low, high, experiment.leans, grade)],
    }  # fmt: skip


def _sides(rows: pl.DataFrame) -> tuple[Sums, Sums]:
    strata, blocks = _places(rows, "stratum"), _places(rows, "block_started_at")
    shape = (int(strata.max()) + 1, int(blocks.max()) + 1)
    place = strata * shape[1] + blocks
    treated, without = (_summed(rows, place, side, shape) for side in SIDES)
    return treated, without


def _summed(rows: pl.DataFrame, place: npt.NDArray[np.int64], side: str, shape: tuple[int, int]) -> Sums:
    held = (rows["side"] == side).to_numpy()
    size = shape[0] * shape[1]
    return Sums(*(np.bincount(place[held], rows[name].to_numpy()[held], size).astype(np.float64).reshape(shape) for name in SUMS))


def _rollout(rows: pl.DataFrame) -> _Group:
    """Blocks before the first replica changed say what each is like; from then on replicas are measured by that."""
    began = rows.filter(pl.col("side") == "treated")["block_started_at"].min()
    before, during = rows.filter(pl.col("block_started_at") < began), rows.filter(pl.col("block_started_at") >= began)
    names = rows["replica"].unique().sort().to_list()
    levels = matching.levels(*(_by_replica(before, names, name) for name in ("num", "den")))
    place = np.array([names.index(name) for name in during["replica"]], np.int64)
    leveled = matching.leveled(Sums(*(during[name].to_numpy() for name in SUMS)), levels.level[place])
    columns = [pl.Series(name, getattr(leveled, name)) for name in SUMS]
    return _Group(*_sides(during.with_columns(columns)), _level_error(during, names, levels))


def _level_error(during: pl.DataFrame, names: Sequence[str], levels: matching.Levels) -> float:
    """What uncertain levels add to the mean gain at most: the mean over blocks that compare, as if one replica erred alike in all."""
    errors = []
    for _, block in during.group_by("block_started_at", maintain_order=True):
        new, old = (set(block.filter(pl.col("side") == side)["replica"]) for side in SIDES)
        if new and old:
            errors.append(matching.shared_error(levels, np.isin(names, list(new)), np.isin(names, list(old - new))))
    known = [error for error in errors if np.isfinite(error)]
    return float(np.mean(known)) if known else float("inf")


def _by_replica(before: pl.DataFrame, names: Sequence[str], name: str) -> Reals:
    blocks = _places(before, "block_started_at") if len(before) else np.zeros(0, np.int64)
    table = np.zeros((len(names), int(blocks.max(initial=-1)) + 1))
    np.add.at(table, (np.array([names.index(replica) for replica in before["replica"]], np.int64), blocks), before[name].to_numpy())
    return table


def _places(rows: pl.DataFrame, column: str) -> npt.NDArray[np.int64]:
    return (rows[column].rank("dense").to_numpy() - 1).astype(np.int64)


def _grade(grade: Grade, rows: pl.DataFrame, experiment: Experiment) -> Grade:
    """A replica that paused and kept its cache is no cold one."""
    if experiment.name != COLD_WORKERS:
        return grade
    skipped = rows.group_by("side").agg((pl.col("cached_tokens").sum() / pl.col("prompt_tokens").sum()).alias("ratio"))
    ratio = dict(skipped.iter_rows())
    is_cold = ratio["without"] <= LEAST_DROP * ratio["treated"]  # false where a ratio is NaN: unknown
    return grade if is_cold else "poor"


def _note(experiment: Experiment, grade: Grade) -> str:
    leans = {"up": "leans to a gain", "down": "leans to a loss", "unknown": "may lean either way"}[experiment.leans]
    return f"{grade}: against {experiment.without}; {leans}, since {experiment.because}"


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
