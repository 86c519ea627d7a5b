"""Settled requests in, how many of a cell's requests fell into each trap out: pseudo-metrics `trap:<name>`, summed as others are."""

from __future__ import annotations

import polars as pl

from pipeline.cell_sums import SUMS
from pipeline.guard_counters import SERIES_TRAPS
from pipeline.impossible import FLAG, TRAPS
from pipeline.traps import SeriesTrap, Trap

_ALL: tuple[Trap | SeriesTrap, ...] = (*TRAPS, *SERIES_TRAPS)
_TRAPS = tuple(trap for trap in _ALL if trap.severity != "noted")
_NAMES = frozenset(f"{FLAG}{trap.name}" for trap in _TRAPS)


def found(requests: pl.DataFrame) -> list[str]:
    """The pseudo-metrics of the traps that any of the requests fell into."""
    if "flags" not in requests.columns:
        return []
    flags = requests.select(pl.col("flags").filter(pl.col("flags").list.len() > 0).explode()).to_series().unique()
    return sorted(set(flags.to_list()) & _NAMES)


def trapped(requests: pl.DataFrame, groups: pl.Series, cells: pl.DataFrame, kind: pl.Enum) -> pl.DataFrame:
    """One row per cell and trap that some request of it fell into, with the sums of a cell: `n` of them are known and count, the rest is 0.

    `groups` has the number of each request's group; `cells` the cells of each group, under the same name. `kind` is the type of `metric`.
    """
    flags = requests["flags"] if "flags" in requests.columns else pl.Series([None] * len(requests), dtype=pl.List(pl.String))
    marked = pl.DataFrame([groups, flags.alias("metric")]).filter(pl.col("metric").list.len() > 0)
    told = marked.explode("metric").filter(pl.col("metric").is_in(list(_NAMES))).join(cells, on=groups.name)
    counted = told.group_by("cell", "metric").agg(pl.len().cast(pl.Int64).alias("n"))
    sums = [pl.col("n").alias(name) if name in ("known", "n") else pl.lit(0.0).alias(name) for name in SUMS]
    return counted.select("cell", pl.col("metric").cast(kind), *sums)


def touching(columns: frozenset[str]) -> tuple[str, ...]:
    """The pseudo-metrics of the traps that spoil any of these columns."""
    return tuple(f"{FLAG}{trap.name}" for trap in _TRAPS if not columns.isdisjoint(trap.columns))


def upstreams() -> dict[str, str | None]:
    """The upstream issue of each trap that freezes what depends on it."""
    return {trap.name: trap.upstream or None for trap in _TRAPS}
