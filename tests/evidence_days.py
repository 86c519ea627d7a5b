"""Made-up days of blocks: both arms' sums, whose levels wander more slowly the closer `rho` is to 1."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline.evidence_families import ARMS, SUMS

BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
LEVER, SEGMENT = "speculation", '{"model":"m"}'
COUNTS = np.array([400.0, 120.0])
LEVELS_S = {"tpot_s": (0.02, 100.0), "ttft_s": (0.3, 1.0)}

Reals = npt.NDArray[np.float64]


def days(blocks: int, rho: float, seed: int, gain: float = 0.1, pairs: int = 1, sd: float = 0.05) -> Reals:
    """(pairs, blocks, requests and LEVELS_S, arms, SUMS): an arm's level wanders by `sd`, a block's like the next one's by `rho`."""
    rng = np.random.default_rng(seed)
    made = np.zeros((pairs, blocks, 1 + len(LEVELS_S), len(ARMS), len(SUMS)))
    made[:, :, 0, :, 0] = COUNTS
    for place, (level_s, each) in enumerate(LEVELS_S.values(), 1):
        drift = rng.normal(0, sd, (pairs, len(ARMS)))
        for block in range(blocks):
            drift = rho * drift + np.sqrt(1 - rho**2) * rng.normal(0, sd, drift.shape)
            mean = level_s * np.array([1 - gain, 1.0]) * np.exp(drift) * (1 + rng.normal(0, 0.3, drift.shape) / np.sqrt(COUNTS))
            squared = 1.09 * (mean * each) ** 2
            told = (np.ones_like(mean), mean * each, np.full_like(mean, each), squared, np.full_like(mean, each**2), mean * each**2)
            made[:, block, place] = np.stack(told, axis=-1) * COUNTS[:, None]
    return made


def cells(made: Reals, first: int = 0) -> pl.DataFrame:
    """The cells of one pair's blocks, the first of them that many after BEGAN."""
    rows = [
        {"block_started_at": BEGAN + (first + block) * BLOCK, "metric": metric, "arm": arm, **dict(zip(SUMS, told, strict=True))}
        for block, metrics in enumerate(made)
        for metric, arms in zip(("requests", *LEVELS_S), metrics.tolist(), strict=True)
        for arm, told in zip(ARMS, arms, strict=True)
    ]
    return pl.DataFrame(rows).with_columns(pl.lit(LEVER).alias("lever"), pl.lit(SEGMENT).alias("segment"))
