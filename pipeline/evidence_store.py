"""What streams of evidence keep between blocks, in the table `detector_state`: read before the next block, written with its effects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pipeline import evidence_lengths, state_rows
from pipeline.evidence_families import MEANS, Family
from pipeline.evidence_streams import LAYOUT, Streams
from pipeline.measure import REQUESTS
from queries import files
from queries.store import Store, Transaction


def kept(store: Store, family: Family) -> Streams:
    """A family's streams as the last blocks left them; those that another layout kept begin anew."""
    rows = store.frame(files.question("evidence_kept"), {"layout": LAYOUT, "family": family.name})
    if rows.is_empty():
        return Streams.start(family)
    numbers = rows["numbers"].list.to_array(len(rows["numbers"][0])).to_numpy()
    return Streams.of_numbers(family, [*rows.select("lever", "segment").iter_rows()], rows["block_ended_at"].to_list(), numbers)


def lengthened(store: Store, streams: Streams, ended_at: datetime) -> Streams:
    """The streams with the blocks of those pairs that are due now as long as their last day asks for."""
    pairs = evidence_lengths.due(streams) if set(streams.family.raw) <= set(MEANS.raw) else ()
    if not pairs:
        return streams
    levers, named = zip(*pairs, strict=True)
    asked = {"levers": levers, "segments": named, "metrics": [REQUESTS, *streams.family.raw]}
    since = ended_at - evidence_lengths.DAY
    cells = store.frame(files.question("evidence_day"), asked | {"since": since, "until": ended_at})
    return evidence_lengths.lengthened(streams, pairs, evidence_lengths.sums(streams, pairs, cells, ended_at))


def keep(transaction: Transaction, streams: Iterable[Streams]) -> None:
    """Writes the streams in the place of what was kept."""
    transaction.execute("delete from detector_state")
    for one in streams:
        if one.pairs:
            rows = state_rows.rows(one.pairs, one.until, one.numbers(), layout=LAYOUT, family=one.family.name)
            transaction.insert("detector_state", rows)
