"""Numbers kept of pairs of lever and segment in, rows of a state table out: a pair that has not been seen for a week is let go."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

LET_GO = timedelta(days=7)


def rows(pairs: Sequence[tuple[str, str]], until: Sequence[datetime], numbers: npt.NDArray[np.float64], **more: int | str) -> pl.DataFrame:
    """One row per pair: lever, segment, block_ended_at, numbers, and what `more` names, the same in every row. A pair at least."""
    levers, segments = zip(*pairs, strict=True)
    ended_at = pl.Series(until, dtype=pl.Datetime("us", "UTC"))
    frame = pl.DataFrame(
        {"lever": levers, "segment": segments, "block_ended_at": ended_at, "numbers": pl.Series(numbers).cast(pl.List(pl.Float64))}
    )
    return seen(frame, "block_ended_at").with_columns(pl.lit(value).alias(name) for name, value in more.items())


def seen(frame: pl.DataFrame, ended_at: str) -> pl.DataFrame:
    """The rows that are at most a week older than the newest: what models came and went does not divide what the others may err."""
    return frame.filter(pl.col(ended_at) > pl.col(ended_at).max() - LET_GO)
