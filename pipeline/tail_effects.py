"""Histograms of a window of blocks in, rows of `effects` of the percentiles out: both arms' values, the gain and its interval.

The interval is Woodruff's with whole blocks as the units, from pairs of blocks, as `inference/quantile.py` has it for one stream: where
does treated's share of values below reach that of control's below its percentile? The variance is taken at the percentile alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.cell_bins import WIDTH
from pipeline.evidence_families import ARMS
from pipeline.inference import histogram, quantile
from pipeline.inference.block_length import LEAST_EXCEEDANCES
from pipeline.metrics import TAILS
from pipeline.tail_bins import FIRST_BIN, Bins
from pipeline.tail_counts import Offered
from pipeline.tail_families import BASES
from queries.cells_histogram import FIRST

METHOD = "quantile_window"
ALPHA = 0.05
SPAN_BLOCKS = 6  # as far as blocks of a window are alike
_REALS = ("value_a", "value_b", "gain", "gain_low", "gain_high")

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Window:
    """The blocks from `since` on that count: those of both arms, of treated where there is no control; and all rows of the time.

    `n` (pairs, ARMS, blocks) values of each, `upto` (pairs, ARMS, bins) running totals of all together, `coverage` (pairs,) of the arm that
    has less.
    """

    since: int
    rows: slice
    n: Reals
    upto: Reals
    has_control: Truths
    coverage: Reals


def columns(bins: Bins, offered: Offered, base: str, since: int, until: int) -> Iterator[dict[str, Any]]:
    """For each percentile of a metric the columns of its rows, per pair, over the blocks from one to before another (see `effects`)."""
    window = _window(bins, offered, since, until)
    for name in BASES[base]:
        yield {"metric": [name] * bins.pairs, **_columns(bins, window, TAILS[name])}


def effects(names: pl.DataFrame, found: Sequence[Mapping[str, Any]], since: datetime, until: datetime) -> pl.DataFrame:
    """One row per pair with values of treated, and percentile, for a window of blocks (columns of `effects`)."""
    held = {key: np.concatenate([one[key] for one in found]) for key in found[0]}
    named = pl.concat([names.select("lever", "segment")] * len(found))
    rows = pl.concat([named, pl.DataFrame(held)], how="horizontal").filter(pl.col("n_a") > 0)
    needed = pl.col("metric").replace_strict(
        {name: round(LEAST_EXCEEDANCES / (1 - share)) for name, share in TAILS.items()}, return_dtype=pl.Int64
    )
    basis = pl.when("has_control").then(pl.lit("control"))
    ends = [pl.col(name).fill_nan(None) for name in _REALS]
    return rows.with_columns(
        *(pl.lit(value).alias(name) for name, value in (("arm_a", "treated"), ("since", since), ("until", until), ("method", METHOD))),
        *ends,
        basis.alias("arm_b"),
        basis.otherwise(pl.lit("none")).alias("basis"),
        _note(needed).alias("note"),
    ).drop("has_control")


def _window(bins: Bins, offered: Offered, since: int, until: int) -> _Window:
    rows = bins.rows(since, until)
    place = bins.pair[rows], bins.arm[rows], bins.block[rows] - since
    held = np.zeros((bins.pairs, len(ARMS), until - since))
    np.add.at(held, place, bins.counts(rows))
    asked = offered.requests[:, :, since:until].sum(axis=2)
    share = np.divide(held.sum(axis=2), asked, out=np.full(asked.shape, np.nan), where=asked > 0)
    has_control = held[:, 1].sum(axis=1) > 0
    told = np.where(has_control[:, None], (held > 0).all(axis=1), held[:, 0] > 0)
    upto = bins.running(rows, told[place[0], place[2]].astype(np.float64))
    coverage = np.nan_to_num(np.fmin(share[:, 0], share[:, 1])).clip(0.0, 1.0)
    return _Window(since, rows, held * told[:, None], upto, has_control, coverage)


def _columns(bins: Bins, window: _Window, share: float) -> dict[str, Any]:
    n = window.n.sum(axis=2)
    places = np.stack([histogram.reached(window.upto[:, arm], share) for arm in range(len(ARMS))], axis=1)
    value = np.where(n > 0, FIRST * np.exp(WIDTH * (places + FIRST_BIN + 0.5)), np.nan)
    enough = window.has_control & (n.min(axis=1) * (1 - share) >= LEAST_EXCEEDANCES - 1e-9)
    ratio = np.where(enough, value[:, 0] / value[:, 1], np.nan)
    low, high = _ends(bins, window, places)
    bounded = enough & (low > 0) & np.isfinite(high)
    return {
        "blocks": (window.n[:, 0] > 0).sum(axis=1),
        "n_a": n[:, 0].astype(np.int64),
        "n_b": n[:, 1].astype(np.int64),
        "value_a": value[:, 0],
        "value_b": value[:, 1],
        "gain": 1 - ratio,
        "gain_low": np.where(bounded, 1 - np.fmax(high, ratio), np.nan),
        "gain_high": np.where(bounded, 1 - np.fmin(low, ratio), np.nan),
        "coverage": window.coverage,
        "has_control": window.has_control,
    }


def _ends(bins: Bins, window: _Window, places: Whole) -> tuple[Reals, Reals]:
    """The ends of treated's percentile over control's, per pair; 0 and infinity where nothing bounds them.

    In a block treated's n values should lie below its percentile by the share that control's below its own has there.
    """
    blocks = window.n.shape[2]
    expected = window.n[:, 0] * _shares(bins, window, places)[:, 1]
    upto = window.upto[:, 0]
    middle = np.abs(upto - expected.sum(axis=1, keepdims=True)).argmin(axis=1)
    found = window.n[:, 0] * _shares(bins, window, np.stack([middle, places[:, 1]], axis=1))[:, 0]
    told = ((window.n > 0).all(axis=1)).sum(axis=1).astype(np.float64)
    radius = quantile.sum_radius((found - expected).T, told, ALPHA, min(SPAN_BLOCKS, blocks // 4))
    _, low, high = quantile.ends(upto, expected.sum(axis=1), radius)
    theirs = places[:, 1]
    below, above = (np.exp(WIDTH * (place - theirs)) for place in (low, high))
    return np.where(low < 0, 0.0, below), np.where(high >= bins.width, np.inf, above)


def _shares(bins: Bins, window: _Window, places: Whole) -> Reals:
    """The share of each arm's values in each block that lie in bins up to a place (pairs, ARMS, blocks); 0 without values."""
    rows = window.rows
    below = np.zeros(window.n.shape)
    np.add.at(below, (bins.pair[rows], bins.arm[rows], bins.block[rows] - window.since), bins.below(rows, places))
    return np.divide(below, window.n, out=np.zeros_like(below), where=window.n > 0)


def _note(needed: pl.Expr) -> pl.Expr:
    few = pl.format("insufficient: {} requests in the thinner arm, {} are needed", pl.min_horizontal("n_a", "n_b"), needed)
    return (
        pl.when(~pl.col("has_control"))
        .then(pl.lit("no control arm: nothing to compare with"))
        .when(pl.col("gain").is_nan())
        .then(few)
        .when(pl.col("gain_low").is_nan())
        .then(pl.format("no interval from {} blocks", "blocks"))
    )
