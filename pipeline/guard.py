"""Settled requests and the samples around them in; the same requests without what cannot be true, and what was suspected of whom, out.

What one request's values show is set aside as at assembly (`impossible.py`). What only a replica's series show is suspected of the
replica: values that were shared out from such a series are set aside, others stay and are flagged.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import polars as pl

from pipeline.guard_counters import SERIES_TRAPS
from pipeline.guard_series import compared
from pipeline.guard_sums import SUMS, sums, together
from pipeline.impossible import flagged, quarantined, taken_out
from pipeline.traps import PAIRS, SeriesTrap
from queries import files
from queries.store import Transaction

SUSPICIONS = pl.Schema(
    {
        "trap": pl.String(),
        "upstream": pl.String(),
        "replica": pl.String(),
        "column": pl.String(),
        "since": pl.Datetime("us", "UTC"),
        "until": pl.Datetime("us", "UTC"),
        "n": pl.Int64(),
        "seen": pl.String(),
        "severity": pl.String(),
    }
)
COUNTED = ("counter", "sample")  # provenance of what was shared out, or read, from a series


class Checked(NamedTuple):
    """Requests as they may be measured, rows of `quarantine`, of `suspicions`, and of `replica_sums`: what the requests said."""

    requests: pl.DataFrame
    quarantine: pl.DataFrame
    suspicions: pl.DataFrame
    sums: pl.DataFrame


def checked(requests: pl.DataFrame, samples: pl.DataFrame, recent: pl.DataFrame | None = None) -> Checked:
    """The requests without what cannot be true, flagged where they fell into a trap, and why.

    `requests` has the columns of the table, maps as lists of pairs or as maps; `samples` those of `samples` of the same
    replicas over about the same period, five minutes or more where there are as many. `recent` are the `sums` of the batches before in that
    period: a batch by itself may hold too few requests of a replica to hold them against its series.
    """
    requests, taken = quarantined(requests)
    said = sums(requests) if len(samples) and len(requests) else pl.DataFrame(schema=SUMS)
    found = suspicions(said, samples, recent)
    rows = [taken]
    for trap, column, replicas in _spoiled(found):
        if column not in requests.columns:
            continue
        fell = requests.select(_touched(trap, column, replicas)).to_series()
        if trap.severity == "quarantined":
            requests, more = taken_out(requests, fell, (column,), trap)
            rows.extend(more)
        else:
            requests = flagged(requests, fell, trap.name, trap.severity)
    return Checked(requests, pl.concat(rows), found, said)


def suspicions(said: pl.DataFrame, samples: pl.DataFrame, recent: pl.DataFrame | None = None) -> pl.DataFrame:
    """What the replicas' series show beside what their requests `said`: one row per replica, trap and column (columns of `suspicions`)."""
    if samples.is_empty() or said.is_empty():
        return pl.DataFrame(schema=SUSPICIONS)
    whole = said if recent is None else pl.concat([said, recent.select(said.columns)], how="vertical_relaxed")
    now = said.select("replica", pl.max_horizontal("requests", "own_n").alias("now_n"))
    replicas = compared(together(whole), samples).join(now, on="replica", how="left")
    found = [pl.DataFrame(schema=SUSPICIONS)]
    for trap in SERIES_TRAPS:
        fell = replicas.filter(trap.when.fill_null(value=False))
        if not fell.is_empty():
            found.extend(_rows(fell, trap, column) for column in trap.columns)
    return pl.concat(found).unique(["replica", "column"], keep="first", maintain_order=True)


def record(transaction: Transaction, found: Checked, now: datetime) -> None:
    """Writes what was set aside, what was suspected, and what requests said; a suspicion that goes on makes its row longer."""
    if not found.quarantine.is_empty():
        transaction.insert("quarantine", found.quarantine)
    if not found.suspicions.is_empty():
        transaction.using(found.suspicions, files.question("guard_prolong"))
        transaction.using(found.suspicions, files.question("guard_record"), {"now": now})
    if not found.sums.is_empty():
        transaction.execute(files.question("guard_forget"), {"now": now})
        transaction.using(found.sums, files.question("guard_remember"), {"now": now})


def _rows(fell: pl.DataFrame, trap: SeriesTrap, column: str) -> pl.DataFrame:
    return fell.select(
        pl.lit(trap.name).alias("trap"),
        pl.lit(trap.upstream or None, pl.String).alias("upstream"),
        "replica",
        pl.lit(column).alias("column"),
        "since",
        "until",
        pl.col("now_n").fill_null(0).cast(pl.Int64).alias("n"),
        trap.seen.fill_null(trap.reason).alias("seen"),
        pl.lit(trap.severity).alias("severity"),
    ).cast(SUSPICIONS)


def _spoiled(found: pl.DataFrame) -> Iterator[tuple[SeriesTrap, str, list[str]]]:
    """Each trap and column that was suspected of replicas, unless nothing of ours is made of it."""
    traps = {trap.name: trap for trap in SERIES_TRAPS if trap.severity != "noted"}
    for (name, column), rows in found.group_by("trap", "column", maintain_order=True):
        if name in traps:
            yield traps[str(name)], str(column), rows["replica"].to_list()


def _touched(trap: SeriesTrap, column: str, replicas: list[str]) -> pl.Expr:
    """Whether a request's value is one that the trap spoils."""
    served = pl.any_horizontal(pl.col(name).is_in(replicas) for name in ("replica", "prefill_replica", "decode_replica"))
    known = served.fill_null(False) & pl.col(column).is_not_null()
    if trap.basis == "any":
        return known
    said = pl.element().struct.field("key").eq(column) & pl.element().struct.field("value").is_in(list(COUNTED))
    return known & pl.col("provenance").cast(PAIRS).list.eval(said).list.any().fill_null(False)
