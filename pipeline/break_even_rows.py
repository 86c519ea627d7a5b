"""What is kept of an axis in, rows of `break_even` out: the gain in each bucket, where a lever pays and where it loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.break_even_axes import Axis, Buckets
from pipeline.break_even_state import ALPHA, Kept
from pipeline.inference import break_even, break_even_point
from pipeline.inference.break_even import LOSES, OPEN, PAYS, Band
from pipeline.inference.interval import Running
from pipeline.tuning import Tuning

Reals = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
WORDS = {PAYS: "pays", LOSES: "loses", OPEN: "open"}
STALE = "stale"
SCHEMA = pl.Schema(
    {
        "lever": pl.String(),
        "segment": pl.String(),
        "key": pl.String(),
        "metric": pl.String(),
        "basis": pl.String(),
        "since": pl.Datetime("us", "UTC"),
        "until": pl.Datetime("us", "UTC"),
        "buckets": pl.List(pl.String()),
        "blocks": pl.List(pl.Int64()),
        "gains": pl.List(pl.Float64()),
        "gains_low": pl.List(pl.Float64()),
        "gains_high": pl.List(pl.Float64()),
        "signs": pl.List(pl.String()),
        "pays_edge": pl.Int64(),
        "loses_edge": pl.Int64(),
        "point": pl.Float64(),
        "line_point": pl.Float64(),
        "state": pl.String(),
        "note": pl.String(),
    }
)
_TOLD = {name: SCHEMA[name] for name in ("pays_edge", "loses_edge", "state", "note")} | {"signs": pl.String()}


def rows(kept: Kept, axis: Axis, buckets: Buckets, stale: Truths | None = None, alpha: float = ALPHA) -> pl.DataFrame:
    """One row per lever and segment (SCHEMA); gains are ratios, positive when the lever helps.

    `pays_edge` is the value of the key up to which (or from which, where the gain rises) the lever pays, `loses_edge` that from which (or
    up to which) it loses; null where no bucket does, or where the last one does and has no end. `point` is where the gain is zero,
    `line_point` by a straight line where that fits; both only once a bucket pays and one loses. `state`: `resolved` (no bucket is open),
    `partly`, `not resolved yet`, `refuted`, or `stale`: `stale` (pairs, buckets) names buckets that no longer do what `signs` say.
    """
    band = kept.band(falls=axis.falls, alpha=alpha)
    if not kept.pairs:
        return pl.DataFrame(schema=SCHEMA)
    against = np.zeros_like(band.signs, np.bool_) if stale is None else stale
    is_stale: Truths = np.any(against, axis=1)
    band = replace(band, signs=np.where(is_stale[:, None], kept.drift.signs.reshape(band.signs.shape), band.signs))
    told = pl.DataFrame([_told(band, place, axis, buckets, against) for place in range(len(kept.pairs))], schema=_TOLD)
    numbers = {"blocks": kept.gains.n, "gains": kept.gains.mean(), "gains_low": band.low, "gains_high": band.high}
    points = dict(zip(("point", "line_point"), _points(kept.gains, band, axis, buckets, ~is_stale), strict=True))
    levers, segments = zip(*kept.pairs, strict=True)
    same = {"key": axis.key, "metric": axis.metric, "basis": "control" if axis.is_judged else "descriptive"}
    found = pl.DataFrame(
        {"lever": levers, "segment": segments, "since": kept.since, "until": kept.until, **points}
        | {name: pl.Series(values).arr.to_list() for name, values in numbers.items()}
    )
    made = found.hstack(told.with_columns(pl.col("signs").str.split(" "))).with_columns(
        *(_finite(name) for name in points),
        *(_finite_lists(name) for name in numbers),
        *(pl.lit(word).alias(name) for name, word in same.items()),
        pl.lit(pl.Series([buckets.names])).first().alias("buckets"),
    )
    return made.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def ended(kept: Kept, axis: Axis, buckets: Buckets, ends: Truths, tuning: Tuning, ended_at: datetime) -> pl.DataFrame:
    """The last rows of the pairs whose epoch a deploy `ends` (pairs,), in the block that ends at `ended_at`: what was said before."""
    found = rows(kept, axis, buckets).filter(pl.Series(ends))
    deploys = [tuning.newest(segment, ended_at) for segment in found["segment"]]
    words = [one.words().removeprefix("since ") if one else "a deploy" for one in deploys]
    gone = [pl.lit(None, SCHEMA[name]).alias(name) for name in ("pays_edge", "loses_edge", "point", "line_point")]
    note = pl.format("ended by {}; before: {}", pl.Series(words, dtype=pl.String), "note").alias("note")
    return found.with_columns(*gone, note, pl.lit(STALE).alias("state"))


def _told(band: Band, place: int, axis: Axis, buckets: Buckets, stale: Truths) -> dict[str, Any]:
    signs, is_refuted, is_stale = band.signs[place].tolist(), bool(band.is_refuted[place]), bool(stale[place].any())
    pays, loses = (None, None) if is_refuted or is_stale else _edges(signs, axis.falls, buckets)
    note = break_even.words(signs, buckets.names, falls=axis.falls, is_refuted=is_refuted)
    return {
        "signs": " ".join(WORDS[sign] for sign in signs),
        "pays_edge": pays,
        "loses_edge": loses,
        "state": STALE if is_stale else _state(signs, is_refuted),
        "note": f"{_against(signs, buckets.names, stale[place])}; before: {note}" if is_stale else note,
    }


def _against(signs: list[int], names: Sequence[str], stale: Truths) -> str:
    """`no longer pays in 4-7, 8-15`."""
    told = [(verb, [names[place] for place, sign in enumerate(signs) if sign == of and stale[place]]) for of, verb in WORDS.items()]
    return "; ".join(f"no longer {verb} in {', '.join(some)}" for verb, some in told if some)


def _edges(signs: list[int], falls: bool, buckets: Buckets) -> tuple[int | None, int | None]:
    """(the key up to which the lever pays, from which it loses); (from which it pays, up to which it loses) where the gain rises."""
    first, last = (PAYS, LOSES) if falls else (LOSES, PAYS)
    low = max((place for place, sign in enumerate(signs) if sign == first), default=None)
    high = min((place for place, sign in enumerate(signs) if sign == last), default=None)
    until, begins = None if low is None else buckets.most[low], None if high is None else buckets.least[high]
    return (until, begins) if falls else (begins, until)


def _state(signs: list[int], is_refuted: bool) -> str:
    if is_refuted:
        return "refuted"
    return "resolved" if OPEN not in signs else "partly" if any(signs) else "not resolved yet"


def _points(gains: Running, band: Band, axis: Axis, buckets: Buckets, holds: Truths) -> tuple[Reals, Reals]:
    """Where each pair's gain is zero, by both ways; NaN where no bucket pays, or none loses."""
    has_both = holds & ~band.is_refuted & (band.signs == PAYS).any(axis=1) & (band.signs == LOSES).any(axis=1)
    held = Running(gains.n[has_both], gains.s[has_both], gains.ss[has_both])
    keys = break_even_point.centers(buckets.least[1:])
    points, line_points = np.full((2, len(has_both)), np.nan)
    points[has_both] = break_even_point.isotonic(keys, held, falls=axis.falls)
    line_points[has_both] = break_even_point.line(keys, held, falls=axis.falls).points
    return points, line_points


def _finite(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_finite()).then(name).alias(name)


def _finite_lists(name: str) -> pl.Expr:
    return pl.col(name).list.eval(pl.when(pl.element().is_finite()).then(pl.element()))
