"""How many requests each version of an engine served, block by block, in; which deploys that shows out (table `deploys`).

A rolling deploy is one deploy, at the block in which the new version first serves most requests. A version that was there before takes nine
tenths to be back, so that a fleet at halves does not begin anew at each block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import polars as pl

from pipeline.break_even_store import near
from pipeline.measure import BLOCK_S
from pipeline.tuning import PLAIN, Deploy, Tuning
from queries import files, ranged
from queries.store import Store, Transaction

LEAST_REQUESTS = 20  # of a block, to say which version serves most
MOST, BACK = 0.5, 0.9
BLOCK = timedelta(seconds=BLOCK_S)
_SCHEMA = pl.Schema(
    {
        "model": pl.String(),
        "hardware": pl.String(),
        "engine": pl.String(),
        "engine_version": pl.String(),
        "since": pl.Datetime("us", "UTC"),
        "is_change": pl.Boolean(),
    }
)


def tuned(store: Store, ends: Sequence[datetime]) -> tuple[Tuning, list[Deploy]]:
    """(what streams are tuned to at the blocks with these ends, the deploys among them that were not known)."""
    if not ends:
        return PLAIN, []
    found = store.rows("select lever, metric, blocks_together, phi from calibrations")
    phis = {(row["lever"], row["metric"], row["blocks_together"]): row["phi"] for row in found}
    known = [Deploy(**row) for row in store.rows("select * from deploys order by since, model, hardware, engine")]
    new = noticed(known, _versions(store, ends))
    both = sorted([*known, *new], key=lambda one: one.since)
    return Tuning(phis, [one for one in both if one.is_change]), new


def keep(transaction: Transaction, new: Sequence[Deploy]) -> None:
    """Writes the deploys that were noticed."""
    if new:
        transaction.insert("deploys", pl.DataFrame([one._asdict() for one in new], schema=_SCHEMA))


def noticed(known: Sequence[Deploy], versions: Iterable[dict[str, Any]]) -> list[Deploy]:
    """The deploys that are not known yet.

    `versions` has block_started_at, model, hardware, engine, engine_version and n, in the order of block_started_at. Blocks before what is
    known of the same pool change nothing.
    """
    pools: dict[tuple[str | None, str | None, str], list[Deploy]] = {}
    for one in known:
        pools.setdefault(one[:3], []).append(one)
    new = []
    for (since, *pool), rows in groupby(versions, lambda row: (row["block_started_at"], row["model"], row["hardware"], row["engine"])):
        before = pools.setdefault((pool[0], pool[1], pool[2]), [])
        version = _risen(before, since, {row["engine_version"]: row["n"] for row in rows})
        if version is not None:
            before.append(Deploy(pool[0], pool[1], pool[2], version, since, is_change=bool(before)))
            new.append(before[-1])
    return new


def _risen(before: Sequence[Deploy], since: datetime, counts: dict[str, int]) -> str | None:
    """The version that has taken over in a block; None where none has."""
    total = sum(counts.values())
    version = max(counts, key=lambda name: (counts[name], name))
    if total < LEAST_REQUESTS or (before and (since <= before[-1].since or version == before[-1].engine_version)):
        return None
    least = BACK if any(one.engine_version == version for one in before) else MOST
    return version if counts[version] > least * total or not before else None


def _versions(store: Store, ends: Sequence[datetime]) -> list[dict[str, Any]]:
    """Rows of the blocks with these ends, those that are far apart asked for one by one: what lies between them is not read."""
    rows: list[dict[str, Any]] = []
    with store.snapshot() as seen:
        for some in near(ends):
            since, until = some[0] - BLOCK, some[-1]
            requests = ranged.relation(store, seen, "requests", since, until)
            question = f"with requests as (\n{requests}\n)\n{files.question('deploy_versions')}"
            rows += seen.frame(question, {"since": since, "until": until, "block_s": BLOCK_S}).to_dicts()
    return rows


def with_notes(effects: pl.DataFrame, tuning: Tuning, ended_at: datetime) -> pl.DataFrame:
    """The effects at a block's end, with a note on those whose evidence counts since a deploy of the last day."""
    notes = tuning.notes(set(effects["segment"]), ended_at) if len(effects) else {}
    if not notes:
        return effects
    said = pl.col("segment").replace_strict(notes, default=None, return_dtype=pl.String)
    return effects.with_columns(
        pl.concat_str(pl.col("note").cast(pl.String), said, separator="; ", ignore_nulls=True).alias("note")
    ).with_columns(pl.when(pl.col("note") != "").then("note").alias("note"))
