"""Cells are sums: they add up over any split, can be taken back, and say what a report over the requests says."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_requests import BEGAN, frame_of, request_rows

from pipeline import cell_store, measure
from pipeline.cell_bins import RELATIVE_ERROR, bin_of, middle
from pipeline.cell_sums import SUMS
from pipeline.metrics import METRICS, in_cells
from queries.store import Store

HELD = [metric for metric in METRICS if in_cells(metric)]
ROW: dict[str, Any] = {"replica": "a", "model": "m", "arm": "treated", "after_s": 0, "outcome": "ok", "ttft_s": 1.0, "prompt_tokens": 5}
QUICK = settings(
    max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def marked(rows: list[dict[str, Any]], maps: list[dict[str, str]], column: str = "levers") -> pl.DataFrame:
    kind = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
    pairs = [[{"key": key, "value": value} for key, value in one.items()] for one in maps]
    return frame_of(rows).with_columns(pl.Series(column, pairs, dtype=kind))


def totals(*frames: pl.DataFrame) -> pl.DataFrame:
    keys = [*measure.CELL_KEYS, "metric"]
    return pl.concat([measure.cells(frame).long() for frame in frames]).group_by(keys).agg(pl.col(SUMS).sum()).sort(keys, nulls_last=True)


@given(st.lists(request_rows(), min_size=1, max_size=10), st.integers(0, 10))
@QUICK
def test_cells_add_up_over_any_split(rows: list[dict[str, Any]], at: int) -> None:
    whole = totals(frame_of(rows))
    parts = totals(*(frame_of(part) for part in (rows[:at], rows[at:]) if part))
    keys = [*measure.CELL_KEYS, "metric", "known", "n"]
    assert whole.select(keys).equals(parts.select(keys))
    scale = (whole["n"] * whole["num_sq"]).sqrt() + whole["num"].abs()
    assert ((whole["num"] - parts["num"]).abs() <= 1e-9 * scale).all()


@given(st.lists(request_rows(), min_size=2, max_size=10))
@QUICK
def test_all_requests_are_the_sum_of_a_levers_arms_where_each_has_one(rows: list[dict[str, Any]]) -> None:
    made = totals(frame_of(rows)).with_columns(pl.col("lever") == measure.ALL_REQUESTS)
    counted = made.group_by("lever", "metric", "replica", "block_started_at").agg(pl.col("n", "known").sum()).sort(pl.all())
    every, armed = (counted.filter(pl.col("lever") == side).drop("lever") for side in (True, False))
    assert every.equals(armed)


@given(st.lists(request_rows(), min_size=1, max_size=10))
@QUICK
def test_what_is_added_and_taken_back_leaves_nothing(store: Store, rows: list[dict[str, Any]]) -> None:
    made = measure.cells(frame_of(rows))
    with store.write() as transaction:
        for sign in (1, 1, -1, -1):
            cell_store.add(transaction, made, sign)
        cell_store.fold(transaction, made.keys["block_started_at"].unique().to_list())
    assert store.rows("select (select count(*) from cells) as cells, (select count(*) from cell_histograms) as bins") == [
        {"cells": 0, "bins": 0}
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("cells"))


@given(st.floats(1e-9, 1e12))
@QUICK
def test_a_bin_gives_its_values_back_within_one_percent(value: float) -> None:
    number = pl.select(bin_of(pl.lit(value))).item()
    assert math.isclose(middle(number), value, rel_tol=RELATIVE_ERROR + 1e-9)


def test_no_time_at_all_is_a_bin_of_its_own_and_is_given_back_as_zero() -> None:
    numbers = pl.select(bin_of(pl.Series([0.0, None, 1e-15]).to_frame("x").get_column("x"))).to_series().to_list()
    assert [middle(number) for number in (numbers[0], numbers[2])] == [0.0, 0.0]
    assert numbers[1] is None


def test_only_the_known_levers_and_arms_are_measured() -> None:
    settings_of = {f"l{number}": "on" for number in range(50)} | {"prefix_caching": "on", "kv_quantization": "OFF"}
    frame = marked([ROW, ROW | {"arm": "made up"}], [settings_of, settings_of])
    found = measure.cells(frame).long().filter(pl.col("metric") == measure.REQUESTS).select("lever", "arm", "n")
    assert set(found.rows()) == {
        ("", "", 2),
        ("speculation", "treated", 1),
        ("prefix_caching", "treated", 2),
        ("kv_quantization", "disabled_in_place", 2),
    }


def test_an_arm_that_is_stated_wins_over_the_setting() -> None:
    frame = marked([ROW | {"arm": "control"}], [{"speculation": "on"}])
    assert set(measure.cells(frame).keys.select("lever", "arm").unique().rows()) == {("", ""), ("speculation", "control")}


def test_a_request_with_no_judging_key_counts_among_all_and_under_no_lever() -> None:
    made = measure.cells(frame_of([ROW | {"model": None}]))
    assert set(made.keys.select("segment", "lever").rows()) == {("{}", "")}


def test_no_requests_make_no_cells() -> None:
    made = measure.cells(frame_of([ROW]).clear())
    assert made.keys.is_empty()
    assert made.long().is_empty()
    assert made.histograms.is_empty()


def test_a_cell_of_no_known_request_is_left_out_and_not_zero() -> None:
    metrics = measure.cells(frame_of([ROW])).long()["metric"].unique().to_list()
    assert "ttft_s" in metrics
    assert "e2e_s" not in metrics


def test_a_request_that_is_known_and_does_not_count_is_in_coverage_alone() -> None:
    made = measure.cells(frame_of([ROW | {"output_tokens": 1, "decode_s": 0.5}])).long()
    assert made.filter(pl.col("metric") == "tpot_s", pl.col("lever") == "").select("known", "n", "num").rows() == [(1, 0, 0.0)]


def test_batches_are_told_apart_under_speculation_alone_and_make_no_more_segments() -> None:
    rows = frame_of([ROW, ROW]).with_columns(pl.Series("batch_bucket", ["<2", "2-3"]), pl.Series("temperature_bucket", ["<0.3", "<0.3"]))
    keys = measure.cells(rows).keys.filter(~pl.col("is_together"))
    assert set(keys.select("segment", "lever", "batch_bucket").rows()) == {
        ('{"model":"m"}', "", None),
        ('{"model":"m","temperature_bucket":"<0.3"}', "speculation", "<2"),
        ('{"model":"m","temperature_bucket":"<0.3"}', "speculation", "2-3"),
    }


def test_tenants_are_judged_apart_only_where_asked_for() -> None:
    rows = frame_of([ROW, ROW]).with_columns(pl.Series("tenant", ["a", "b"]))
    assert measure.cells(rows).keys["segment"].unique().to_list() == ['{"model":"m"}']
    assert measure.cells(rows, by_tenant=True).keys["segment"].n_unique() == 2


def test_histograms_of_an_arm_are_of_all_replicas_together_those_of_all_requests_are_not() -> None:
    made = measure.cells(frame_of([ROW, ROW | {"replica": "b"}]))
    binned = made.histograms.join(made.keys, on="cell").filter(pl.col("metric") == "ttft_s").select("lever", "replica", "n")
    assert set(binned.rows()) == {("", "a", 1), ("", "b", 1), ("speculation", None, 2)}


def test_blocks_are_five_minutes_from_the_epoch() -> None:
    assert (BEGAN + timedelta(seconds=measure.BLOCK_S)).timestamp() % 300 == 0


@pytest.mark.parametrize("metric", HELD, ids=lambda metric: metric.name)
def test_the_sums_of_a_metric_do_not_depend_on_the_others(metric: Any) -> None:
    frame = frame_of([ROW | dict.fromkeys(("output_tokens", "draft_tokens", "accepted_tokens", "verify_steps"), 5), ROW])
    alone = measure.cells(frame, metrics=[metric]).long().filter(pl.col("metric") == metric.name).sort(pl.all())
    assert measure.cells(frame).long().filter(pl.col("metric") == metric.name).sort(pl.all()).equals(alone)
