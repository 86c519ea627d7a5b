"""A lever's cells by replica (`switchback_cells`) and its schedule in, one row of `uncontrolled_effects` per segment and metric out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import matching, natural, switchback
from pipeline.inference.charge import added_s
from pipeline.inference.contrast import LEAST_REQUESTS, Sums
from pipeline.inference.natural import Grade, Leaning
from pipeline.inference.switchback import Pairs
from pipeline.measure import BLOCK_S
from pipeline.metrics import by_name
from pipeline.schedule import arrays, objections
from pipeline.schedule_rows import TREATED, Period

ALPHA = 0.05
METHOD = "switchback_pairs"
METRICS = ("tpot_s", "ttft_s", "error_rate", "e2e_s")
NET, BUSY, FIRST = "net_itl_s", METRICS.index("tpot_s"), METRICS.index("ttft_s")
EXPECTED_SQUARES = 48 * 0.05**2  # of differences: a day of 15-minute periods that each err by 5 %
SUMS = ("n", "num", "den", "num_sq", "den_sq", "num_den")
CONTROL, IN_PLACE = "control", "disabled_in_place"
SAID = {natural.PAYS: "pays", natural.LOSES: "loses", natural.OPEN: None}

Reals = npt.NDArray[np.float64]


def effects(cells: pl.DataFrame, schedule: Sequence[Period], lever: str, alpha: float = ALPHA) -> pl.DataFrame:
    """One row per segment and metric (columns of `uncontrolled_effects`): `evidence` is an e-value that the lever does harm.

    `evidence` rests on the drawn order alone; it is null where the schedule's order was not drawn. A replica's pair in which a cell is of
    another arm than scheduled is left out, and told in `note`. `grade` is `good` where the lever was really away in the other periods,
    `fair` where it was switched off in place, which may cost by itself, `poor` where the order was not drawn, `too little` without an
    interval.
    """
    held = [one for one in schedule if one.lever == lever]
    measured = cells.filter(pl.col("metric").is_in(METRICS), pl.col("replica").is_in([one.replica for one in held]))
    if measured.is_empty():
        return pl.DataFrame()
    replicas = {name: place for place, name in enumerate(sorted({one.replica for one in held}))}
    periods = arrays(held, lever, replicas)
    starts_s = measured["block_started_at"].dt.epoch("s").to_numpy().astype(np.float64)
    places = switchback.placed(periods, measured["replica"].replace_strict(replicas, return_dtype=pl.Int64).to_numpy(), starts_s, BLOCK_S)
    disobeys = (places >= 0) & ((measured["arm"] == TREATED).to_numpy() != periods.is_treated[places])
    segments = measured["segment"].unique().sort().to_list()
    streams = len(METRICS) * _numbers(measured["segment"], segments) + _numbers(measured["metric"], METRICS)
    rows = Sums(*(measured[name].cast(pl.Float64).to_numpy() for name in SUMS))
    pairs = switchback.paired(periods, switchback.whole(periods, places, disobeys), streams, rows, len(segments) * len(METRICS))
    arm_b, grade = _graded(held)
    told = {"note": _note(held, disobeys, places), "arm_b": arm_b}
    made = [row for name in (*METRICS, NET) for row in _rows(name, segments, pairs, alpha, drawn=grade != "poor")]
    found = [{"lever": lever, **row, **told, **_told(row, grade)} for row in made]
    return pl.DataFrame(found, infer_schema_length=None)


def _graded(held: Sequence[Period]) -> tuple[str, Grade]:
    """(the arm of the periods without the lever, how good the comparison is)."""
    others = {one.arm for one in held} - {TREATED}
    arm_b = CONTROL if others == {CONTROL} else IN_PLACE
    return arm_b, "poor" if objections(held) else "good" if arm_b == CONTROL else "fair"


def _told(row: Mapping[str, Any], grade: Grade) -> dict[str, str | None]:
    """The row's grade, and what follows: a lever that beats itself switched off in place need not beat its absence."""
    if row["gain_low"] is None or row["gain_high"] is None:
        return {"grade": "too little", "says": None}
    leans: Leaning = "unknown" if grade == "good" else "up"
    return {"grade": grade, "says": SAID[natural.says(row["gain_low"], row["gain_high"], leans, grade)]}


def _rows(name: str, segments: Sequence[str], pairs: Pairs, alpha: float, *, drawn: bool) -> list[dict[str, Any]]:
    of = _net(pairs) if name == NET else _of_metric(pairs, METRICS.index(name))
    sign = -1.0 if by_name()[name].better == "higher" else 1.0
    differences = switchback.differences(of, sign=sign).difference
    with np.errstate(invalid="ignore"):
        share = of.treated.n.sum(axis=1) / (of.treated.n.sum(axis=1) + of.control.n.sum(axis=1))
    gain, low, high = matching.intervals(differences, share, alpha, sign=sign)
    evidence = np.exp(switchback.log_e_of_order(differences, EXPECTED_SQUARES)[:, -1])
    used = np.isfinite(differences)
    rows = []
    for place in np.flatnonzero(used.any(axis=1)).tolist():
        within = used[place]
        sums = [getattr(arm, part)[place][within].sum() for arm in (of.treated, of.control) for part in ("n", "num", "den")]
        ends = of.ended_s[within]
        rows.append({
            "segment": segments[place], "metric": name, "arm_a": TREATED, "since": _moment(ends[0]), "until": _moment(ends[-1]),
            "blocks": int(within.sum()), "n_a": int(sums[0]), "n_b": int(sums[3]), "value_a": float(sums[1] / sums[2]),
            "value_b": float(sums[4] / sums[5]), "gain": _known(gain[place]), "gain_low": _known(low[place]),
            "gain_high": _known(high[place]),
            "evidence": float(evidence[place]) if drawn else None, "method": METHOD, "basis": switchback.BASIS,
            "matched": float(within.sum() / len(of.numbers)),
        })  # fmt: skip
    return rows


def _of_metric(pairs: Pairs, metric: int) -> Pairs:
    treated, control = (Sums(*(getattr(arm, part)[metric :: len(METRICS)] for part in SUMS)) for arm in (pairs.treated, pairs.control))
    return Pairs(treated, control, pairs.numbers, pairs.ended_s)


def _net(pairs: Pairs) -> Pairs:
    """Time per output token, the treated arm charged with the time to the first token that it adds."""
    busy, first = _of_metric(pairs, BUSY), _of_metric(pairs, FIRST)
    mine, theirs = first.treated, first.control
    charged = busy.treated.charged(added_s(mine.n, mine.num, theirs.n, theirs.num, LEAST_REQUESTS))
    return Pairs(charged, busy.control, pairs.numbers, pairs.ended_s)


def _note(held: Sequence[Period], disobeys: npt.NDArray[np.bool_], places: npt.NDArray[np.int64]) -> str | None:
    wrong, measured = int(disobeys.sum()), int((places >= 0).sum())
    told = [*objections(held), *([f"{wrong} of {measured} cells are of another arm than the schedule says"] if wrong else [])]
    return "; ".join(told) or None


def _numbers(names: pl.Series, known: Sequence[str]) -> npt.NDArray[np.int64]:
    return names.replace_strict({name: place for place, name in enumerate(known)}, return_dtype=pl.Int64).to_numpy().astype(np.int64)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
