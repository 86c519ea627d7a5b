"""What streams of evidence keep between blocks, in the table `detector_state`: read before the next block, written with its effects."""

from __future__ import annotations

import numpy as np
import polars as pl

from pipeline.evidence import LAYOUT, Streams
from queries import files
from queries.store import Store, Transaction


def kept(store: Store) -> Streams:
    """The streams as the last blocks left them; those that another layout kept begin anew."""
    rows = store.frame(files.question("evidence_kept"), {"layout": LAYOUT})
    if rows.is_empty():
        return Streams.start()
    numbers = np.array(rows["numbers"].to_list(), dtype=np.float64)
    return Streams.of_numbers([*rows.select("lever", "segment").iter_rows()], rows["block_ended_at"].to_list(), numbers)


def keep(transaction: Transaction, streams: Streams) -> None:
    """Writes the streams in the place of what was kept."""
    transaction.execute("delete from detector_state")
    if not streams.pairs:
        return
    levers, segments = zip(*streams.pairs, strict=True)
    rows = {
        "lever": levers,
        "segment": segments,
        "block_ended_at": pl.Series(streams.until, dtype=pl.Datetime("us", "UTC")),
        "layout": [LAYOUT] * len(levers),
        "numbers": pl.Series(streams.numbers().tolist(), dtype=pl.List(pl.Float64)),
    }
    transaction.insert("detector_state", pl.DataFrame(rows))
