"""Effects at the ends of blocks in, the same with whether their contrasts may decide out: where control was, and how arms were split.

What both keep is written in the transaction that writes the effects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from pipeline import arm_split, arm_split_store, permission, permission_store
from pipeline.arm_split import Holdout, Splits
from pipeline.permission_store import Permitted
from queries.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Learned:
    """What is to be kept of one run."""

    permitted: Permitted
    splits: Splits


def completed(
    store: Store, ends: Sequence[datetime], frames: Sequence[pl.DataFrame], holdouts: Sequence[Holdout]
) -> tuple[list[pl.DataFrame], Learned | None]:
    """(the effects at these ends, completed; what is to be kept). `holdouts` are the shares that a configuration states."""
    if not ends:
        return list(frames), None
    permitted = permission_store.learned(store, ends)
    splits, told = arm_split_store.learned(store, ends, holdouts)
    permissions = permitted.permissions()
    marked = [permission.with_permission(frame, permissions, permitted.pools) for frame in frames]
    return [arm_split.with_split(frame, told) for frame in marked], Learned(permitted, splits)


def keep(transaction: Transaction, learned: Learned | None) -> None:
    """Writes what was learned, beside the effects."""
    if learned is not None:
        permission_store.keep(transaction, learned.permitted)
        arm_split_store.keep(transaction, learned.splits)
