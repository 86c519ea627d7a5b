"""The sums before and after a lever's setting changed in (`natural_before_after.sql`), one row per segment and metric out: to be shown."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl

from pipeline.inference import before_after
from pipeline.measure import BLOCK_S
from pipeline.natural_effects import with_segment
from pipeline.natural_grids import METRICS, grids

EXPERIMENT, METHOD = "before_after", "change_of_setting"
HOUR = timedelta(hours=1)  # what the sums are of
BLOCKS_AN_HOUR = 3600 // BLOCK_S


def effects(sums: pl.DataFrame, lever: str) -> pl.DataFrame:
    """One row per segment and metric with requests of both times (columns of `uncontrolled_effects`): a gain without an interval.

    `since` and `until` are of the time after the change, in whole hours.
    """
    named = with_segment(sums)
    began = pl.col("block_started_at")
    after = named.filter(pl.col("side") == "treated").group_by("segment")
    times = after.agg(began.min().alias("since"), (began.max() + HOUR).alias("until"), (began.n_unique() * BLOCKS_AN_HOUR).alias("blocks"))
    seen = {segment: {"since": since, "until": until, "blocks": n} for segment, since, until, n in times.iter_rows()}
    rows: list[dict[str, Any]] = []
    for part in grids(named.with_columns(pl.col("block_started_at").min())):  # all of a time together
        for metric, (treated, without) in zip(METRICS, part.arms(), strict=True):
            changed = before_after.change(without, treated)
            for place in np.flatnonzero(np.isfinite(changed.gain[:, 0])).tolist():
                segment = part.segments[part.streams[place]]
                rows.append({
                    "lever": lever, "segment": segment, "metric": metric, **seen[segment], "n_a": int(treated.n[place, 0]),
                    "n_b": int(without.n[place, 0]), "value_a": float(changed.after[place, 0]), "value_b": float(changed.before[place, 0]),
                    "gain": float(changed.gain[place, 0]), "method": METHOD, "basis": before_after.BASIS, "note": before_after.NOTE,
                })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)
