"""Counts by block, arm and bin in, histograms and offered requests as tails read them out: a pair of lever and segment a stream."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS
from pipeline.tail_bins import Bins, of_rows
from pipeline.tail_counts import Offered

BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
LEVER = "speculation"


def segment(stream: int) -> str:
    return f'{{"model":"m{stream:03}"}}'


def names(streams: int) -> pl.DataFrame:
    return pl.DataFrame({"lever": [LEVER] * streams, "segment": [segment(one) for one in range(streams)], "pair": range(streams)})


def bins_of(counts: npt.NDArray[np.float64], first: int) -> Bins:
    """Of counts (streams, blocks, arms, bins), the first bin being `first`; arms as in ARMS."""
    stream, block, arm, place = np.nonzero(counts)
    rows = pl.DataFrame({"pair": stream, "block": block, "arm": np.array(ARMS)[arm], "bins": place + first, "counts": counts[counts > 0]})
    rows = rows.group_by("pair", "block", "arm", maintain_order=True).agg("bins", "counts").sort("block")
    return of_rows(rows.with_columns((BEGAN + pl.col("block") * BLOCK).alias("block_started_at")), len(counts), BEGAN)


def offered_of(counts: npt.NDArray[np.float64], failed: npt.NDArray[np.float64] | None = None) -> Offered:
    """All requests have a value, but for those that `failed` (streams, arms, blocks) beside them."""
    held = np.moveaxis(counts.sum(axis=3), 1, 2).astype(np.float64)
    lost = np.zeros_like(held) if failed is None else failed
    return Offered(names(len(counts)), held + lost, lost)
