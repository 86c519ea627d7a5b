"""What streams of incidents keep between blocks, in the table `detector_state` beside those of contrasts."""

from __future__ import annotations

from pipeline import state_rows
from pipeline.incident_streams import LAYOUT, Streams
from queries import files
from queries.store import Store, Transaction

FAMILY = "incidents"


def kept(store: Store) -> Streams:
    """The streams as the last blocks left them; those that another layout kept begin anew."""
    rows = store.frame(files.question("evidence_kept"), {"layout": LAYOUT, "family": FAMILY})
    if rows.is_empty():
        return Streams.start()
    numbers = rows["numbers"].list.to_array(len(rows["numbers"][0])).to_numpy()
    return Streams.of_numbers([*rows.select("lever", "segment").iter_rows()], rows["block_ended_at"].to_list(), numbers)


def keep(transaction: Transaction, streams: Streams) -> None:
    """Writes the streams; call it after `evidence_store.keep`, which empties the table."""
    if streams.pairs:
        rows = state_rows.rows(streams.pairs, streams.until, streams.numbers(), layout=LAYOUT, family=FAMILY)
        transaction.insert("detector_state", rows)
