"""Requests in, how much of what, where and when each of them was exposed to what its replica counts out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from pipeline.counters import Counter, Ints, Reals, Windows

MOMENT_US = 1000  # what takes no time is looked at for this long


@dataclass(frozen=True, slots=True)
class Exposed:
    """Requests in order of place and start: their row numbers, exposure in tokens, and from when to when they were exposed."""

    numbers: Ints
    places: Ints
    tokens: Reals
    since_us: Ints
    until_us: Ints
    windows: dict[int, Windows] = field(default_factory=dict)

    def grown(self, ways: list[Counter]) -> Reals:
        """How far a signal counted meanwhile, over all ways on which a replica's ranks are sampled; NaN where that is unknown."""
        total = np.zeros(len(self.places))
        for number, way in enumerate(ways):
            if id(way.grid) not in self.windows:
                self.windows[id(way.grid)] = way.grid.enclosing(self.places, self.since_us, self.until_us)
            grown = way.grown(self.windows[id(way.grid)])
            total = total + (np.where(np.isin(self.places, way.grid.places), grown, 0.0) if number else grown)
        return total


def prompts(requests: pl.DataFrame, replicas: pl.Series) -> Exposed:
    """Prompts, each at the moment of its admission where it was prefilled."""
    admitted = pl.col("started_at").dt.epoch("us") + _us("queue_s")
    return _rows(requests, replicas, pl.coalesce("prefill_replica", "replica"), pl.col("prompt_tokens"), admitted, admitted)


def between_samples(rows: Exposed, counter: Counter) -> Exposed:
    """The same, exposed for the whole interval between two samples that holds each one's moment."""
    since, until = counter.grid.around(rows.places, rows.since_us)
    return replace(rows, since_us=since, until_us=until, windows={})


def decodes(requests: pl.DataFrame, replicas: pl.Series) -> Exposed:
    """Output tokens after the first, while they were decoded; where the first token's time is unknown, from the start on."""
    start, end = pl.col("started_at").dt.epoch("us"), pl.col("ended_at").dt.epoch("us")
    since = pl.min_horizontal(start + _us("ttft_s"), end)
    return _rows(requests, replicas, pl.col("replica"), pl.col("output_tokens") - 1, since, pl.max_horizontal(end, since + MOMENT_US))


def _us(column: str) -> pl.Expr:
    return (pl.col(column).fill_null(0.0).clip(0.0, 86_400.0) * 1e6).cast(pl.Int64)


def _rows(requests: pl.DataFrame, replicas: pl.Series, replica: pl.Expr, tokens: pl.Expr, since: pl.Expr, until: pl.Expr) -> Exposed:
    place = replica.replace_strict(replicas, pl.int_range(len(replicas), eager=True), default=None, return_dtype=pl.Int64)
    rows = requests.with_row_index("row").select(
        pl.col("row").cast(pl.Int64),
        place.alias("place"),
        tokens.cast(pl.Float64).alias("tokens"),
        since.alias("since"),
        until.alias("until"),
    )
    rows = rows.filter(pl.col("place").is_not_null() & (pl.col("tokens") >= 0)).sort("place", "since", "row")
    number, place_number, exposure, start, end = (rows[name].to_numpy() for name in ("row", "place", "tokens", "since", "until"))
    return Exposed(number, place_number, exposure, start, end)
