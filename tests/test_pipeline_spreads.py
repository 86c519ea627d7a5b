"""Effects of a store's blocks: what is uneven between replicas is the report's number, and only what was measured has a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from pipeline_requests import BEGAN, frame_of

from leverwatch import lever_effects, report_source
from pipeline import cell_store, compare, jobs, measure, settle, spreads
from pipeline.metrics import TAILS, by_name
from queries.store import Store

BLOCK = timedelta(minutes=5)
SPREAD = "affinity_load_spread"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Two models on three replicas, an hour and a half of requests, compared block by block; one replica tells late what it skips."""
    opened, drawn = Store(tmp_path_factory.mktemp("spreads")), np.random.default_rng(4)
    rows = [
        {
            "replica": f"r{number % 3}", "model": ("m", "n")[number // 7 % 2], "arm": ("treated", "control")[number % 2], "outcome": "ok",
            "prompt_tokens": int(drawn.integers(100, 900)),
            "cached_tokens": None if number % 3 == 2 and number < 900 else 10 * (number % 3),
            "e2e_s": 2.0 + drawn.random(), "ttft_s": 0.3, "decode_s": 1.5, "output_tokens": 90, "queue_s": 0.1, "prefill_s": 0.2,
            "kv_transfer_s": 0.05 if number // 7 % 2 else None, "gpu_s": 4.0, "after_s": 3 * number,
        }
        for number in range(1800)
    ]  # fmt: skip
    made = measure.cells(frame_of(rows))
    blocks = pl.DataFrame({"block_started_at": made.keys["block_started_at"].unique().sort()})
    with opened.write() as transaction:
        cell_store.add(transaction, made)
        transaction.using(blocks, "insert into dirty_blocks select block_started_at from incoming")
        ended_at = {"ended_at": BEGAN + BLOCK * 18 + settle.LAG}
        transaction.execute("insert or replace into watermarks values ('s', $ended_at, $ended_at)", ended_at)
    while jobs.compare_next(opened):
        pass
    yield opened
    opened.close()


def last(store: Store, model: str) -> dict[str, dict[str, object]]:
    asked = "select * from effects where segment = $segment and until = (select max(until) from effects)"
    return {row["metric"]: row for row in store.rows(asked, {"segment": f'{{"model":"{model}"}}'})}


def reported(store: Store, until: datetime) -> dict[str, tuple[float, int]]:
    """What a report of the window says of treated, by model."""
    since = until - BLOCK * compare.WINDOW_BLOCKS
    question = report_source.from_cells(store, "cells", [by_name()[SPREAD]], ["arm.speculation", "model"], since, until, None)
    assert question is not None
    rows = store.frame(question.sql, question.params).filter(pl.col("arm.speculation") == "treated")
    return {model: (value, n) for model, value, n in rows.select("model", SPREAD, f"{SPREAD}_n").iter_rows()}


def test_a_spread_is_what_a_report_of_the_window_says(store: Store) -> None:
    told = reported(store, BEGAN + BLOCK * 18)
    assert told["m"][0] > 1.05
    for model in ("m", "n"):
        row = last(store, model)[SPREAD]
        assert (row["value_a"], row["n_a"]) == (pytest.approx(told[model][0], rel=1e-12), told[model][1])
        assert row["basis"] == "premise"
        assert row["coverage"] < 1


def test_each_window_has_a_spread_of_its_own_whether_asked_for_together_or_apart(store: Store) -> None:
    ends = [BEGAN + BLOCK * number for number in range(1, 19)]
    together = [frame.sort("segment") for frame in spreads.read(store, ends)]
    apart = [next(iter(spreads.read(store, [end]))).sort("segment") for end in ends]
    assert [frame["segment"].to_list() for frame in together] == [frame["segment"].to_list() for frame in apart]
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_allclose(one["value"].to_numpy(), other["value"].to_numpy(), rtol=1e-12)
    assert together[3]["value"].to_list() != together[-1]["value"].to_list()


def test_what_was_not_measured_has_no_row(store: Store) -> None:
    rows = last(store, "m")
    assert "transfer_to_prefill_ratio" not in rows
    assert {"draft_acceptance", "kv_usage", "communication_fraction"}.isdisjoint(rows)
    assert last(store, "n")["transfer_to_prefill_ratio"]["value_a"] == pytest.approx(0.25)


def test_whole_time_queueing_and_gpu_time_are_compared_with_control(store: Store) -> None:
    rows = last(store, "m")
    for metric in compare.ALSO_CONTRASTED:
        assert rows[metric]["basis"] == "control", metric
        assert rows[metric]["gain_low"] is not None, metric
    assert rows["gpu_s_per_output_token"]["value_a"] == pytest.approx(4 / 90)
    assert rows["queue_share"]["value_b"] is None


def test_whole_time_has_evidence_and_what_only_gates_read_has_none(store: Store) -> None:
    rows = last(store, "m")
    assert rows["e2e_s"]["tests"] == rows["tpot_s"]["tests"] == 2
    assert rows["queue_s"]["tests"] is rows["gpu_s_per_output_token"]["tests"] is None


def test_whole_time_is_told_of_all_traffic_too(store: Store) -> None:
    rows = {row["metric"]: row for row in lever_effects.effects(store, "speculation", total=True).to_dicts()}
    assert abs(rows["e2e_s"]["gain"]) < 0.1
    assert rows["e2e_s"]["n_a"] == rows["ttft_s"]["n_a"]


def test_all_that_is_told_of_treated_alone_can_be_read_of_sums() -> None:
    assert {by_name()[name].kind for name in compare.PREMISES} <= {"ratio", "mean", "share"}
    assert {by_name()[name].kind for name in compare.SPREADS} == {"spread"}
    assert not set(TAILS) & {*compare.OF_BOTH_ARMS, *compare.OF_TREATED}
