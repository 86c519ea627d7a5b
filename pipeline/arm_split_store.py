"""What is kept of the split of arms, in the table `arm_split_state`: read before the next block, written with its effects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from pipeline import arm_split, state_rows
from pipeline.arm_split import LAYOUT, WIDTH, Holdout, Splits
from pipeline.measure import BLOCK_S
from queries import files
from queries.store import Store, Transaction

BLOCK = timedelta(seconds=BLOCK_S)


def kept(store: Store, holdouts: Sequence[Holdout]) -> Splits:
    """The splits as the last blocks left them, of those whose share is still stated so."""
    asked = "select lever, segment, block_ended_at, numbers from arm_split_state where layout = $layout order by lever, segment"
    rows = store.frame(asked, {"layout": LAYOUT}) if holdouts else pl.DataFrame()
    if rows.is_empty():
        return Splits.of_numbers((), (), np.zeros((0, WIDTH)))
    numbers = rows["numbers"].list.to_array(WIDTH).to_numpy()
    found = Splits.of_numbers([*rows.select("lever", "segment").iter_rows()], rows["block_ended_at"].to_list(), numbers)
    return arm_split.joined(found, holdouts)


def learned(store: Store, ends: Sequence[datetime], holdouts: Sequence[Holdout]) -> tuple[Splits, pl.DataFrame]:
    """(the splits after the blocks with these ends, in order; what was found at each of them)."""
    splits, told = kept(store, holdouts), []
    if not holdouts:
        return splits, arm_split.NOTHING
    asked = {"starts": [end - BLOCK for end in ends], "levers": sorted({one.lever for one in holdouts})}
    blocks = store.frame(files.question("arm_split_cells"), asked).partition_by("block_started_at", as_dict=True, include_key=False)
    for end in ends:
        if (end - BLOCK,) in blocks:
            splits, found = arm_split.advanced(splits, blocks[end - BLOCK,], end, holdouts)
            told.append(found)
    return splits, pl.concat([arm_split.NOTHING, *told])


def keep(transaction: Transaction, splits: Splits) -> None:
    """Writes the splits in the place of what was kept."""
    transaction.execute("delete from arm_split_state")
    if splits.pairs:
        transaction.insert("arm_split_state", state_rows.rows(splits.pairs, splits.until, splits.numbers(), layout=LAYOUT))
