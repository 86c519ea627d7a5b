"""Net ITL charges the treated arm with first tokens that come later: of a lever that adds none, chance is not charged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from pipeline.evidence import advanced
from pipeline.evidence_families import FAMILIES
from pipeline.evidence_streams import Streams
from pipeline.measure import REQUESTS

AT = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
SEGMENTS, BLOCKS, N = 20, 60, 120
TOKENS, TPOT_S, TTFT_S = 100.0, 0.02, 1.5


def block(rng: np.random.Generator, ttft_factor: float) -> pl.DataFrame:
    """Cells of segments whose first tokens take nearly as long as their answers, and scatter more from block to block."""
    rows = []
    for segment in range(SEGMENTS):
        for arm, factor in (("treated", ttft_factor), ("control", 1.0)):
            tpot_s, ttft_s = TPOT_S * rng.normal(1, 0.02), TTFT_S * factor * rng.normal(1, 0.05)
            busy_s, tokens = TOKENS * tpot_s, TOKENS
            rows += [
                (f"s{segment}", arm, REQUESTS, N, 0.0, 0.0, 0.0, 0.0, 0.0),
                (f"s{segment}", arm, "tpot_s", N, N * busy_s, N * tokens, N * busy_s**2, N * tokens**2, N * busy_s * tokens),
                (f"s{segment}", arm, "ttft_s", N, N * ttft_s, float(N), N * ttft_s**2, float(N), N * ttft_s),
            ]
    names = ["segment", "arm", "metric", "n", "num", "den", "num_sq", "den_sq", "num_den"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(pl.lit("speculation").alias("lever"))


def means(ttft_factor: float, metric: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Each segment's mean contrast, positive where treated is worse."""
    rng, streams = np.random.default_rng(5), Streams.start(FAMILIES[0])
    for number in range(BLOCKS):
        streams, _ = advanced(streams, block(rng, ttft_factor), AT + BLOCK * (number + 1))
    running, metrics = streams.running, streams.family.metrics
    mean = running.s / running.n
    return np.asarray(mean[metrics.index(metric) :: len(metrics)])


def test_a_lever_that_adds_no_time_to_the_first_token_is_not_charged_with_chance() -> None:
    found = means(1.0, "net_itl_s")
    assert abs(found.mean()) < 3 * found.std(ddof=1) / SEGMENTS**0.5


def test_what_a_lever_adds_to_the_first_token_is_charged_in_full() -> None:
    charged_s = TPOT_S + 0.3 * TTFT_S / TOKENS
    relative = (charged_s - TPOT_S) / ((charged_s + TPOT_S) / 2)
    assert means(1.3, "net_itl_s").mean() == pytest.approx(relative, rel=0.15)
    assert abs(means(1.3, "tpot_s").mean()) < 0.01


def test_first_tokens_that_come_sooner_are_no_credit() -> None:
    assert abs(means(0.5, "net_itl_s").mean()) < 0.01
