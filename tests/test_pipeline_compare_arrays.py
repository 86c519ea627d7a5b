"""Effects made as arrays: the same rows as one lever and segment after another gives, whatever is missing in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import compare_reference
import numpy as np
import polars as pl
import pytest

from pipeline import compare
from pipeline.measure import BLOCK_S

UNTIL = datetime(2026, 11, 29, 12, tzinfo=UTC)
KEYS = ("lever", "segment", "metric")
WHOLE = ("arm_a", "arm_b", "since", "until", "blocks", "n_a", "n_b", "method", "basis", "note", "trap", "upstream")
REALS = ("value_a", "value_b", "gain", "gain_low", "gain_high", "coverage", "trapped_share")
METRICS = ("requests", "tpot_s", "ttft_s", "error_rate", "e2e_s", "queue_s", "acceptance_length", "kv_usage", "trap:decode_s_negative")


def cells(seed: int, pairs: int = 12) -> pl.DataFrame:
    """Cells of levers' arms in which much is missing: whole arms, metrics, blocks and values; some keys come in two rows."""
    drawn = np.random.default_rng(seed)
    arms = ["treated", "control", "disabled_in_place"]
    rows: list[dict[str, Any]] = []
    for pair in range(pairs):
        present = [arm for arm in arms if drawn.random() < 0.8]
        empty = {metric for metric in METRICS if drawn.random() < 0.2}
        few, zero = drawn.random() < 0.3, drawn.random() < 0.2
        for arm in present:
            for block in np.flatnonzero(drawn.random(compare.WINDOW_BLOCKS) < drawn.choice([0.05, 0.7, 1.0])).tolist():
                asked = int(drawn.integers(1, 8 if few else 80))
                rows += [
                    _cell(pair, arm, block, metric, asked, drawn, zero and arm == "control") for metric in METRICS if metric not in empty
                ]
    made = pl.DataFrame(rows, schema_overrides={"block_started_at": pl.Datetime("us", "UTC")})
    return pl.concat([made, made.sample(fraction=0.1, seed=seed)]).sample(fraction=1, shuffle=True, seed=seed)


def _cell(pair: int, arm: str, block: int, metric: str, asked: int, drawn: np.random.Generator, is_zero: bool) -> dict[str, Any]:
    n = asked if metric == "requests" else int(drawn.integers(0, asked + 1))
    weight = 0.0 if metric == "requests" or metric.startswith("trap:") else float(n * drawn.choice([1.0, 1.0, 100.0, 0.0]))
    began = UNTIL - timedelta(seconds=BLOCK_S * (compare.WINDOW_BLOCKS - block))
    key = {"lever": ("speculation", "prefix_caching")[pair % 2], "segment": f'{{"model":"m{pair // 3}"}}', "metric": metric, "arm": arm}
    return {**key, "block_started_at": began, "n": n, "num": 0.0 if is_zero else weight * drawn.uniform(0.01, 0.03), "den": weight}


def same(made: pl.DataFrame, reference: pl.DataFrame) -> None:
    one, other = (frame.sort(KEYS) for frame in (made, reference))
    assert one.select(KEYS).equals(other.select(KEYS))
    for name in (column for column in WHOLE if column in other.columns):
        assert one[name].to_list() == other[name].to_list(), name
    for name in (column for column in REALS if column in other.columns):
        assert one[name].is_null().to_list() == other[name].is_null().to_list(), name
        np.testing.assert_allclose(one[name].fill_null(0.0).to_numpy(), other[name].fill_null(0.0).to_numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(1, 9))
def test_arrays_give_the_rows_that_one_pair_after_another_gives(seed: int) -> None:
    found = cells(seed)
    same(compare.effects(found, UNTIL), compare_reference.effects(found, UNTIL))


def test_the_stores_own_numbers_change_nothing() -> None:
    found = cells(9)
    numbered = found.with_columns(
        (pl.col("segment").rank("dense") * 7).cast(pl.Int32).alias("segment_id"),
        (pl.col("metric").rank("dense") * 3).cast(pl.Int16).alias("metric_id"),
        pl.col("lever").rank("dense").cast(pl.Int32).alias("lever_id"),
        pl.col("arm").rank("dense").cast(pl.Int32).alias("arm_id"),
    )
    plain, with_numbers = compare.effects(found, UNTIL), compare.effects(numbered, UNTIL)
    assert with_numbers.sort(KEYS).equals(plain.sort(KEYS))


def test_rows_come_in_one_order_whatever_order_their_cells_came_in() -> None:
    found = cells(10)
    assert compare.effects(found, UNTIL).select(KEYS).equals(compare.effects(found.reverse(), UNTIL).select(KEYS))


def test_without_cells_there_are_no_effects() -> None:
    assert compare.effects(cells(1).clear(), UNTIL).is_empty()
