"""Effects from cells: paired inside a block, honest about what is missing."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import compare, window_contrasts
from pipeline.measure import BLOCK_S

UNTIL = datetime(2026, 11, 29, 12, tzinfo=UTC)


def cell(arm: str, block: int, metric: str, n: int, num: float, den: float, segment: str = '{"model":"m"}') -> dict[str, Any]:
    began = UNTIL - timedelta(seconds=BLOCK_S * (compare.WINDOW_BLOCKS - block))
    return {
        "lever": "speculation",
        "segment": segment,
        "metric": metric,
        "arm": arm,
        "block_started_at": began,
        "n": n,
        "num": num,
        "den": den,
    }


def block_of(arm: str, block: int, tpot_s: float, ttft_s: float = 0.2, n: int = 50, known: int | None = None) -> list[dict[str, Any]]:
    counted = n if known is None else known
    return [
        cell(arm, block, "requests", n, 0.0, 0.0),
        cell(arm, block, "tpot_s", counted, tpot_s * counted * 100, counted * 100.0),
        cell(arm, block, "ttft_s", n, ttft_s * n, float(n)),
        cell(arm, block, "error_rate", n, 0.0, float(n)),
    ]


def effects(cells: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    frame = pl.DataFrame(cells, schema_overrides={"block_started_at": pl.Datetime("us", "UTC")})
    return {row["metric"]: row for row in compare.effects(frame, UNTIL).to_dicts()}


def test_a_faster_treated_arm_has_a_positive_gain_with_an_interval_around_it() -> None:
    rng = np.random.default_rng(1)
    cells = [
        c
        for b in range(24)
        for c in (*block_of("treated", b, 0.008 + rng.normal(0, 1e-4)), *block_of("control", b, 0.010 + rng.normal(0, 1e-4)))
    ]
    row = effects(cells)["net_itl_s"]
    assert row["gain"] == pytest.approx(0.2, abs=0.01)
    assert row["gain_low"] < row["gain"] < row["gain_high"]
    assert row["gain_low"] > 0.15
    assert (row["blocks"], row["n_a"], row["n_b"], row["basis"], row["coverage"]) == (24, 1200, 1200, "control", 1.0)


def test_ttft_that_the_lever_adds_is_charged_to_net_itl_and_not_to_tpot() -> None:
    cells = [c for b in range(24) for c in (*block_of("treated", b, 0.010, ttft_s=0.3), *block_of("control", b, 0.010, ttft_s=0.2))]
    rows = effects(cells)
    assert rows["tpot_s"]["gain"] == pytest.approx(0.0)
    assert rows["net_itl_s"]["value_a"] == pytest.approx(0.011)
    assert rows["net_itl_s"]["gain"] == pytest.approx(-0.1)


def test_ttft_that_the_lever_saves_is_no_credit_to_net_itl() -> None:
    cells = [c for b in range(24) for c in (*block_of("treated", b, 0.010, ttft_s=0.1), *block_of("control", b, 0.010, ttft_s=0.2))]
    assert effects(cells)["net_itl_s"]["gain"] == pytest.approx(0.0)


def test_arms_are_compared_only_inside_blocks_that_hold_both() -> None:
    both = [c for b in range(12) for c in (*block_of("treated", b, 0.010), *block_of("control", b, 0.010))]
    treated_alone = [c for b in range(12, 24) for c in block_of("treated", b, 0.050)]
    row = effects([*both, *treated_alone])["net_itl_s"]
    assert (row["blocks"], row["gain"]) == (12, pytest.approx(0.0))


def test_without_control_there_is_no_gain_and_the_note_says_so() -> None:
    row = effects([c for b in range(24) for c in block_of("treated", b, 0.010)])["net_itl_s"]
    assert (row["gain"], row["arm_b"], row["basis"]) == (None, None, "none")
    assert "no control" in row["note"]
    assert row["value_a"] == pytest.approx(0.010)


def test_too_few_requests_in_an_arm_are_no_block() -> None:
    cells = [c for b in range(24) for c in (*block_of("treated", b, 0.010), *block_of("control", b, 0.010, n=4))]
    row = effects(cells)["net_itl_s"]
    assert (row["blocks"], row["gain"]) == (0, None)
    assert "at most 4" in row["note"]


def test_coverage_is_the_smaller_arms_share_of_requests_with_the_input() -> None:
    cells = [c for b in range(24) for c in (*block_of("treated", b, 0.010), *block_of("control", b, 0.010, known=40))]
    assert effects(cells)["net_itl_s"]["coverage"] == pytest.approx(0.8)


def test_a_premise_is_the_treated_arms_alone() -> None:
    cells = [*block_of("treated", 3, 0.01), cell("treated", 3, "draft_acceptance", 50, 300.0, 600.0)]
    row = effects(cells)["draft_acceptance"]
    assert (row["value_a"], row["arm_b"], row["gain"], row["basis"]) == (0.5, None, None, "premise")


def test_control_alone_is_no_effect() -> None:
    frame = pl.DataFrame(block_of("control", 1, 0.01), schema_overrides={"block_started_at": pl.Datetime("us", "UTC")})
    assert compare.effects(frame, UNTIL).is_empty()


@pytest.mark.parametrize(("n", "critical"), [(10, 8.5), (20, 3.75), (50, 3.18), (288, 3.16)])
def test_the_anytime_valid_radius_has_the_published_critical_values(n: int, critical: float) -> None:
    assert window_contrasts.avt_radius(n, variance=1.0) * math.sqrt(n) == pytest.approx(critical, rel=0.01)


def test_two_values_say_nothing() -> None:
    assert math.isinf(window_contrasts.avt_radius(2, 1.0))
