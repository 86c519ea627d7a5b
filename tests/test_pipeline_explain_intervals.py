"""Intervals of what tells two sets apart: blocks are the unit, and sets of different times are said to be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from leverwatch.cli.main import main
from pipeline.explain import ranked
from pipeline.explain_intervals import with_intervals
from queries import explain_blocks
from queries.explain import comparison
from queries.store import Store

START = datetime(2026, 11, 29, tzinfo=UTC)
BLOCKS, EACH = 96, 40


def requests(seed: int, change: float = 1.0) -> pl.DataFrame:
    """Eight hours of requests, each block with a level of its own; those of lever `on` take `change` times as long."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(BLOCKS), EACH)
    count = len(block)
    level = rng.lognormal(0, 0.2, BLOCKS)[block]
    is_on = rng.random(count) < 0.5
    ttft_s = 0.3 * level * np.where(is_on, change, 1.0) * rng.lognormal(0, 0.3, count)
    tokens = rng.integers(2, 400, count)
    started = pl.Series(block * 300.0 + rng.random(count) * 299)
    return pl.DataFrame(
        {
            "request_id": [f"r{number}" for number in range(count)],
            "trace_id": ["0"] * count,
            "started_at": pl.Series([START]).new_from_index(0, count) + (started * 1e6).cast(pl.Int64).cast(pl.Duration("us")),
            "ended_at": START + timedelta(hours=12),
            "outcome": "ok",
            "ttft_s": ttft_s,
            "output_tokens": tokens,
            "decode_s": 0.02 * (tokens - 1) * level * np.where(is_on, change, 1.0),
            "tpot_s": 0.02 * level * np.where(is_on, change, 1.0),
            "model": np.where(is_on, "on", "off"),
        }
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def put(store: Store, rows: pl.DataFrame) -> None:
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        transaction.insert("requests_hot", rows)


def compared(store: Store, a: str = "model = 'on'", b: str = "model = 'off'") -> dict[str, dict[str, float]]:
    """What `explain` says of three keys; our own sets need no sandbox."""
    asked = comparison(
        a, b, {"ttft_s": "DOUBLE", "tpot_s": "DOUBLE", "model": "VARCHAR", "started_at": "TIMESTAMP"}, ("ttft_s", "tpot_s", "model")
    )
    counted = store.frame(asked.sql, asked.params)
    rows = ranked(counted)
    numbers = [explain_blocks.limits(row) for row in rows.iter_rows(named=True) if row["median_a"] is not None]
    blocks = store.frame(*explain_blocks.statement(asked, numbers))
    return {row["key"]: row for row in with_intervals(rows, counted, blocks, [one.key for one in numbers]).iter_rows(named=True)}


def test_a_difference_of_a_mean_and_of_percentiles_has_an_interval_that_holds_the_truth(store: Store) -> None:
    put(store, requests(1, change=1.3))
    found = compared(store)["ttft_s"]
    assert found["blocks"] == BLOCKS
    rows = store.frame("select model, avg(ttft_s) as mean, median(ttft_s) as median from requests group by model order by model desc")
    on, off = rows.iter_rows(named=True)
    assert (found["mean_a"], found["mean_b"]) == pytest.approx((on["mean"], off["mean"]))
    for name in ("mean", "median"):
        gap = on[name] - off[name]
        assert 0 < found[f"{name}_gap_low"] < gap < found[f"{name}_gap_high"] < 2 * gap + 0.1
    assert found["p95_gap_low"] < found["p95_a"] - found["p95_b"] < found["p95_gap_high"]
    assert found["mean_gap_high"] - found["mean_gap_low"] < 0.5 * (found["median_gap_high"] - found["median_gap_low"]), (
        "what a block does to both sets cancels in the mean"
    )


def test_the_mean_of_time_per_token_weighs_tokens_alike(store: Store) -> None:
    put(store, requests(2, change=1.3))
    told = store.frame("select sum(decode_s) / sum(output_tokens - 1) as value from requests where model = 'on'").item()
    assert compared(store)["tpot_s"]["mean_a"] == pytest.approx(told)


def test_intervals_of_equal_sets_seldom_miss_0(store: Store) -> None:
    misses = 0
    for seed in range(20):
        put(store, requests(seed))
        found = compared(store)["ttft_s"]
        misses += sum(not found[f"{name}_gap_low"] <= 0 <= found[f"{name}_gap_high"] for name in ("mean", "median", "p95"))
    assert misses <= 2


def test_a_key_of_texts_and_few_blocks_have_no_interval(store: Store) -> None:
    put(store, requests(3))
    assert compared(store)["model"]["mean_gap_low"] is None
    put(store, requests(3).filter(pl.col("started_at") < START + timedelta(minutes=40)))
    found = compared(store)["ttft_s"]
    assert (found["blocks"], found["mean_gap_low"], found["median_gap_high"]) == (8, None, None)


def test_sets_of_different_times_are_said_to_be_before_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path)
    put(store, requests(4))
    noon = "timestamptz '2026-11-29 04:00:00+00'"
    assert compared(store)["ttft_s"]["times"] is None
    found = compared(store, f"started_at >= {noon}", f"started_at < {noon}")["ttft_s"]
    assert str(found["times"]).startswith("all of B is before all of A: whatever else changed with time is in the difference")
    assert found["mean_gap_low"] < found["mean_gap_high"]
    store.close()
    assert main(["explain", f"started_at >= {noon}", f"started_at < {noon}", "--data", str(store.folder), "--by", "ttft_s"]) == 0
    out, err = capsys.readouterr()
    assert "shown and not judged (before/after)" in err
    assert "median_gap_low" in out
