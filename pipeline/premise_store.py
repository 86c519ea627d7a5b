"""Effects at the ends of blocks in, the same with the evidence that premises are lost out; what is kept of it in table `premise_state`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from pipeline import state_rows
from pipeline.premise_evidence import KEY, LAYOUT, LONG_S, NEVER, Premises, Watched, advanced, is_spread, listed, with_evidence
from queries import files
from queries.store import Store, Transaction

BEFORE = timedelta(days=1)  # what is read of premises that nothing is kept of yet
_OF = ("lever", "metric", "threshold", "is_above")


def told(store: Store, frames: Sequence[pl.DataFrame], watched: Sequence[Watched]) -> tuple[list[pl.DataFrame], Premises | None]:
    """(the effects with evidence, the premises after the last long block that ended; None where none has ended since).

    Nothing is read of a store's state but the newest evidence, until a long block is over; one in which traffic stopped, when it goes on.
    """
    if not frames or not watched:
        return [*frames], None
    last: datetime = store.rows("select coalesce(max(ended_at), $never) as ended_at from premise_state", {"never": NEVER})[0]["ended_at"]
    until = _begun(frames[-1]["until"][0])
    if until <= last:
        newest = _watched(store.frame(f"select {', '.join(KEY)}, ended_at, log_m from premise_state"), watched)
        return [with_evidence(frame, newest) for frame in frames], None
    first = _begun(frames[0]["until"][0]) - BEFORE
    asked = {"since": first if last == NEVER else last, "until": until, "long_s": LONG_S}
    metrics = sorted({one.metric for one in watched})
    names = {"levers": sorted({one.lever for one in watched}), "metrics": metrics, "spreads": [*filter(is_spread, metrics)]}
    sums = store.frame(files.question("premise_cells"), asked | names)
    return _in_order(frames, sums, kept(store, watched), watched)


def kept(store: Store, watched: Sequence[Watched]) -> Premises:
    """The premises that are still watched, as their last long blocks left them; those that another layout kept begin anew."""
    rows = _watched(store.frame("select * from premise_state where layout = $layout", {"layout": LAYOUT}), watched)
    if rows.is_empty():
        return Premises.start()
    numbers = np.array(rows["numbers"].to_list(), dtype=np.float64)
    return Premises.of_numbers([*rows.select(KEY).iter_rows()], rows["ended_at"].to_list(), numbers)


def keep(transaction: Transaction, premises: Premises | None) -> None:
    """Writes the premises in the place of what was kept; None leaves it."""
    if premises is None:
        return
    transaction.execute("delete from premise_state")
    if premises.keys:
        numbers = pl.Series("numbers", premises.numbers().tolist(), pl.List(pl.Float64))
        rows = listed(premises).with_columns(numbers, pl.lit(LAYOUT).alias("layout"))
        transaction.insert("premise_state", state_rows.seen(rows, "ended_at"))


def _in_order(
    frames: Sequence[pl.DataFrame], sums: pl.DataFrame, premises: Premises, watched: Sequence[Watched]
) -> tuple[list[pl.DataFrame], Premises]:
    """Long blocks are taken as they end, between the ends of short ones."""
    blocks = [(ended_at, rows) for (ended_at,), rows in sums.group_by("ended_at", maintain_order=True)]
    made, place = [], 0
    for frame in frames:
        while place < len(blocks) and blocks[place][0] <= frame["until"][0]:
            premises = advanced(premises, blocks[place][1], watched, blocks[place][0])
            place += 1
        made.append(with_evidence(frame, listed(premises)))
    return made, premises


def _watched(rows: pl.DataFrame, watched: Sequence[Watched]) -> pl.DataFrame:
    names = pl.DataFrame([(one.lever, one.metric, one.threshold, one.is_above) for one in watched], schema=_KINDS, orient="row")
    return rows.join(names.unique(), on=_OF, how="semi")


def _begun(moment: datetime) -> datetime:
    """The end of the last long block that is over: long blocks lie still in time."""
    return moment - timedelta(seconds=moment.timestamp() % LONG_S)


_KINDS = {"lever": pl.String(), "metric": pl.String(), "threshold": pl.Float64(), "is_above": pl.Boolean()}
