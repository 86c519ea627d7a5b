"""Blocks that have closed in, how uneven replicas are in the windows that end with them out: what sums over all replicas cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import polars as pl

from pipeline.compare import SPREADS, WINDOW_BLOCKS
from pipeline.measure import BLOCK_S
from queries import files
from queries.store import Store

TOGETHER = timedelta(seconds=BLOCK_S * 12)  # ends as near as that are asked for at once: a replica has a row for each


def read(store: Store, ends: Sequence[datetime]) -> Iterator[pl.DataFrame]:
    """For each end of a block, in order, a row per lever, segment and metric of SPREADS: `value`, the largest over the mean, at least 1."""
    first = 0
    while first < len(ends):
        some = [end for end in ends[first:] if end < ends[first] + TOGETHER]
        asked = {"ends": some, "window_s": BLOCK_S * WINDOW_BLOCKS, "metrics": list(SPREADS)}
        found = store.frame(files.question("compare_spreads"), asked)
        for end in some:
            yield found.filter(pl.col("ended_at") == end).drop("ended_at")
        first += len(some)
