"""Effects at the ends of blocks in, the same with all that is known where a lever has no control arm out; in one transaction it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from pipeline import premise_store, uncontrolled_store
from pipeline.premise_evidence import Premises, Watched
from pipeline.schedule_rows import Period
from pipeline.uncontrolled_store import Found
from queries.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Configured:
    """What the configuration says of it: the switchback schedule, and the premises that policies name."""

    schedule: tuple[Period, ...] = ()
    watched: tuple[Watched, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What is to be kept of one run."""

    found: Found = field(default_factory=Found)
    premises: Premises | None = None


def completed(store: Store, frames: Sequence[pl.DataFrame], configured: Configured) -> tuple[list[pl.DataFrame], Measured]:
    """(the effects of each block's end, completed; what is to be kept)."""
    filled, found = uncontrolled_store.filled(store, frames, configured.schedule)
    told, premises = premise_store.told(store, filled, configured.watched)
    return told, Measured(found, premises)


def keep(transaction: Transaction, measured: Measured) -> None:
    """Writes what was measured, beside the effects."""
    uncontrolled_store.keep(transaction, measured.found)
    premise_store.keep(transaction, measured.premises)
