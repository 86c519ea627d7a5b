"""What a lever leaves by itself, from stored requests: planted truths are covered, and what is not alike says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline import natural_effects
from pipeline.inference import natural
from pipeline.segments import keys_for
from queries import natural as asking
from queries.store import Store

SINCE = datetime(2026, 11, 29, 8, tzinfo=UTC)
HOURS = 4
REPLICAS = 6
INSERT = """
insert into requests_hot by name
select * exclude (arm, setting, lever), case when arm is not null then map {lever: arm} end as arms,
    case when setting is not null then map {lever: setting} end as levers
from incoming
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def traffic(n: int, seed: int) -> tuple[np.random.Generator, dict[str, Any]]:
    """`n` requests of one segment over HOURS, with what every one of them has."""
    drawn = np.random.default_rng(seed)
    after_s = np.sort(drawn.uniform(0, HOURS * 3600, n))
    batch = drawn.integers(16, 32, n)
    return drawn, {
        "started_at": [SINCE + timedelta(seconds=float(one)) for one in after_s],
        "replica": [f"r{one}" for one in drawn.integers(0, REPLICAS, n)],
        "batch_at_admission": batch, "batch_bucket": np.full(n, "16-31"), "queue_depth": drawn.poisson(2, n),
        "prompt_tokens": drawn.integers(500, 2000, n), "output_tokens": np.full(n, 101), "decode_s": 2.0 * drawn.lognormal(0, 0.3, n),
        "ttft_s": 0.2 * drawn.lognormal(0, 0.4, n), "arm": np.full(n, "treated"), "setting": np.full(n, "on"),
    }  # fmt: skip


def effects(store: Store, lever: str, kind: str, columns: dict[str, Any], one_in: int = 1) -> dict[str, dict[str, Any]]:
    """The metric's rows of one experiment over one in so many of these requests."""
    n = len(columns["started_at"])
    frame = pl.DataFrame(columns).with_columns(
        pl.Series("request_id", [str(one) for one in range(n)]),
        *(pl.lit(text).alias(name) for name, text in (("trace_id", "t"), ("model", "m"), ("outcome", "ok"), ("lever", lever))),
        pl.col("started_at").alias("ended_at"),
    )
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        transaction.using(frame, INSERT)
    params = {"lever": lever, "since": SINCE, "until": SINCE + timedelta(hours=HOURS), "block_s": 300, "keys": [*keys_for(lever)]}
    sums = store.frame(asking.statement(kind, one_in=one_in), params)
    experiment = next(one for one in natural.EXPERIMENTS if one.name == kind)
    return {row["metric"]: row for row in natural_effects.effects(sums, experiment, lever).iter_rows(named=True)}


def test_a_planted_holdout_of_5_percent_is_covered(store: Store) -> None:
    drawn, columns = traffic(20_000, seed=1)
    is_off = drawn.random(20_000) < 0.05
    columns["draft_tokens"] = np.where(is_off, 0, 400)
    columns["decode_s"] = columns["decode_s"] * np.where(is_off, 1.0, 0.8)
    found = effects(store, "speculation", "off_steps", columns)["tpot_s"]
    assert found["gain_low"] < 0.2 < found["gain_high"]
    assert found["gain"] == pytest.approx(0.2, abs=0.03)
    assert found["value_a"] / found["value_b"] == pytest.approx(0.8, abs=0.03)
    assert (found["grade"], found["says"], found["basis"]) == ("good", None, "off_steps")  # it leans up: no proof that it pays
    assert found["segment"] == '{"model":"m"}'


def test_a_loss_beside_off_steps_is_said(store: Store) -> None:
    drawn, columns = traffic(20_000, seed=2)
    is_off = drawn.random(20_000) < 0.1
    columns["arm"] = np.where(is_off, "disabled_in_place", "treated")
    columns["draft_tokens"] = pl.Series([None if off else 400 for off in is_off])
    columns["decode_s"] = columns["decode_s"] * np.where(is_off, 1.0, 1.15)
    assert effects(store, "speculation", "off_steps", columns)["tpot_s"]["says"] == "loses"


def test_off_steps_of_the_largest_batches_alone_are_a_poor_comparison(store: Store) -> None:
    drawn, columns = traffic(20_000, seed=3)
    batch = columns["batch_at_admission"]
    is_off = (batch >= 28) & (drawn.random(20_000) < 0.5)
    columns["draft_tokens"] = np.where(is_off, 0, 400)
    columns["decode_s"] = columns["decode_s"] * batch / 24
    found = effects(store, "speculation", "off_steps", columns)["tpot_s"]
    assert found["gain"] > 0.15
    assert (found["grade"], found["says"]) == ("poor", None)


def cold(store: Store, cached: float, one_in: int = 1) -> dict[str, Any]:
    """Each replica pauses twice and is twice as slow to a first token for ten minutes, with that part of the cache's hits."""
    _, columns = traffic(24_000, seed=4)
    after_s = np.array([(one - SINCE).total_seconds() for one in columns["started_at"]])
    own = np.array([int(name[1:]) for name in columns["replica"]])
    age_s = np.minimum(*((after_s - (1800 + 900 * own + 5400 * turn)) % 1e9 for turn in (0, 1)))
    is_cold = age_s < 600
    columns["ttft_s"] = columns["ttft_s"] * np.where(is_cold, 2.0, 1.0)
    columns["cached_tokens"] = (columns["prompt_tokens"] * np.where(is_cold, cached, 0.6)).astype(int)
    away = np.minimum(*((1800 + 900 * own + 5400 * turn - after_s) % 1e9 for turn in (0, 1))) <= 400
    kept = {name: [one for one, gone in zip(values, away, strict=True) if not gone] for name, values in columns.items()}
    return effects(store, "prefix_caching", "cold_workers", kept, one_in)["ttft_s"]


def test_replicas_that_come_back_cold_show_what_the_cache_saves(store: Store) -> None:
    found = cold(store, cached=0.0)
    assert found["gain_low"] < 0.5 < found["gain_high"]
    assert (found["grade"], found["says"]) == ("good", None)


def test_of_a_large_day_one_request_in_so_many_is_compared(store: Store) -> None:
    whole, part = cold(store, cached=0.0), cold(store, cached=0.0, one_in=4)
    assert 3.5 * part["n_a"] < whole["n_a"] < 4.5 * part["n_a"]
    assert (part["grade"], part["gain"]) == ("good", pytest.approx(whole["gain"], abs=0.05))  # a quiet replica does not look idle
    assert [asking.every(n) for n in (0, asking.ROWS_COMPARED, asking.ROWS_COMPARED + 1, 10_000_000)] == [1, 1, 2, 10]


def test_a_replica_that_paused_and_kept_its_cache_is_no_comparison(store: Store) -> None:
    assert cold(store, cached=0.6)["grade"] == "poor"


def test_a_rollout_is_measured_against_each_replicas_own_level(store: Store) -> None:
    _, columns = traffic(24_000, seed=5)
    own = np.array([int(name[1:]) for name in columns["replica"]])
    after_s = np.array([(one - SINCE).total_seconds() for one in columns["started_at"]])
    is_new = after_s >= 7200 + 900 * own  # the fastest replicas come first
    columns["decode_s"] = columns["decode_s"] * (0.85 + 0.05 * own) * np.where(is_new, 0.9, 1.0)
    columns["arm"] = pl.Series([None] * 24_000, dtype=pl.String)
    columns["setting"] = np.where(is_new, "fp8", "off")
    found = effects(store, "weight_quantization", "rollouts", columns)["tpot_s"]
    assert found["gain_low"] < 0.1 < found["gain_high"]
    assert found["gain"] == pytest.approx(0.1, abs=0.03)
    assert found["says"] == "pays"
    assert "may lean either way" in found["note"]


def test_replicas_that_take_turns_as_control_are_no_rollout(store: Store) -> None:
    _, columns = traffic(6_000, seed=8)
    own = np.array([int(name[1:]) for name in columns["replica"]])
    turn = np.array([int((one - SINCE).total_seconds() // 1800) for one in columns["started_at"]])
    columns["arm"] = np.where(turn % REPLICAS == own, "control", "treated")
    assert effects(store, "speculation", "rollouts", columns) == {}


def test_requests_that_spill_compare_with_those_that_stay(store: Store) -> None:
    drawn, columns = traffic(24_000, seed=6)
    tenant = drawn.integers(0, REPLICAS, 24_000)
    is_home = drawn.random(24_000) < 0.8
    columns["tenant"] = [f"t{one}" for one in tenant]
    away = (tenant + drawn.integers(1, REPLICAS, 24_000)) % REPLICAS
    columns["replica"] = [f"r{one}" for one in np.where(is_home, tenant, away)]
    columns["ttft_s"] = columns["ttft_s"] * np.where(is_home, 0.7, 1.0)
    found = effects(store, "cache_affinity", "spill", columns)["ttft_s"]
    assert found["gain_low"] < 0.3 < found["gain_high"]
    assert (found["grade"], found["says"]) == ("good", "pays")
    assert found["since"] == SINCE + timedelta(hours=1)  # nobody knows where a tenant belongs in the first hour


def test_without_a_second_side_there_is_no_row(store: Store) -> None:
    _, columns = traffic(500, seed=7)
    columns["draft_tokens"] = np.full(500, 400)
    assert effects(store, "speculation", "off_steps", columns) == {}
