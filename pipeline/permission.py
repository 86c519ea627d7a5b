"""Where each lever's control was, replica by replica and block by block, in; whether its contrast may decide in each pool, out.

A pool is a judging segment without the keys that requests of one replica differ in: its replicas are the same, whatever they are asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.inference import rotation
from pipeline.inference.rotation import Replicas, Seats, Seen
from pipeline.measure import BLOCK_S

BLOCK = timedelta(seconds=BLOCK_S)
CYCLE_BLOCKS = 86_400 // BLOCK_S
_RAW = ("tpot_s", "ttft_s", "error_rate", "e2e_s")
SUMS = tuple(f"{metric}_{part}" for metric in _RAW for part in ("num", "den"))
SPREAD = ("net_itl_s", *_RAW)
"""Metrics of which the spread between treated's replicas is told, so that a null can be widened by it."""
COUNTS = ("treated_n", "control_n", "stay_blocks", "side")
_PLACE = ("lever", "pool", "replica")
_SCHEMA = {
    "lever": pl.String, "pool": pl.String, "spread": pl.String, "permission": pl.String, "margin": pl.Float64,
    "permission_reason": pl.String,
}  # fmt: skip
NOTHING = pl.DataFrame(schema={**_SCHEMA, "until": pl.Datetime("us", "UTC")})
_TOLD = ("permission", "margin", "permission_reason")

Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """Rows of `replica_blocks` as arrays (blocks, replicas), from the block `since` on; replicas of a pool stand together.

    `rows` are the rows with the places of their block and replica, `counts` the arrays of COUNTS, `first` the place of each pool's first
    replica.
    """

    since: datetime
    rows: pl.DataFrame
    counts: tuple[Reals, ...]
    pools: tuple[tuple[str, str], ...]
    first: Whole

    @cached_property
    def sums(self) -> dict[str, Reals]:
        """Treated's sums, arrays as those of `counts`."""
        return dict(zip(SUMS, _arrays(self.rows, SUMS, self.counts[0].shape), strict=True))

    def place(self, block: datetime) -> int:
        """The place of a block."""
        return (block - self.since) // BLOCK

    def told(self, starts: Sequence[datetime]) -> pl.DataFrame:
        """The rows of some blocks as they are kept."""
        rows = self.rows.filter(pl.col("block_started_at").is_in(starts))
        at = (rows["row"].to_numpy(), rows["column"].to_numpy())
        known = [pl.Series(name, array[at]) for name, array in zip(COUNTS[2:], self.counts[2:], strict=True)]
        return rows.with_columns(known).drop("row", "column")


def grid(rows: pl.DataFrame, since: datetime, blocks: int) -> Grid:
    """The grid of the rows of so many blocks from `since` on."""
    replicas = rows.select(_PLACE).unique().sort(_PLACE).with_row_index("column")
    block = ((pl.col("block_started_at") - since).dt.total_seconds() // BLOCK_S).alias("row")
    placed = rows.join(replicas, on=_PLACE, nulls_equal=True).with_columns(block)
    shape = (blocks, len(replicas))
    pools = replicas.group_by("lever", "pool", maintain_order=True).agg(pl.col("column").min())
    named = tuple(pools.select("lever", "pool").iter_rows())
    return Grid(since, placed, tuple(_arrays(placed, COUNTS, shape)), named, pools["column"].cast(pl.Int64).to_numpy())


def named(cells: pl.DataFrame) -> pl.DataFrame:
    """Rows of a block as it was measured, without those of requests whose replica nobody named, where a pool has others."""
    is_named = pl.col("replica").is_not_null()
    alone = ~is_named.any().over("lever", "pool", "block_started_at")
    return cells.filter(is_named | alone).with_columns(pl.lit(0.0).alias("stay_blocks"), pl.lit(0.0).alias("side"))


def walked(kept: Grid, first: int) -> Grid:
    """The grid with the stays of the blocks from this place on worked out, going on from what the rows before them say."""
    treated_n, control_n, stay, side = (array.copy() for array in kept.counts)
    share = rotation.shares(control_n, kept.first) if kept.pools else control_n
    seats = _before(kept, first, share)
    for place in range(first, len(stay)):
        seats = rotation.step(seats, treated_n[place], control_n[place], share[place])
        stay[place], side[place] = seats.stay, seats.side
    return Grid(kept.since, kept.rows, (treated_n, control_n, stay, side), kept.pools, kept.first)


def permissions(kept: Grid, ended_at: datetime) -> pl.DataFrame:
    """Whether contrasts may decide at a block's end, by the cycle of blocks before it: one row per lever, pool and `spread`, with `until`.

    `spread` is a metric of SPREAD, and empty for all others; `margin` is null where nothing may be decided.
    """
    last = kept.place(ended_at - BLOCK)
    window = slice(max(last + 1 - CYCLE_BLOCKS, 0), last + 1)
    treated_n, control_n, stay, _ = (array[window] for array in kept.counts)
    seen = rotation.observed(Seen(treated_n, control_n, stay, kept.first, float(BLOCK_S))) if kept.pools else []
    by_pool = enumerate(zip(kept.pools, seen, strict=True))
    rows = [(*pool, *row) for place, (pool, one) in by_pool for row in _told(kept, window, place, one)]
    said = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return said.with_columns(pl.lit(ended_at, pl.Datetime("us", "UTC")).alias("until"))


def with_permission(made: pl.DataFrame, found: pl.DataFrame, pools: pl.DataFrame) -> pl.DataFrame:
    """Effects with whether they may decide; null where there is no control arm. `pools` names the pool of each segment."""
    spread = pl.when(pl.col("metric").is_in(SPREAD)).then("metric").otherwise(pl.lit("")).alias("spread")
    keyed = made.with_columns(spread).join(pools, on="segment", how="left", maintain_order="left")
    told = keyed.join(found, on=["until", "lever", "pool", "spread"], how="left", maintain_order="left").drop("pool", "spread")
    return told.with_columns(pl.when(pl.col("basis") == "control").then(name).alias(name) for name in _TOLD)


def _told(kept: Grid, window: slice, place: int, seen: Replicas) -> Iterator[tuple[str, str, float | None, str]]:
    """The rows of one pool: the spread between its replicas matters only where nothing else lets it decide."""
    plain = rotation.permission(seen)
    sds = _spreads(kept, window, place) if plain.basis == "refused" and seen.at_once else {}
    for metric in ("", *SPREAD):
        one = rotation.permission(seen, replica_sd=sds[metric]) if metric in sds else plain
        yield metric, one.basis, one.margin if one.decides else None, one.reason


def _spreads(kept: Grid, window: slice, place: int) -> dict[str, float]:
    """The relative sd between treated's replicas in a pool, by metric. For net ITL a later first token counts as if charged."""
    after = kept.first[place + 1] if place + 1 < len(kept.first) else kept.counts[0].shape[1]
    sums = {name: array[window, kept.first[place] : after] for name, array in kept.sums.items()}
    own = {name: (sums[f"{name}_num"], sums[f"{name}_den"]) for name in _RAW}
    (busy, tokens), first = own["tpot_s"], own["ttft_s"]
    late_s = _ratio(*first) - _pooled(*first)
    own["net_itl_s"] = (busy + first[1] * np.nan_to_num(late_s), tokens)
    return {metric: rotation.replica_sd(_over(_ratio(*own[metric]), _pooled(*own[metric]))) for metric in SPREAD}


def _ratio(num: Reals, den: Reals) -> Reals:
    return np.asarray(np.divide(num, den, out=np.full(num.shape, np.nan), where=den > 0))


def _pooled(num: Reals, den: Reals) -> Reals:
    return _ratio(num.sum(axis=1, keepdims=True), den.sum(axis=1, keepdims=True))


def _over(value: Reals, level: Reals) -> Reals:
    known = np.broadcast_to(level > 0, value.shape)
    return np.asarray(np.divide(value, level, out=np.full(value.shape, np.nan), where=known))


def _before(kept: Grid, first: int, share: Reals) -> Seats:
    """Where each replica was before a block."""
    treated_n, control_n, stay, side = (array[:first] for array in kept.counts)
    seen = (treated_n > 0) | (control_n > 0)
    if not first:
        return Seats.start(kept.counts[0].shape[1])
    back = seen[::-1].argmax(axis=0)
    known, at = seen.any(axis=0), first - 1 - back
    columns = np.arange(seen.shape[1])
    missed = np.where(np.arange(first)[:, None] > at, share[:first], 0.0).sum(axis=0)
    return Seats(*(np.where(known, one, 0.0) for one in (stay[at, columns], side[at, columns], back.astype(np.float64), missed)))


def _arrays(placed: pl.DataFrame, names: tuple[str, ...], shape: tuple[int, int]) -> Iterator[Reals]:
    row, column = (placed[name].cast(pl.Int64).to_numpy() for name in ("row", "column"))
    for name in names:
        array = np.zeros(shape)
        array[row, column] = placed[name].cast(pl.Float64).to_numpy()
        yield array
