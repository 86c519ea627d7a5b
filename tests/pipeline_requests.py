"""Made-up rows of `requests` for property tests: every column that a metric reads, known or not, from 0 to what hardly fits."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipeline.metrics import METRICS
from queries.metric_sql import VIRTUAL_COLUMNS, read_columns

BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)
KEYS = ("outcome", "replica")
LIST = "accepted_by_position"
REALS = tuple(
    sorted(
        {name for metric in METRICS for name in read_columns(metric) if name.endswith(("_s", "usage", "fraction"))} - set(VIRTUAL_COLUMNS)
    )
)
WHOLES = tuple(sorted({name for metric in METRICS for name in read_columns(metric)} - {*REALS, *KEYS, LIST, *VIRTUAL_COLUMNS}))
MOST = 2**63 - 1

counts = st.one_of(st.none(), st.integers(0, 5000), st.sampled_from([0, 1, 2**53 + 1, MOST]))
times = st.one_of(st.none(), st.just(0.0), st.floats(1e-6, 1e4))
lists = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 5000)), max_size=7))


@st.composite
def request_rows(draw: st.DrawFn) -> dict[str, Any]:
    """One request: no part of it agrees with another, as senders have it."""
    return {
        **{name: draw(counts) for name in WHOLES},
        **{name: draw(times) for name in REALS},
        LIST: draw(lists),
        "outcome": draw(st.sampled_from(["ok", "error", "aborted", "unknown"])),
        "replica": draw(st.sampled_from(["a", "b", None])),
        "model": draw(st.sampled_from(["k", "l", "m", "n"])),
        "arm": draw(st.sampled_from(["treated", "control"])),
        "after_s": draw(st.integers(0, 899)),
    }


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows as `requests` has them, maps as lists of key and value; what a row does not say is not known."""
    kinds = {**dict.fromkeys(WHOLES, pl.Int64), **dict.fromkeys(REALS, pl.Float64), LIST: pl.List(pl.Int64)}
    kinds |= dict.fromkeys(("outcome", "replica", "model", "arm"), pl.String) | {"after_s": pl.Int64}
    frame = pl.DataFrame([{name: row.get(name) for name in kinds} for row in rows], schema=kinds)
    pair = pl.struct(pl.lit("speculation").alias("key"), pl.col("arm").alias("value"))
    started = (pl.lit(BEGAN) + pl.duration(seconds="after_s")).cast(pl.Datetime("us", "UTC"))
    return frame.with_columns(
        started.alias("started_at"),
        (started + pl.duration(seconds=10)).alias("ended_at"),
        pl.concat_list(pair).alias("arms"),
        pl.lit(None, pl.List(pl.Struct({"key": pl.String, "value": pl.String}))).alias("levers"),
        *(pl.lit(None, pl.String).alias(key) for key in ("hardware", "topology", "input_bucket", "temperature_bucket", "batch_bucket")),
    )


def stored(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows for the table `requests_hot`."""
    named = frame.drop("arm", "after_s", "arms", "levers").with_row_index("request_id")
    return named.with_columns(pl.col("request_id").cast(pl.String), pl.lit("t").alias("trace_id"))
