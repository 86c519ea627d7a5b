"""Effects of a switchback from stored cells: pairs against each other, what breaks the schedule left out, an order not drawn told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pipeline_requests import frame_of

from pipeline import cell_store, measure, schedule, switchback_effects
from pipeline.schedule import Plan
from pipeline.schedule_rows import Period
from queries import files
from queries.store import Store

SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
LEVER = "speculation"
REPLICAS = ("r0", "r1")
HOURS = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def planned() -> tuple[Period, ...]:
    return schedule.planned(LEVER, REPLICAS, SINCE, HOURS * 2, Plan(900, 300), seed=3)


def arm_at(periods: tuple[Period, ...], replica: str, moment: datetime) -> str | None:
    return next((one.arm for one in periods if one.replica == replica and one.since <= moment < one.until), None)


def requests(periods: tuple[Period, ...], gain: float, seed: int = 1) -> pl.DataFrame:
    """Two replicas whose common level drifts: the lever saves `gain` of the time per token, and adds 5 % to the first token."""
    drawn = np.random.default_rng(seed)
    rows, level = [], 0.0
    for second in range(0, HOURS * 3600, 10):
        level = 0.997 * level + float(drawn.normal(0, 0.008))
        for replica in REPLICAS:
            arm = arm_at(periods, replica, SINCE + timedelta(seconds=second))
            factor = np.exp(level) * np.array([(1 - gain) if arm == "treated" else 1.0, 1.05 if arm == "treated" else 1.0])
            decode_s, ttft_s = factor * drawn.lognormal(0, 0.2, 2) * np.array([2.0, 0.2])
            rows.append({
                "replica": replica, "model": "m", "arm": arm or "treated", "after_s": second, "outcome": "ok", "decode_s": decode_s,
                "ttft_s": ttft_s, "e2e_s": decode_s + ttft_s, "output_tokens": 101,
            })  # fmt: skip
    return frame_of(rows)


def effects(store: Store, made: pl.DataFrame, periods: tuple[Period, ...]) -> dict[str, dict[str, Any]]:
    with store.write() as transaction:
        cell_store.add(transaction, measure.cells(made), 1)
    params = {"lever": LEVER, "since": SINCE, "until": SINCE + timedelta(hours=HOURS)}
    cells = store.frame(files.question("switchback_cells"), params)
    return {row["metric"]: row for row in switchback_effects.effects(cells, periods, LEVER).iter_rows(named=True)}


def test_the_gain_of_a_lever_that_no_replica_runs_without_at_the_same_time_is_covered(store: Store) -> None:
    periods = planned()
    found = effects(store, requests(periods, 0.2), periods)
    tpot, net = found["tpot_s"], found["net_itl_s"]
    assert tpot["gain_low"] < 0.2 < tpot["gain_high"]
    assert tpot["gain"] == pytest.approx(0.2, abs=0.03)
    assert tpot["gain_low"] > 0
    assert 0 < tpot["gain"] - net["gain"] < 0.01  # the first token's 10 ms are spread over a hundred tokens
    assert (tpot["basis"], tpot["arm_b"], tpot["blocks"], tpot["note"]) == ("switchback", "control", 23, None)
    assert tpot["evidence"] < 1
    assert (tpot["segment"], tpot["grade"], tpot["says"]) == ('{"model":"m"}', "good", "pays")


def test_harm_has_evidence_that_rests_on_the_order_alone(store: Store) -> None:
    periods = planned()
    found = effects(store, requests(periods, -0.15), periods)["tpot_s"]
    assert found["gain_high"] < 0
    assert found["evidence"] > 20


def test_pairs_of_a_replica_that_did_not_switch_are_left_out_and_told(store: Store) -> None:
    periods = planned()
    stuck = requests(periods, 0.2).with_columns(
        pl.when(pl.col("replica") == "r1")
        .then(pl.concat_list(pl.struct(pl.lit(LEVER).alias("key"), pl.lit("control").alias("value"))))
        .otherwise("arms")
        .alias("arms")
    )
    found = effects(store, stuck, periods)["tpot_s"]
    assert "cells are of another arm than the schedule says" in found["note"]
    assert found["n_b"] == pytest.approx(found["n_a"], rel=0.01)  # no pair of the replica that did not switch


def test_an_order_that_was_not_drawn_has_no_evidence_and_says_why(store: Store) -> None:
    drawn = planned()
    fixed = tuple(replace(one, arm=("treated", "control")[place % 2]) for place, one in enumerate(drawn))
    found = effects(store, requests(fixed, 0.2), fixed)["tpot_s"]
    assert found["evidence"] is None
    assert "the order has to be drawn" in found["note"]
    assert found["gain_low"] > 0
    assert (found["grade"], found["says"]) == ("poor", None)


@pytest.mark.parametrize(("gain", "says"), [(0.2, None), (-0.2, "loses")])
def test_beside_a_lever_that_is_switched_off_in_place_it_may_show_a_loss_and_not_that_it_pays(
    store: Store, gain: float, says: str | None
) -> None:
    periods = schedule.planned(LEVER, REPLICAS, SINCE, HOURS * 2, Plan(900, 300), 3, without="disabled_in_place")
    found = effects(store, requests(periods, gain), periods)["tpot_s"]
    assert (found["arm_b"], found["grade"], found["says"]) == ("disabled_in_place", "fair", says)


def test_without_a_schedule_or_cells_there_is_no_row(store: Store) -> None:
    periods = planned()
    made = requests(periods, 0.2).head(2)
    assert effects(store, made, ()) == {}
    assert effects(store, made, planned()) == {}
