"""Blocks that have closed in, what they taught of where levers stop paying out: tables `break_even` and `break_even_kept`.

Each block teaches a pair of lever and segment once, in order; the work goes by the blocks and segments of a run, not by their history.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from pipeline import break_even_rows, break_even_state, segments
from pipeline.break_even_axes import AXES, BATCH, CONTEXT_TOKENS, Axis, Buckets, buckets
from pipeline.break_even_state import LAYOUT, SUMS, Kept
from pipeline.measure import BLOCK_S
from pipeline.metrics import by_name
from pipeline.tuning import PLAIN, Truths, Tuning
from queries import contexts, files, ranged
from queries.store import Store, Transaction

BLOCK = timedelta(seconds=BLOCK_S)
BLOCKS_AT_ONCE = 24  # whose cells are in memory together
_SAME = " and ".join(f't."{name}" = i."{name}"' for name in ("lever", "segment", "key"))


@dataclass(frozen=True, slots=True)
class Learned:
    """What the blocks of a run taught of one axis: what is kept now, and the rows of epochs that go on or have ended.

    `began` is the end of the first of these blocks.
    """

    axis: Axis
    names: tuple[str, ...]
    kept: Kept
    rows: pl.DataFrame
    began: datetime


def learned(store: Store, ends: Sequence[datetime], compared: pl.DataFrame, edges: segments.Edges, tuning: Tuning = PLAIN) -> list[Learned]:
    """What the blocks with these `ends`, in order, teach of each axis whose lever is in `compared`, rows of lever and segment.

    At a deploy that `tuning` knows of, epochs begin anew.
    """
    levers = set(compared["lever"].unique().to_list())
    asked = [(axis, compared.filter(pl.col("lever") == axis.lever)["segment"].unique()) for axis in AXES if axis.lever in levers]
    found = (_learned(store, ends, axis, buckets(axis.key, edges), told, tuning) for axis, told in asked)
    return [one for one in found if one.kept.pairs]


def keep(transaction: Transaction, found: Sequence[Learned]) -> None:
    """Writes what was learned in the place of what was known of the same pairs."""
    if not found:
        return
    kept, rows = pl.concat([_numbers(one) for one in found]), pl.concat([one.rows for one in found])
    transaction.using(kept, f"delete from break_even_kept t using incoming i where {_SAME}")
    transaction.insert("break_even_kept", kept)
    transaction.using(rows, f"delete from break_even t using incoming i where {_SAME} and t.since = i.since")
    transaction.insert("break_even", rows)
    begun = rows.filter(pl.col("since") >= min(one.began for one in found))
    if not begun.is_empty():
        transaction.using(begun, files.question("break_even_outdate"))


def _learned(store: Store, ends: Sequence[datetime], axis: Axis, along: Buckets, told: pl.Series, tuning: Tuning) -> Learned:
    lower_is_better, kept, ended = by_name()[axis.metric].better == "lower", Kept.start((), len(along.names)), []
    for some in near(ends):
        cells = _cells(store, axis, along, some, told)
        kept = break_even_state.joined(kept, _kept(store, axis, along, set(cells["segment"].unique()) - {name for _, name in kept.pairs}))
        for end, block in _blocks(cells, some):
            begins_anew = tuning.is_new(kept.pairs, kept.until, _here(kept, block), end)
            if begins_anew.any():
                ended.append(break_even_rows.ended(kept, axis, along, begins_anew, tuning, end))
                kept = break_even_state.restarted(kept, {kept.pairs[place] for place in np.flatnonzero(begins_anew)}, end)
            kept = break_even_state.advanced(kept, block, along.names, end, lower_is_better=lower_is_better, falls=axis.falls)
            stale = break_even_state.stale(kept, falls=axis.falls)
            pairs = {kept.pairs[place] for place in np.unique(np.nonzero(stale)[0])}
            if pairs:
                ended.append(break_even_rows.rows(kept, axis, along, stale).filter(pl.col("state") == break_even_rows.STALE))
                kept = break_even_state.restarted(kept, pairs, end)
    return Learned(axis, along.names, kept, pl.concat([*ended, break_even_rows.rows(kept, axis, along)]), ends[0])


def near(ends: Sequence[datetime]) -> Iterator[Sequence[datetime]]:
    """The ends in groups that are not far apart: what lies between them is read with them."""
    first = 0
    for place, end in enumerate(ends):
        if end - ends[first] >= BLOCK * BLOCKS_AT_ONCE:
            yield ends[first:place]
            first = place
    yield ends[first:]


def _cells(store: Store, axis: Axis, along: Buckets, ends: Sequence[datetime], told: pl.Series) -> pl.DataFrame:
    """Rows of lever, segment, bucket, arm, block_started_at and SUMS."""
    if axis.key == CONTEXT_TOKENS:
        return _of_contexts(store, axis, along, ends, told)
    asked = {"lever": axis.lever, "metric": axis.metric, "since": ends[0] - BLOCK, "until": ends[-1]}
    name = "break_even_batches" if axis.key == BATCH else "break_even_inputs"
    return store.frame(files.question(name), asked)


def _of_contexts(store: Store, axis: Axis, along: Buckets, ends: Sequence[datetime], told: pl.Series) -> pl.DataFrame:
    """The same from requests, under the segments that are told apart, without their input length."""
    keys = [key for key in segments.keys_for(axis.lever) if key != "input_bucket"]
    since, until = ends[0] - BLOCK, ends[-1]
    asked = {"lever": axis.lever, "since": since, "until": until, "block_s": BLOCK_S}
    with store.snapshot() as seen:
        near = ranged.relation(store, seen, "requests", since, until)
        sums = seen.frame(contexts.statement(near), asked | {"names": list(along.names), "edges": list(along.least[1:])})
    known = told.to_frame().select(pl.col("segment").str.json_path_match(f"$.{key}").alias(key) for key in keys).unique()
    named = known.with_columns(pl.Series("segment", [segments.canonical(row) for row in known.iter_rows(named=True)], pl.String))
    inside = sums.join(named.filter(pl.col("segment") != "{}"), on=keys, nulls_equal=True)
    summed = inside.group_by("segment", "bucket", "arm", "block_started_at", maintain_order=True).agg(pl.col(SUMS).sum())
    return summed.with_columns(pl.lit(axis.lever).alias("lever"))


def _blocks(cells: pl.DataFrame, ends: Sequence[datetime]) -> Iterator[tuple[datetime, pl.DataFrame]]:
    """Each end that has cells, with those of its block."""
    parts = cells.partition_by("block_started_at", as_dict=True)
    for end in ends:
        if (end - BLOCK,) in parts:
            yield end, parts[end - BLOCK,]


def _here(kept: Kept, block: pl.DataFrame) -> Truths:
    """Which pairs have cells in a block."""
    here = set(block.select("lever", "segment").unique().iter_rows())
    return np.array([pair in here for pair in kept.pairs], np.bool_)


def _kept(store: Store, axis: Axis, along: Buckets, named: set[str]) -> Kept:
    """What was kept of these segments; of those of another layout, or other buckets, nothing."""
    asked = {"lever": axis.lever, "key": axis.key, "layout": LAYOUT, "buckets": list(along.names), "segments": sorted(named)}
    rows = store.frame(files.question("break_even_kept"), asked)
    if rows.is_empty():
        return Kept.start((), len(along.names))
    numbers = rows["numbers"].list.to_array(len(rows["numbers"][0])).to_numpy()
    return Kept.of_numbers([*rows.select("lever", "segment").iter_rows()], rows["since"].to_list(), rows["until"].to_list(), numbers)


def _numbers(one: Learned) -> pl.DataFrame:
    levers, named = zip(*one.kept.pairs, strict=True)
    times = {name: pl.Series(when, dtype=pl.Datetime("us", "UTC")) for name, when in (("since", one.kept.since), ("until", one.kept.until))}
    return pl.DataFrame({"lever": levers, "segment": named, **times, "numbers": pl.Series(one.kept.numbers()).arr.to_list()}).with_columns(
        pl.lit(one.axis.key).alias("key"), pl.lit(LAYOUT).alias("layout"), pl.lit(pl.Series([one.names])).first().alias("buckets")
    )
