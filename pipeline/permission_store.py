"""Blocks that have closed in, whether contrasts may decide at their ends out; a cycle of where control was is kept in `replica_blocks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from pipeline import permission
from pipeline.permission import BLOCK, CYCLE_BLOCKS, Grid
from queries import files
from queries.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Permitted:
    """Where control was in the blocks of a run and in the cycle before it. `pools` names the pool of each segment."""

    ends: Sequence[datetime]
    grid: Grid
    pools: pl.DataFrame


def learned(store: Store, ends: Sequence[datetime]) -> Permitted:
    """Where control was in the blocks with these ends, in order. The work goes by them and a cycle, not by how long there has been data."""
    starts = [end - BLOCK for end in ends]
    since = starts[0] - BLOCK * (CYCLE_BLOCKS - 1)
    new = permission.named(store.frame(files.question("permission_cells"), {"starts": starts}))
    kept = store.frame(files.question("permission_kept"), {"since": since, "until": ends[-1], "starts": starts})
    rows, blocks = pl.concat([kept, new.select(kept.columns)], how="vertical_relaxed"), (ends[-1] - since) // BLOCK
    found = permission.grid(rows, since, blocks)
    pools = store.frame("select segment, pool from segment_pools")
    return Permitted(ends, permission.walked(found, found.place(starts[0])), pools)


def keep(transaction: Transaction, found: Permitted) -> None:
    """Writes the blocks of the run in the place of what was known of them, and lets go what is older than a cycle."""
    starts = [end - BLOCK for end in found.ends]
    since = found.ends[-1] - BLOCK * CYCLE_BLOCKS
    transaction.execute(files.question("permission_forget"), {"since": since, "starts": starts})
    rows = found.grid.told(starts)
    if not rows.is_empty():
        transaction.insert("replica_blocks", rows)
