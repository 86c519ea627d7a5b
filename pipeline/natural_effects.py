"""The sums of a natural experiment's two sides in (`queries.natural`), out one row per segment and metric: the gain and what it may say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import segments
from pipeline.inference import matching, natural
from pipeline.inference.matching import Matched
from pipeline.inference.natural import Experiment, Grade
from pipeline.measure import BLOCK_S
from pipeline.natural_balance import KEYS, balanced
from pipeline.natural_grids import METRICS, RAW, Grids, grids
from pipeline.natural_levels import leveled

ALPHA = 0.05
METHOD = "matched_blocks"
ROLLOUTS, COLD_WORKERS = "rollouts", "cold_workers"
SAID = {natural.PAYS: "pays", natural.LOSES: "loses", natural.OPEN: None}
LEAST_DROP = 0.5  # a cold cache skips at most this part of what a warm one does
_LEANING = {"up": "leans to a gain", "down": "leans to a loss", "unknown": "may lean either way"}
_CELL = ("metric", "side", "block_started_at", "replica")

Reals = npt.NDArray[np.float64]


def effects(sums: pl.DataFrame, experiment: Experiment, lever: str, alpha: float = ALPHA) -> pl.DataFrame:
    """One row per segment and metric that compare (columns of `uncontrolled_effects`; `says` is `pays`, `loses` or null).

    gain is a ratio, positive when the lever helps; the metrics are better when lower, net ITL charges treated with the time to the first
    token that it adds. `note` says which way the comparison leans.
    """
    named = with_segment(sums)
    named = named.filter((pl.col("side").n_unique() == 2).over(KEYS))
    if named.is_empty():
        return pl.DataFrame()
    told = _told(named, experiment)
    compared, errors = leveled(named) if experiment.name == ROLLOUTS else (named, None)
    rows = [row for part in grids(compared) for row in _rows(part, _with_errors(part, errors), told, experiment, lever, alpha)]
    return pl.DataFrame(rows, infer_schema_length=None)


def with_segment(sums: pl.DataFrame) -> pl.DataFrame:
    """The sums by `segment` and `stratum` (the batch as of admission, where it is known): what is compared within."""
    distinct = sums.select(segments.CELL_SEGMENT_KEYS).unique()
    texts = [segments.canonical(row) for row in distinct.iter_rows(named=True)]
    segment = distinct.with_columns(pl.Series("segment", texts, pl.String))
    named = sums.join(segment, on=segments.CELL_SEGMENT_KEYS, nulls_equal=True, maintain_order="left")
    return named.select("segment", pl.col("batch_bucket").fill_null("").alias("stratum"), *_CELL, pl.selectors.float())


def _told(named: pl.DataFrame, experiment: Experiment) -> dict[tuple[str, str], dict[str, Any]]:
    """Of each segment and metric when it was seen, how alike its sides were, and whether a cache was cold."""
    last = pl.col("block_started_at").max() + timedelta(seconds=BLOCK_S)
    seen = named.group_by(KEYS).agg(pl.col("block_started_at").min().alias("since"), last.alias("until"), _is_sound(experiment))
    rows = seen.join(balanced(named), on=KEYS).iter_rows(named=True)
    return {(row["segment"], row["metric"]): row for row in rows}


def _is_sound(experiment: Experiment) -> pl.Expr:
    """A replica that paused and kept its cache is no cold one. False where a ratio is unknown."""
    if experiment.name != COLD_WORKERS:
        return pl.lit(True).alias("is_sound")
    warm, cold = (
        pl.col("cached_tokens").filter(pl.col("side") == side).sum() / pl.col("prompt_tokens").filter(pl.col("side") == side).sum()
        for side in ("treated", "without")
    )
    is_cold = cold.is_finite() & warm.is_finite() & (cold <= LEAST_DROP * warm)
    return is_cold.fill_null(value=False).alias("is_sound")


def _with_errors(part: Grids, errors: pl.DataFrame | None) -> Reals:
    """What the levels of replicas leave uncertain, METRICS by segment; net ITL has that of both that it is made of."""
    found = np.zeros((len(METRICS), len(part.segments)))
    if errors is not None:
        told = {(segment, metric): error for segment, metric, error in errors.select(*KEYS, "error").iter_rows()}
        busy, first, whole = (np.array([told.get((one, name), np.inf) for one in part.segments]) for name in RAW)
        found = np.stack([busy, first, whole, busy + np.where(np.isfinite(first), first, 0.0)])
    return found


def _rows(
    part: Grids, errors: Reals, told: dict[tuple[str, str], dict[str, Any]], experiment: Experiment, lever: str, alpha: float
) -> Iterator[dict[str, Any]]:
    for metric, arms, error in zip(METRICS, part.arms(), errors, strict=True):
        found = matching.matched(*arms, part.streams, len(part.segments))
        gains = matching.intervals(found.differences, found.shares, alpha, error)
        values = part.values(*arms)
        for place in np.flatnonzero(np.isfinite(found.differences).any(axis=1)).tolist():
            segment = part.segments[place]
            about = told.get((segment, metric if metric in RAW else RAW[0]))
            if about:
                numbers = [_known(of[place]) for of in (*gains, *values)]
                yield {"lever": lever, "segment": segment, "metric": metric} | _row(found, place, numbers, about, experiment)


def _row(found: Matched, place: int, numbers: list[float | None], about: dict[str, Any], experiment: Experiment) -> dict[str, Any]:
    gain, low, high, value, without = numbers
    blocks, share = int(np.isfinite(found.differences[place]).sum()), float(found.coverage[place])
    grade = natural.grade(np.array(about["distances"]), blocks, share)
    grade = grade if about["is_sound"] or grade == "too little" else "poor"
    has_ends = low is not None and high is not None
    says = SAID[natural.says(low, high, experiment.leans, grade)] if low is not None and high is not None else None
    return {
        "arm_b": None, "since": about["since"], "until": about["until"], "blocks": blocks, "n_a": about["n_treated"],
        "n_b": about["n_without"], "value_a": value, "value_b": without, "gain": gain, "gain_low": low if has_ends else None,
        "gain_high": high if has_ends else None, "evidence": None, "method": METHOD, "basis": experiment.name, "matched": share,
        "note": _note(experiment, grade), "grade": grade, "says": says,
    }  # fmt: skip


def _note(experiment: Experiment, grade: Grade) -> str:
    return f"{grade}: against {experiment.without}; {_LEANING[experiment.leans]}, since {experiment.because}"


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
