"""Blocks that have closed in, what their percentiles say out: rows of cells for evidence, and rows of `effects`.

Histograms of a few blocks, of one metric and some pairs of lever and segment, are in memory together; the work of a block is the same
however long its history is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import tail_bins, tail_counts, tail_effects
from pipeline.compare import WINDOW_BLOCKS
from pipeline.evidence_families import ARMS
from pipeline.guard_effects import with_traps
from pipeline.measure import BLOCK_S, REQUESTS
from pipeline.tail_bins import BLOCK
from pipeline.tail_counts import Offered
from pipeline.tail_families import BASES
from queries.store import Store

BLOCKS_AT_ONCE = 12
PAIRS_AT_ONCE = 2_000
WINDOW = BLOCK * WINDOW_BLOCKS
FAILED = "error_rate"


@dataclass(frozen=True, slots=True)
class Told:
    """What percentiles say at a block's end: rows of cells of it, as evidence takes them, and rows of `effects` of the window before."""

    cells: pl.DataFrame
    effects: pl.DataFrame


def told(store: Store, ends: Sequence[datetime], cells: pl.DataFrame) -> Iterator[Told]:
    """For each end of a block, in order, what percentiles say; `cells` has those of all these windows, with REQUESTS and `error_rate`."""
    for some in _near(ends):
        since = some[0] - WINDOW
        inside = cells.filter((pl.col("block_started_at") >= since) & (pl.col("block_started_at") < some[-1]))
        treated = inside.filter(pl.col("arm") == ARMS[0]).select("lever", "segment").unique().sort("lever", "segment")
        parts = [_of_pairs(store, some, inside, pairs) for pairs in treated.iter_slices(PAIRS_AT_ONCE)]
        for place, end in enumerate(some):
            found = [part[place] for part in parts]
            of_window = (pl.col("block_started_at") >= end - WINDOW) & (pl.col("block_started_at") < end)
            yield _together(found, inside.filter(of_window)) if found else Told(pl.DataFrame(), pl.DataFrame())


def _near(ends: Sequence[datetime]) -> Iterator[Sequence[datetime]]:
    first = 0
    for place, end in enumerate(ends):
        if end - ends[first] >= BLOCK * BLOCKS_AT_ONCE:
            yield ends[first:place]
            first = place
    yield ends[first:]


def _of_pairs(store: Store, ends: Sequence[datetime], cells: pl.DataFrame, pairs: pl.DataFrame) -> list[Told]:
    """The same for some pairs, end by end."""
    since = ends[0] - WINDOW
    names = pairs.with_columns(pl.int_range(pl.len()).alias("pair"))
    offered = _offered(cells, names, since, ends[-1])
    blocks = [(end - since) // BLOCK - 1 for end in ends]
    counts = [[tail_counts.counted(offered, block)] for block in blocks]
    columns: list[list[dict[str, Any]]] = [[] for _ in ends]
    for base in BASES:
        bins = tail_bins.read(store, base, names, since, ends[-1])
        for block, counted, held in zip(blocks, counts, columns, strict=True):
            counted += tail_counts.exceeding(bins, offered, base, block, WINDOW_BLOCKS - 1)
            held += tail_effects.columns(bins, offered, base, block + 1 - WINDOW_BLOCKS, block + 1)
    return [
        Told(tail_counts.cells(names, counted), tail_effects.effects(names, held, end - WINDOW, end))
        for end, counted, held in zip(ends, counts, columns, strict=True)
    ]


def _together(found: Sequence[Told], cells: pl.DataFrame) -> Told:
    effects = pl.concat([one.effects for one in found])
    return Told(pl.concat([one.cells for one in found]), with_traps(effects, cells))


def _offered(cells: pl.DataFrame, names: pl.DataFrame, since: datetime, until: datetime) -> Offered:
    placed = cells.filter(pl.col("arm").is_in(ARMS) & pl.col("metric").is_in([REQUESTS, FAILED])).join(names, on=["lever", "segment"])
    shape = len(names), len(ARMS), (until - since) // BLOCK
    asked = placed.filter(pl.col("metric") == REQUESTS)
    failed = placed.filter(pl.col("metric") == FAILED)
    return Offered(names, _added(shape, asked, "n", since), _added(shape, failed, "num", since))


def _added(shape: tuple[int, int, int], rows: pl.DataFrame, of: str, since: datetime) -> npt.NDArray[np.float64]:
    arm = rows["arm"].replace_strict({name: place for place, name in enumerate(ARMS)}, return_dtype=pl.Int64).to_numpy()
    block = ((rows["block_started_at"] - since).dt.total_seconds() // BLOCK_S).to_numpy()
    summed = np.zeros(shape)
    np.add.at(summed, (rows["pair"].to_numpy(), arm, block), rows[of].cast(pl.Float64).to_numpy())
    return summed
