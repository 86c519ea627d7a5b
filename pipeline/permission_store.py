"""Blocks that have closed in, whether contrasts may decide at their ends out; a cycle of where control was is kept in `replica_blocks`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import polars as pl

from pipeline import permission
from pipeline.permission import BLOCK, CYCLE_BLOCKS, Grid
from queries import files
from queries.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Permitted:
    """Where control was in the blocks of a run and in the cycle before them. `pools` names the pool of each segment.

    `grids` has, for ends of blocks that lie near each other, what was there; ends are in order.
    """

    grids: tuple[tuple[Sequence[datetime], Grid], ...]
    pools: pl.DataFrame

    def permissions(self) -> pl.DataFrame:
        """Whether contrasts may decide at each end, as `permission.permissions` says."""
        found = [permission.permissions(grid, end) for ends, grid in self.grids for end in ends]
        return pl.concat([permission.NOTHING, *found])


def learned(store: Store, ends: Sequence[datetime]) -> Permitted:
    """Where control was in the blocks with these ends, in order. The work goes by them and a cycle, not by how long there has been data."""
    pools = store.frame("select segment, pool from segment_pools")
    return Permitted(tuple((near, _grid(store, near)) for near in _near(ends)), pools)


def keep(transaction: Transaction, found: Permitted) -> None:
    """Writes the blocks of the run in the place of what was known of them, and lets go what is older than a cycle."""
    starts = [end - BLOCK for ends, _ in found.grids for end in ends]
    since = starts[-1] - BLOCK * (CYCLE_BLOCKS - 1)
    transaction.execute(files.question("permission_forget"), {"since": since, "starts": starts})
    for ends, grid in found.grids:
        rows = grid.told([end - BLOCK for end in ends])
        if not rows.is_empty():
            transaction.insert("replica_blocks", rows)


def _grid(store: Store, ends: Sequence[datetime]) -> Grid:
    starts = [end - BLOCK for end in ends]
    since = starts[0] - BLOCK * (CYCLE_BLOCKS - 1)
    new = permission.named(store.frame(files.question("permission_cells"), {"starts": starts}))
    kept = store.frame(files.question("permission_kept"), {"since": since, "until": ends[-1], "starts": starts})
    rows, blocks = pl.concat([kept, new.select(kept.columns)], how="vertical_relaxed"), (ends[-1] - since) // BLOCK
    found = permission.grid(rows, since, blocks)
    return permission.walked(found, found.place(starts[0]))


def _near(ends: Sequence[datetime]) -> Iterator[Sequence[datetime]]:
    """The ends in groups that lie within a cycle of each other: what lies between far ones would be read with them."""
    breaks = [place for place, (one, next_) in enumerate(pairwise(ends), 1) if next_ - one > BLOCK * CYCLE_BLOCKS]
    for first, last in pairwise([0, *breaks, len(ends)]):
        yield ends[first:last]
