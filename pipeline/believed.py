"""The newest effects of a lever in, the same with what to believe of them at this moment out: the current list of e-BH over all of them.

The list is read at one moment and holds for it: a row may leave it again. What is latched asks for more (Bonferroni, docs/statistics.md).
"""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import NULLS
from pipeline.inference.multiplicity import ebh
from pipeline.measure import BLOCK_S

RATE = 0.10
BLOCKS_A_CYCLE = 86_400 // BLOCK_S
CYCLE = timedelta(days=1)
REFUSED = ("refused", "unseen")
PRIMARY = "net_itl_s"
WEIGHTS = {"primary": 0.5, "tail": 0.3, "guard": 0.2}
_TAIL = re.compile(r"_p\d+$")

Reals = npt.NDArray[np.float64]


def with_belief(effects: pl.DataFrame, rate: float = RATE) -> pl.DataFrame:
    """The rows with `believed`: `harm`, `gain` or null; of all that are believed at one moment at most `rate` are false, on average.

    Every segment and metric with evidence is a stream, twice: of harm and of gain. Half of the weight is on net ITL, three tenths on tails,
    two tenths on the rest. Rows older than a day before the newest are not believed any more, nor such that may not decide: of replicas
    that never move, of a split that is off, of contrasts that are not what their scale says. A margin widens the null.
    """
    if effects.is_empty():
        return effects.with_columns(pl.lit(None, pl.String).alias("believed"))
    is_new = effects.select(pl.col("until") > pl.col("until").max() - CYCLE).to_series().to_numpy()
    may = is_new & _may_decide(effects)
    margin = effects["margin"].fill_null(0.0).to_numpy()
    places = {"below": np.searchsorted(NULLS, -margin, side="right") - 1, "above": np.searchsorted(NULLS, margin)}
    logs = np.stack([np.where(may, _log_e(effects[f"evidence_{side}"], place), np.nan) for side, place in places.items()])
    streams = np.isfinite(logs)
    weight = np.stack([_weights(effects["metric"].to_list(), streams[side]) for side in range(2)])
    chosen = np.zeros(logs.shape, np.bool_)
    chosen[streams] = ebh(logs[streams], rate, weight[streams])
    harm, gain = (pl.Series(side) for side in chosen)
    said = pl.when(harm).then(pl.lit("harm")).when(gain).then(pl.lit("gain")).otherwise(None)
    return effects.with_columns(said.alias("believed"))


def _may_decide(effects: pl.DataFrame) -> npt.NDArray[np.bool_]:
    off = pl.col("sample_ratio_off").fill_null(False) | pl.col("uncalibrated").fill_null(False)
    return effects.select(~(off | pl.col("permission").is_in(REFUSED).fill_null(False))).to_series().to_numpy()


def _log_e(logs: pl.Series, places: npt.NDArray[np.intp]) -> Reals:
    """Logarithms of e-values at the nulls of `places`; NaN where there are none: rows of older versions had fewer nulls."""
    if logs.dtype == pl.Null:
        return np.full(len(logs), np.nan)
    is_null = (places >= 0) & (places < len(NULLS))
    asked = pl.DataFrame({"logs": logs, "place": np.where(is_null, places, 0), "is_null": is_null})
    known = pl.col("is_null") & (pl.col("logs").list.len() == len(NULLS))
    held = asked.select(pl.when(known).then(pl.col("logs").list.get(pl.col("place"), null_on_oob=True)))
    return np.asarray(held["logs"].cast(pl.Float64).fill_null(float("nan")).to_numpy() - np.log(BLOCKS_A_CYCLE))


def _weights(metrics: list[str], told: npt.NDArray[np.bool_]) -> Reals:
    """What part of the weight each row has: its kind's, shared by the rows of that kind that have evidence."""
    kinds = np.array(["primary" if name == PRIMARY else "tail" if _TAIL.search(name) else "guard" for name in metrics])
    counts = {kind: max(int(((kinds == kind) & told).sum()), 1) for kind in WEIGHTS}
    return np.array([WEIGHTS[kind] / counts[kind] for kind in kinds.tolist()])
