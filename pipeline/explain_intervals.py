"""Ranked keys, their counts and both sets' sums by block in, the same rows with an interval for each difference of a number out.

A block is the unit, since requests of one block have load and mix in common. The two sets' sums of a block are taken together, so what a
block does to both cancels. An interval holds at any look (anytime-valid t, docs/statistics.md); it describes, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import interval, quantile

ALPHA = 0.05
LEAST_BLOCKS = 10
SHARES = {"median": 0.5, "p95": 0.95}
SCHEMA = {
    name: pl.Float64
    for of in ("mean", *SHARES)
    for name in (*((f"{of}_a", f"{of}_b") if of == "mean" else ()), f"{of}_gap_low", f"{of}_gap_high")
}  # fmt: skip

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Side:
    """One set's sums of a key by block: numerator, denominator, values, and how many of them are at most each percentile."""

    num: Reals
    den: Reals
    n: Reals
    below: tuple[Reals, ...]


def with_intervals(
    ranked: pl.DataFrame, counted: pl.DataFrame, blocks: pl.DataFrame, keys: Sequence[str], alpha: float = ALPHA
) -> pl.DataFrame:
    """The ranked rows with SCHEMA, `blocks` and `times`: a gap is A's number less B's, in the key's own unit; null = not known.

    `counted` and `blocks` are rows of `queries.explain` and `queries.explain_blocks`; `keys` are those of the latter, in order. The mean of
    `tpot_s` weighs tokens alike. `times` says where the sets do not overlap in time: then time differs too.
    """
    count = len(blocks)
    told = {key: _of_key(key, place, counted, blocks, alpha) for place, key in enumerate(keys)} if count >= LEAST_BLOCKS else {}
    nothing = dict.fromkeys(SCHEMA)
    rows = [nothing | told.get(key, {}) for key in ranked["key"]]
    added = pl.DataFrame(rows, schema=SCHEMA)
    return ranked.hstack(added).with_columns(pl.lit(count, pl.Int64).alias("blocks"), pl.lit(times(blocks), pl.String).alias("times"))


def without(ranked: pl.DataFrame, why: str) -> pl.DataFrame:
    """The ranked rows with the columns of `with_intervals`, none of them known; the `note` of each number says why."""
    nothing = pl.DataFrame(schema=SCHEMA | {"blocks": pl.Int64, "times": pl.String}).clear(len(ranked))
    is_number = pl.col("median_a").is_not_null() | pl.col("median_b").is_not_null()
    said = pl.concat_str("note", pl.lit(why), separator="; ", ignore_nulls=True)
    return ranked.hstack(nothing).with_columns(pl.when(is_number).then(said).otherwise("note").alias("note"))


def times(blocks: pl.DataFrame) -> str | None:
    """The word on two sets of which one ends before the other begins; None where they overlap."""
    ends = {
        (end, which): getattr(blocks[f"{end}_{which}"].drop_nulls(), how)()
        for end, how in (("first", "min"), ("last", "max"))
        for which in "ab"
    }
    if any(end is None for end in ends.values()):
        return None
    for early, late in ("ab", "ba"):
        if ends["last", early] < ends["first", late]:
            said = f"all of {early.upper()} is before all of {late.upper()}"
            return f"{said}: whatever else changed with time is in the difference, so it is shown and not judged (before/after)"
    return None


def _of_key(key: str, place: int, counted: pl.DataFrame, blocks: pl.DataFrame, alpha: float) -> dict[str, float | None]:
    a, b = (_side(blocks, f"k{place}", which) for which in "ab")
    if not (a.den.sum() and b.den.sum()):
        return {}
    bins = counted.filter((pl.col("key") == key) & (pl.col("kind") == "bin")).sort("upper")
    told: dict[str, float | None] = _mean(a, b, alpha)
    for number, (name, share) in enumerate(SHARES.items()):
        (low_a, high_a), (low_b, high_b) = (
            _percentile(bins["upper"].to_numpy(), bins[f"count_{which}"].to_numpy(), side, number, share, alpha / 2)
            for which, side in (("a", a), ("b", b))
        )
        told |= {f"{name}_gap_low": _known(low_a - high_b), f"{name}_gap_high": _known(high_a - low_b)}
    return told


def _side(blocks: pl.DataFrame, name: str, which: str) -> _Side:
    read: dict[str, Any] = {part: blocks[f"{name}_{part}_{which}"].to_numpy() for part in ("num", "den", "n", "below0", "below1")}
    return _Side(read["num"], read["den"], read["n"], (read["below0"], read["below1"]))


def _mean(a: _Side, b: _Side, alpha: float) -> dict[str, float | None]:
    """Both sets' ratios of sums, and the interval of their difference from what each block adds to it (linearized)."""
    means = [float(side.num.sum() / side.den.sum()) for side in (a, b)]
    parts = [(side.num - mean * side.den) / side.den.sum() for side, mean in zip((a, b), means, strict=True)]
    radius = _radius(len(a.num) * (parts[0] - parts[1]), alpha)
    gap = means[0] - means[1]
    return {"mean_a": means[0], "mean_b": means[1], "mean_gap_low": _known(gap - radius), "mean_gap_high": _known(gap + radius)}


def _percentile(upper: Reals, counts: Reals, side: _Side, number: int, share: float, alpha: float) -> tuple[float, float]:
    """The ends of one set's percentile (Woodruff): where the share of values below passes what blocks let it stray at the percentile."""
    strays = len(side.n) * _radius(side.below[number] - share * side.n, alpha)
    total = np.cumsum(counts) - share * counts.sum()
    below, above = np.flatnonzero(total < -strays), np.flatnonzero(total > strays)
    low = float(upper[below.max()]) if len(below) else -np.inf
    return low, float(upper[above.min()]) if len(above) else np.inf


def _radius(values: Reals, alpha: float) -> float:
    """Half the width of the interval of the mean of block values; neighbors may be alike."""
    n = np.array([float(len(values))])
    return float(interval.avt_radius(n, quantile.long_run_variance(values[:, None]), alpha)[0])


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
