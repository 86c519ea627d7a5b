"""A rollout's replicas are measured by their own level before it, and what is uncertain of a level is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from pipeline.natural_levels import leveled

SINCE = datetime(2026, 11, 29, 8, tzinfo=UTC)
OWN = np.array([1.1, 0.9, 1.05, 0.95])


def rows(before: int, during: int, noise: float) -> pl.DataFrame:
    """Four replicas of one segment and metric, 200 requests a block; the first has the new setting after `before` blocks."""
    drawn = np.random.default_rng(7)
    blocks = before + during
    mean = 0.02 * OWN[:, None] * np.exp(drawn.normal(0, 0.1, blocks)) * (1 + noise * drawn.normal(0, 1, (4, blocks)))
    made = [
        {"replica": f"r{own}", "block": block, "num": 200 * mean[own, block], "side": ("without", "treated")[own == 0 and block >= before]}
        for own in range(4)
        for block in range(blocks)
    ]
    frame = pl.DataFrame(made).with_columns(pl.lit("{}").alias("segment"), pl.lit("tpot_s").alias("metric"), pl.lit(200.0).alias("den"))
    return frame.with_columns((pl.lit(SINCE) + pl.duration(minutes=5 * pl.col("block"))).alias("block_started_at")).with_columns(
        pl.col("den").alias("n"), (pl.col("num") ** 2 / 200).alias("num_sq"), pl.col("num").alias("num_den"), pl.lit(200.0).alias("den_sq")
    )


def test_replicas_of_a_rollout_are_measured_by_their_own_level_before() -> None:
    found, errors = leveled(rows(24, 16, noise=0.03))
    ratio = found.group_by("replica").agg((pl.col("num").sum() / pl.col("den").sum()).alias("ratio"))["ratio"].to_numpy()
    np.testing.assert_allclose(ratio / ratio.mean(), 1, atol=0.02)
    assert found["block_started_at"].min() == SINCE + timedelta(minutes=5 * 24)
    assert errors["error"].item() == pytest.approx(0.03 / np.sqrt(24) * np.sqrt(1 + 1 / 3), rel=0.4)


def test_replicas_with_too_few_blocks_before_count_as_none() -> None:
    found, errors = leveled(rows(11, 16, noise=0.0))
    assert found.is_empty()
    assert errors["error"].item() == np.inf
