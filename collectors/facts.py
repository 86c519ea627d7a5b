"""Replicas and start times of a batch's spans in, what registry, defaults and links say of each span out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from collectors.columns import Ints
from collectors.dialect_parts import Deployment
from collectors.readings import Reals
from collectors.registry import Registry, Value, checked
from collectors.signals import SIGNALS

Column = pl.Series | Reals
REGISTRY_RANK, DEFAULT_RANK = 1, 3  # a span's own word has rank 0, its resource's 2


@dataclass(frozen=True, slots=True)
class Link:
    """What one link of a topology can carry, in bytes per second and one direction; an empty name stands for any."""

    topology: str
    hardware: str
    peak_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Said:
    """What is known of a batch's spans beside what they say: signals by name, one value a span; levers and arms as rows.

    `dialect` is what registry and defaults force. `levers` and `arms` have the columns span (its number), key, value, rank.
    """

    registry: Mapping[str, Column] = field(default_factory=dict)
    defaults: Mapping[str, Column] = field(default_factory=dict)
    dialect: tuple[pl.Series | None, pl.Series | None] = (None, None)
    levers: pl.DataFrame | None = None
    arms: pl.DataFrame | None = None


def defaults(given: Mapping[str, object], facts: Deployment) -> dict[str, Value]:
    """What `[defaults]` says, keys without prefix; tables in it are read as names with dots.

    Raises:
        RegistryError: a key or a value that is none.
    """
    found: dict[str, Value] = {}
    for key, value in _flat("", given):
        short, told = checked(key, value, facts, f"[defaults] {key}")
        found[short] = told
    return found


def said(registry: Registry | None, general: Mapping[str, Value], replicas: pl.Series, starts: Ints) -> Said | None:
    """What registry and defaults say of each span, by its replica and its start; None where neither says anything."""
    known = {} if registry is None else _valid(registry, replicas, starts)
    if not known and not general:
        return None
    everywhere = {key: _constant(value, len(starts)) for key, value in general.items()}
    return Said(
        {key: column for key, column in known.items() if key in SIGNALS},
        {key: column for key, column in everywhere.items() if key in SIGNALS},
        (_text(known.get("dialect")), _text(everywhere.get("dialect"))),
        _marks("lever.", known, everywhere),
        _marks("arm.", known, everywhere),
    )


def with_links(signals: pl.DataFrame, links: Sequence[Link]) -> pl.DataFrame:
    """Fills link_peak_bytes_per_s where nothing else said it; the link that names most of topology and hardware wins."""
    if not links or not signals["link_peak_bytes_per_s"].null_count():
        return signals
    pairs = signals.select("topology", "hardware").unique()
    peaks = [_peak(links, *pair) for pair in pairs.iter_rows()]
    found = signals.select("topology", "hardware").join(
        pairs.with_columns(pl.Series("peak", peaks, dtype=pl.Float64)),
        on=["topology", "hardware"], how="left", nulls_equal=True, maintain_order="left",
    )  # fmt: skip
    return signals.with_columns(signals["link_peak_bytes_per_s"].fill_null(found["peak"]))


def _peak(links: Sequence[Link], topology: str | None, hardware: str | None) -> float | None:
    fitting = [link for link in links if link.topology in ("", topology) and link.hardware in ("", hardware)]
    best = max(fitting, key=lambda link: (bool(link.topology), bool(link.hardware)), default=None)
    return None if best is None else best.peak_bytes_per_s


def _valid(registry: Registry, replicas: pl.Series, starts: Ints) -> dict[str, Column]:
    """The rows that are valid at each span's start, one column per key; without a column where no replica is listed."""
    listed = registry.timeline["replica"].unique()
    if not replicas.unique().is_in(listed.implode()).any():
        return {}
    spans = pl.DataFrame({"replica": replicas, "start_ns": starts}).with_row_index("span").sort("start_ns")
    found = spans.join_asof(registry.timeline, left_on="start_ns", right_on="since_ns", by="replica", check_sortedness=False).sort("span")
    return {key: _column(found[key]) for key in registry.keys if found[key].null_count() < len(found)}


def _column(values: pl.Series) -> Column:
    if values.dtype == pl.String:
        return values
    numbers: Reals = values.fill_null(np.nan).to_numpy()
    return numbers


def _constant(value: Value, count: int) -> Column:
    return pl.Series([value], dtype=pl.String).new_from_index(0, count) if isinstance(value, str) else np.full(count, value)


def _text(column: Column | None) -> pl.Series | None:
    return column if isinstance(column, pl.Series) else None


def _marks(prefix: str, known: Mapping[str, Column], everywhere: Mapping[str, Column]) -> pl.DataFrame | None:
    rows = [
        pl.DataFrame({"value": column})
        .with_row_index("span")
        .drop_nulls("value")
        .select(pl.col("span").cast(pl.Int64), pl.lit(key.removeprefix(prefix)).alias("key"), "value", pl.lit(rank).alias("rank"))
        for rank, columns in ((REGISTRY_RANK, known), (DEFAULT_RANK, everywhere))
        for key, column in columns.items()
        if key.startswith(prefix)
    ]
    return pl.concat(rows) if rows else None


def _flat(prefix: str, given: Mapping[str, object]) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for key, value in given.items():
        found += _flat(f"{prefix}{key}.", value) if isinstance(value, Mapping) else [(f"{prefix}{key}", value)]
    return found
