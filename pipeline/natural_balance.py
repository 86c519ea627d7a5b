"""One segment's sums of both sides by stratum and block in, how alike the matched requests were, and their values, out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import natural
from pipeline.inference.contrast import LEAST_REQUESTS

COVARIATES = ("prompt", "batch", "queue")  # known when a request is admitted
_VALUES = ("n", "num", "den", *(f"{name}_{part}" for name in COVARIATES for part in ("n", "s", "ss")))
_CELL = ("stratum", "block_started_at")

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Balance:
    """Of requests that had a match: distances (standard deviations) of COVARIATES, numbers of requests, and the metric of each side.

    Each stratum and block weighs as in `inference.matching`: n_T n_C / (n_T + n_C) on both sides.
    """

    distances: Reals
    n_treated: int
    n_without: int
    value_treated: float | None
    value_without: float | None


def balanced(rows: pl.DataFrame) -> Balance:
    """The balance of rows of one segment and metric."""
    treated, without = (_side(rows, side) for side in ("treated", "without"))
    both = treated.join(without, on=_CELL, suffix="_without").filter(pl.min_horizontal("n", "n_without") >= LEAST_REQUESTS)
    share = both["n"] / (both["n"] + both["n_without"])
    ours = {name: float((both[name] * (1 - share)).sum()) for name in _VALUES}
    others = {name: float((both[f"{name}_without"] * share).sum()) for name in _VALUES}
    groups = [tuple(np.array([side[f"{name}_{part}"] for name in COVARIATES]) for part in ("n", "s", "ss")) for side in (ours, others)]
    return Balance(
        natural.distance((groups[0][0], groups[0][1], groups[0][2]), (groups[1][0], groups[1][1], groups[1][2])),
        int(both["n"].sum()),
        int(both["n_without"].sum()),
        ours["num"] / ours["den"] if ours["den"] else None,
        others["num"] / others["den"] if others["den"] else None,
    )


def _side(rows: pl.DataFrame, side: str) -> pl.DataFrame:
    return rows.filter(pl.col("side") == side).group_by(_CELL, maintain_order=True).agg(pl.col(_VALUES).sum())
