"""Streams of evidence in, one row per lever, segment and metric out: what `effects` says beside the interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import NO_GAIN, NULLS, Family
from pipeline.evidence_streams import Streams
from pipeline.inference import contrast, detector, turn
from pipeline.measure import BLOCK_S
from pipeline.metrics import by_name, of_quantile

BLOCKS_A_CYCLE = 86_400 // BLOCK_S

Reals = npt.NDArray[np.float64]

SCHEMA = pl.Schema(
    {
        "lever": pl.String(),
        "segment": pl.String(),
        "metric": pl.String(),
        "evidence": pl.Float64(),
        "tests": pl.Int64(),
        "evidence_below": pl.List(pl.Float64()),
        "evidence_above": pl.List(pl.Float64()),
        "blocks_seen": pl.Int64(),
        "turned_blocks": pl.Int64(),
        "turned_gain": pl.Float64(),
        "uncalibrated": pl.Boolean(),
        "contrast_spread": pl.Float64(),
        "contrast_neighbors": pl.Float64(),
        "blocks_together": pl.Int64(),
    }
)


def told(streams: Streams, here: npt.NDArray[np.bool_], is_refused: npt.NDArray[np.bool_] | None = None) -> pl.DataFrame:
    """The evidence of the pairs that are here, as `evidence.advanced` says; a null that the family does not keep is null in the lists.

    `is_refused` (streams,): where splits of one arm found no scale that holds. A contrast of m blocks has m times fewer of its kind in a
    cycle, so its M counts m times.
    """
    if not here.any():
        return pl.DataFrame(schema=SCHEMA)
    metrics = streams.family.metrics
    chosen = np.repeat(here, len(metrics))
    multiple = np.repeat(streams.multiple, len(metrics))[chosen]
    logs = _logs(streams, chosen) + np.log(multiple)[:, None, None]
    is_off = streams.checks.is_off() | (np.zeros(len(chosen), np.bool_) if is_refused is None else is_refused)
    known = pl.Series(np.isfinite(logs[:, NO_GAIN]).all(axis=1))
    difference, share = (one[chosen] for one in turn.means(streams.turned))
    pairs = [pair for pair, is_here in zip(streams.pairs, here, strict=True) if is_here]
    named = pl.DataFrame(pairs, schema=["lever", "segment"], orient="row").with_columns(pl.len().over("lever").alias("tests"))
    rows = named.select(pl.all().repeat_by(len(metrics)).explode()).with_columns(
        pl.Series("metric", metrics * len(pairs)),
        pl.Series("evidence", np.exp(logs[:, NO_GAIN, 0]) / BLOCKS_A_CYCLE),
        _listed("evidence_below", logs[:, :, 0]),
        _listed("evidence_above", logs[:, :, 1]),
        pl.Series("blocks_seen", streams.running.n[chosen].astype(np.int64)),
        pl.Series("turned_blocks", streams.turned.n[chosen].astype(np.int64)),
        pl.Series("turned_gain", _gains(streams.family, difference, share)),
        pl.Series("uncalibrated", is_off[chosen]),
        pl.Series("contrast_spread", streams.checks.spread[chosen]),
        pl.Series("contrast_neighbors", streams.checks.neighbors[chosen]),
        pl.Series("blocks_together", multiple),
    )
    spoken = [pl.when(known).then(name).alias(name) for name in ("evidence", "evidence_below", "evidence_above")]
    finite = ("turned_gain", "contrast_spread", "contrast_neighbors")
    spoken += [pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in finite]
    return rows.with_columns(spoken).select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())


def _gains(family: Family, difference: Reals, share: Reals) -> Reals:
    """The gain of contrasts; NaN of exceedances, whose contrast is of requests and not of times."""
    if family.levels:
        return np.full(len(difference), np.nan)
    return np.asarray(contrast.gain(difference, share, signs(family, len(difference) // len(family.metrics))))


def signs(family: Family, pairs: int) -> Reals:
    """For each pair's metrics 1 where lower is better, -1 where higher is."""
    return np.tile([-1.0 if by_name()[of_quantile(metric)].better == "higher" else 1.0 for metric in family.metrics], pairs)


def _logs(streams: Streams, chosen: npt.NDArray[np.bool_]) -> Reals:
    """The logarithms of M (streams, NULLS, 2); NaN for a null that is not kept."""
    kept = detector.log_e(streams.log_m[chosen].reshape(-1, len(detector.LAM))).reshape(-1, len(streams.family.nulls), 2)
    logs = np.full((len(kept), len(NULLS), 2), np.nan)
    logs[:, list(streams.family.nulls)] = kept
    return logs


def _listed(name: str, logs: Reals) -> pl.Series:
    lists = pl.Series(name, np.ascontiguousarray(logs)).cast(pl.List(pl.Float64))
    return lists.list.eval(pl.element().fill_nan(None))
