"""A store and a question about a lever in, the smallest control arm that would answer it out, by segment and for all traffic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from leverwatch import lever_effects
from leverwatch.lever_questions import CHANGE, METRIC, METRICS, WITHIN_HOURS
from pipeline import holdout_advice, lever_cells
from pipeline.holdout_advice import Day
from pipeline.inference.holdout import Question
from pipeline.inference.rotation import LEAST_MIXED
from pipeline.lever_cells import Groups
from pipeline.measure import BLOCK_S
from pipeline.segments import keys_for
from queries import files
from queries.report import ReportError
from queries.store import Store

BLOCK = timedelta(seconds=BLOCK_S)
DAY = timedelta(days=1)

Reals = npt.NDArray[np.float64]


def holdout(
    store: Store, lever: str, change: float = CHANGE, within_hours: float = WITHIN_HOURS, by: Sequence[str] = (), metric: str = METRIC
) -> pl.DataFrame:
    """One row per judging segment, or per group of the keys `by`, and one for all of the lever's traffic (`holdout_advice.SCHEMA`).

    `change` is the gain or loss (ratio) that is to be found in nine cases of ten `within_hours`; the noise is that of the last day.

    Raises:
        ReportError: there is no such lever, key or metric, or a number is out of bounds.
    """
    lever_effects.known(lever, by, (*keys_for(lever), "tenant"))
    _refuse_unsound(change, within_hours, metric)
    asked = lever_effects.window(store, lever, None, None)
    if asked is None:
        return pl.DataFrame(schema=holdout_advice.SCHEMA)
    since, until = asked.until - DAY, asked.until
    period = {"lever": lever, "since": since, "until": until}
    cells = store.frame(files.question("effect_cells"), period | {"metrics": [metric], "segments": None})
    if cells.is_empty():
        return pl.DataFrame(schema=holdout_advice.SCHEMA)
    served = store.frame(files.question("holdout_replicas"), period)
    requests = dict(store.frame(files.question("holdout_requests"), period).iter_rows())
    question = Question(change, within_hours)
    first = min(cells["block_started_at"].to_list())
    starts = [first + BLOCK * number for number in range((until - first) // BLOCK)]
    frames = []
    for keys in (tuple(by) or None, ()):
        among = lever_cells.groups(cells["segment"].unique().to_list(), keys)
        treated, control = (lever_cells.arm(cells, name, among.strata, starts, (metric,)) for name in ("treated", "control"))
        day = Day(treated, control, (until - first) / timedelta(hours=1), _replicas(served, among))
        frames.append(holdout_advice.advice(day, lever_cells.weights(requests, among), among, lever, metric, question))
    return pl.concat(frames)


def _replicas(served: pl.DataFrame, among: Groups) -> Reals:
    """How many replicas serve each group; infinite where control's are the others' too, or nobody named any."""
    place = pl.DataFrame({"segment": among.strata, "group": among.of}, schema_overrides={"segment": pl.String})
    flags = [pl.col(name).any() for name in ("in_control", "in_others")]
    found = served.join(place, on="segment").group_by("group", "replica").agg(flags)
    mixed = (pl.col("in_control") & pl.col("in_others")).sum() >= LEAST_MIXED * pl.col("in_control").sum()
    counts = found.group_by("group").agg(pl.len().cast(pl.Float64).alias("n"), (mixed & pl.col("in_control").any()).alias("is_mixed"))
    out = np.full(len(among.names), np.inf)
    for group, count, is_mixed in counts.iter_rows():
        out[group] = np.inf if is_mixed else count
    return out


def _refuse_unsound(change: float, within_hours: float, metric: str) -> None:
    if not 0.001 <= change <= 1:
        msg = f"change {change:g}: a ratio from 0.001 to 1 is taken, such as 0.05 for 5 %"
        raise ReportError(msg)
    if not 0 < within_hours <= 24 * 90:
        msg = f"within {within_hours:g} h: more than 0 and at most 90 days are taken"
        raise ReportError(msg)
    if metric not in METRICS:
        msg = f"metric {metric!r}; taken: {', '.join(METRICS)}"
        raise ReportError(msg)
