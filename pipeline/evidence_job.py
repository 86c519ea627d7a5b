"""Blocks that have closed in, evidence at their ends out: of times, of tails and of errors; and the rows of tails' effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from pipeline import evidence_store, incident_counts, incident_store, incident_streams, tail_families, tail_job
from pipeline.evidence import advanced as contrasted
from pipeline.evidence_families import FAMILIES
from pipeline.evidence_streams import Streams
from pipeline.tail_job import Told
from pipeline.tuning import Tuning
from queries.store import Store, Transaction


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept between blocks: `streams` of times, `tails`, and those of errors."""

    streams: tuple[Streams, ...]
    tails: tuple[Streams, ...]
    incidents: incident_streams.Streams


@dataclass(frozen=True, slots=True)
class Reading:
    """What a block has beside its cells: what its tails say, and its incidents."""

    tails: Told
    incidents: pl.DataFrame


def kept(store: Store) -> Kept:
    """As the last blocks left it."""
    times, tails = (tuple(evidence_store.kept(store, family) for family in some) for some in (FAMILIES, tail_families.FAMILIES))
    return Kept(times, tails, incident_store.kept(store))


def keep(transaction: Transaction, kept: Kept) -> None:
    """Writes it in the place of what was kept."""
    evidence_store.keep(transaction, (*kept.streams, *kept.tails))
    incident_store.keep(transaction, kept.incidents)


def readings(store: Store, ends: Sequence[datetime], cells: pl.DataFrame) -> Iterator[Reading]:
    """For each end of a block, in order, what it has beside its cells; `cells` are those of the windows before all these ends."""
    told = tail_job.told(store, ends, cells)
    for tails, incidents in zip(told, incident_counts.counts(store, ends, cells), strict=True):
        yield Reading(tails, incidents)


def advanced(
    store: Store, kept: Kept, cells: pl.DataFrame, reading: Reading, ended_at: datetime, tuning: Tuning
) -> tuple[Kept, pl.DataFrame]:
    """(what is kept after one more block, the evidence at its end), as `evidence.advanced` gives it. `cells` are those of the block."""
    times = [contrasted(one, cells, ended_at, tuning) for one in kept.streams]
    tails = [contrasted(one, reading.tails.cells, ended_at, tuning) for one in kept.tails] if len(reading.tails.cells) else []
    incidents, failed = incident_streams.advanced(kept.incidents, cells, reading.incidents, ended_at, tuning)
    after = Kept(
        tuple(evidence_store.lengthened(store, one, ended_at) for one, _ in times),
        tuple(one for one, _ in tails) or kept.tails,
        incidents,
    )
    return after, pl.concat([*(found for _, found in (*times, *tails)), failed])
