"""Where a lever has no control arm its effects are filled with the best of what else there is, once an hour, one row as before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pipeline_requests import frame_of, stored

from pipeline import cell_store, jobs, measure, schedule, settle, uncontrolled, uncontrolled_store
from pipeline.inference import before_after
from pipeline.schedule import Plan
from pipeline.schedule_rows import Period
from pipeline.uncontrolled import SCHEMA
from queries import files
from queries.store import Store

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LEVER, SEGMENT = "speculation", '{"model":"m"}'
METRICS = ("net_itl_s", "tpot_s", "ttft_s", "error_rate")
INSERT = """
insert into requests_hot by name
select * exclude (arm, setting), case when arm is not null then map {'speculation': arm} end as arms,
    case when setting is not null then map {'speculation': setting} end as levers
from incoming
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def bare(until: datetime, **changes: Any) -> pl.DataFrame:
    """What comparing gives of a lever whose control arm is nowhere: a row per metric."""
    row = {
        "lever": LEVER, "segment": SEGMENT, "arm_a": "treated", "arm_b": None, "since": until - timedelta(hours=2), "until": until,
        "blocks": 24, "n_a": 900, "n_b": 0, "value_a": 0.03, "value_b": None, "gain": None, "gain_low": None, "gain_high": None,
        "coverage": 1.0, "method": "paired_blocks_window", "basis": "none", "note": "no control arm", "evidence": None,
    }  # fmt: skip
    kinds = {name: kind for name, kind in SCHEMA.items() if name in row}
    rows = [row | {"metric": metric} | changes for metric in METRICS]
    return pl.DataFrame([*rows, row | {"metric": "acceptance_length", "basis": "premise", "note": None}], schema_overrides=kinds)


def found(basis: str, metric: str = "tpot_s", **changes: Any) -> dict[str, Any]:
    row = dict.fromkeys(SCHEMA) | {
        "measured_at": NOON, "lever": LEVER, "segment": SEGMENT, "metric": metric, "since": NOON - timedelta(hours=9), "until": NOON,
        "blocks": 40, "n_a": 800, "n_b": 200, "value_a": 0.02, "value_b": 0.025, "gain": 0.2, "gain_low": 0.1, "gain_high": 0.3,
        "method": "matched_blocks", "basis": basis, "matched": 0.8, "grade": "good",
    }  # fmt: skip
    return row | changes


def of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA)


def test_the_best_of_what_there_is_stands_in_the_gap_and_nothing_else_is_touched() -> None:
    made = uncontrolled.completed(bare(NOON), of([found("off_steps"), found("spill", "ttft_s", grade="poor", says=None)]), ())
    rows = {row["metric"]: row for row in made.iter_rows(named=True)}
    assert len(made) == len(METRICS) + 1
    tpot = rows["tpot_s"]
    assert (tpot["basis"], tpot["grade"], tpot["gain"], tpot["value_b"], tpot["blocks"]) == ("off_steps", "good", 0.2, 0.025, 40)
    assert (tpot["since"], tpot["until"]) == (NOON - timedelta(hours=9), NOON)
    assert (tpot["own_value"], tpot["coverage"]) == (0.03, 1.0)  # of the last two hours
    assert rows["ttft_s"]["basis"] == "spill"
    assert (rows["error_rate"]["basis"], rows["error_rate"]["note"], rows["error_rate"]["own_value"]) == ("none", "no control arm", None)
    assert rows["acceptance_length"]["basis"] == "premise"


def test_trust_has_an_order() -> None:
    rows = [
        found(before_after.BASIS, grade=None, gain_low=None, gain_high=None), found("switchback", grade="too little", gain_low=None),
        found("spill", grade="poor"), found("rollouts", grade="fair"), found("off_steps", grade="good", says="loses"), found("switchback"),
    ]  # fmt: skip
    order = []
    while rows:
        first = uncontrolled.best(of(rows)).row(0, named=True)
        order.append((first["basis"], first["grade"]))
        rows = [row for row in rows if (row["basis"], row["grade"]) != order[-1]]
    assert order == [
        ("switchback", "good"), ("off_steps", "good"), ("rollouts", "fair"), ("spill", "poor"), ("switchback", "too little"),
        ("before_after", None),
    ]  # fmt: skip


def test_arms_of_a_schedule_that_never_lie_side_by_side_are_a_gap_for_a_switchback_alone() -> None:
    beside = bare(NOON, basis="control", arm_b="control")
    assert uncontrolled.gaps(beside, ()).is_empty()
    assert uncontrolled.gaps(beside, {LEVER}).rows() == [(LEVER, SEGMENT)]
    kept = uncontrolled.completed(beside, of([found("off_steps")]), {LEVER})
    assert kept["basis"].unique().sort().to_list() == ["control", "premise"]
    taken = uncontrolled.completed(beside, of([found("switchback"), found("off_steps")]), {LEVER})
    assert taken.filter(pl.col("metric") == "tpot_s")["basis"].item() == "switchback"
    compared = bare(NOON, basis="control", arm_b="control", gain=0.1)
    assert uncontrolled.gaps(compared, {LEVER}).is_empty()


def put_requests(store: Store, hours: int, factor: Any, **columns: Any) -> None:
    """Requests of two replicas up to noon; `factor` gives each one's time per token from hours before noon."""
    n = hours * 1200
    drawn = np.random.default_rng(1)
    before_h = np.sort(drawn.uniform(0, hours, n))[::-1]
    level = np.array([factor(float(hour)) for hour in before_h])
    frame = pl.DataFrame({
        "started_at": [NOON - timedelta(hours=float(hour)) for hour in before_h], "replica": [f"r{number % 2}" for number in range(n)],
        "batch_at_admission": drawn.integers(16, 32, n), "batch_bucket": np.full(n, "16-31"), "queue_depth": drawn.poisson(2, n),
        "prompt_tokens": drawn.integers(500, 2000, n), "output_tokens": np.full(n, 101), "ttft_s": 0.2 * drawn.lognormal(0, 0.4, n),
        "decode_s": 2.0 * level * drawn.lognormal(0, 0.3, n), "request_id": [str(number) for number in range(n)],
    }).with_columns(
        *(pl.lit(text).alias(name) for name, text in (("trace_id", "t"), ("model", "m"), ("outcome", "ok"))),
        *(pl.Series(name, values(before_h)) for name, values in columns.items()),
        pl.col("started_at").alias("ended_at"),
    )  # fmt: skip
    with store.write() as transaction:
        transaction.using(frame, INSERT)


def filled(store: Store, *ends: datetime, periods: tuple[Period, ...] = ()) -> list[dict[str, dict[str, Any]]]:
    """The effects at these ends by metric, and what was measured for them is kept."""
    frames, new = uncontrolled_store.filled(store, [bare(end) for end in ends], periods)
    with store.write() as transaction:
        uncontrolled_store.keep(transaction, new)
        for frame in frames:
            transaction.using(frame, files.question("compare_insert"))
    return [{row["metric"]: row for row in frame.iter_rows(named=True)} for frame in frames]


def test_a_natural_experiment_is_measured_once_an_hour_and_serves_until_the_next(store: Store) -> None:
    is_off = np.random.default_rng(2).random(6 * 1200) < 0.1
    drafted = np.where(is_off, 0, 400)
    numbers = iter(is_off)
    put_requests(store, 6, lambda _: 1.0 if next(numbers) else 0.8, arm=lambda h: ["treated"] * len(h), setting=lambda h: ["on"] * len(h),
                 draft_tokens=lambda _: drafted)  # fmt: skip
    first, second = filled(store, NOON, NOON + timedelta(minutes=5))
    tpot, net = first["tpot_s"], first["net_itl_s"]
    assert (tpot["basis"], tpot["grade"], tpot["says"]) == ("off_steps", "good", None)
    assert tpot["gain_low"] < 0.2 < tpot["gain_high"]
    assert net["gain"] == pytest.approx(tpot["gain"], abs=0.02)  # the times to the first token are alike
    assert {**second["tpot_s"], "until": None} == {**tpot, "until": None}
    hours = store.rows("select lever, measured_at from uncontrolled_hours")
    assert hours == [{"lever": LEVER, "measured_at": NOON}]
    again = filled(store, NOON + timedelta(minutes=10))[0]
    assert again["tpot_s"]["gain"] == tpot["gain"]
    assert store.rows("select count(*) as n from uncontrolled_hours") == [{"n": 1}]
    assert store.rows("select count(*) as n from effects") == [{"n": 3 * (len(METRICS) + 1)}]
    filled(store, NOON + timedelta(hours=1))
    assert store.rows("select count(*) as n from uncontrolled_hours") == [{"n": 2}]


def test_a_setting_that_changed_everywhere_at_once_is_shown_before_and_after(store: Store) -> None:
    put_requests(store, 10, lambda h: 0.8 if h < 3 else 1.0, setting=lambda h: ["5" if one < 3 else "off" for one in h],
                 arm=lambda h: [None] * len(h))  # fmt: skip
    tpot = filled(store, NOON)[0]["tpot_s"]
    assert (tpot["basis"], tpot["note"], tpot["gain_low"], tpot["says"]) == ("before_after", before_after.NOTE, None, None)
    assert tpot["gain"] == pytest.approx(0.2, abs=0.03)
    assert tpot["value_a"] / tpot["value_b"] == pytest.approx(0.8, abs=0.03)
    assert tpot["n_b"] == pytest.approx(tpot["n_a"], rel=0.1)  # as long before as after
    assert tpot["since"] == NOON - timedelta(hours=3)


def test_settings_that_go_back_and_forth_are_no_before_and_after(store: Store) -> None:
    put_requests(store, 8, lambda _: 1.0, setting=lambda h: ["5" if int(one) % 2 else "off" for one in h], arm=lambda h: [None] * len(h))
    assert filled(store, NOON)[0]["tpot_s"]["basis"] == "none"


def test_nothing_to_compare_with_is_looked_for_once_an_hour_too(store: Store) -> None:
    assert filled(store, NOON)[0]["tpot_s"]["basis"] == "none"
    assert store.rows("select count(*) as n from uncontrolled_hours") == [{"n": 1}]
    assert filled(store, NOON + timedelta(minutes=5))[0]["tpot_s"]["note"] == "no control arm"


def test_a_schedule_makes_a_switchback_of_whole_pairs_within_a_day(store: Store) -> None:
    periods = schedule.planned(LEVER, ("r0",), NOON - timedelta(hours=6), 14, Plan(900, 300), seed=3)
    drawn, rows = np.random.default_rng(4), []
    for after_s in range(-6 * 3600, 0, 10):
        moment = NOON + timedelta(seconds=after_s)
        arm = next(one.arm for one in periods if one.since <= moment < one.until)
        decode_s = 2.0 * (0.8 if arm == "treated" else 1.0) * float(drawn.lognormal(0, 0.1))
        rows.append({"replica": "r0", "model": "m", "arm": arm, "after_s": after_s, "outcome": "ok", "decode_s": decode_s, "ttft_s": 0.2})
    requests = frame_of([row | {"output_tokens": 101, "e2e_s": row["decode_s"] + 0.2} for row in rows])
    with store.write() as transaction:
        cell_store.add(transaction, measure.cells(requests), 1)
    tpot = filled(store, NOON, periods=periods)[0]["tpot_s"]
    assert (tpot["basis"], tpot["grade"], tpot["says"], tpot["blocks"]) == (
        "switchback",
        "good",
        "pays",
        11,
    )  # 12, of which the first teaches
    assert tpot["gain_low"] < 0.2 < tpot["gain_high"]
    assert tpot["own_value"] == 0.03


def test_closed_blocks_of_a_lever_without_control_are_compared_with_what_it_leaves(store: Store) -> None:
    drawn, rows = np.random.default_rng(5), []
    for after_s in range(0, 3 * 3600, 3):
        is_off = bool(drawn.random() < 0.3)
        decode_s = (2.0 if is_off else 1.6) * float(drawn.lognormal(0, 0.1))
        row = {"replica": "r0", "model": "m", "arm": "treated", "after_s": after_s, "outcome": "ok", "decode_s": decode_s, "ttft_s": 0.2}
        rows.append(row | {"output_tokens": 101, "prompt_tokens": int(drawn.integers(500, 900)), "draft_tokens": 0 if is_off else 400})
    made = frame_of(rows)
    with store.write() as transaction:
        transaction.using(stored(made).with_columns(made["arm"], pl.lit(None, pl.String).alias("setting")), INSERT)
        cell_store.add(transaction, measure.cells(made), 1)
        blocks = pl.DataFrame({"block_started_at": [NOON + timedelta(minutes=5 * number) for number in range(36)]})
        transaction.using(blocks, "insert into dirty_blocks select block_started_at from incoming")
        transaction.execute("insert into watermarks values ('s', $at, $at)", {"at": NOON + timedelta(hours=3) + settle.LAG})
    assert jobs.compare_next(store) == 36
    told = store.rows("select until, basis, gain, grade, own_value from effects where metric = 'tpot_s' order by until")
    assert len(told) == 36
    assert {row["basis"] for row in told[:11]} == {"none"}  # no hour was over
    last = told[-1]
    assert (last["basis"], last["grade"]) == ("off_steps", "good")
    assert last["gain"] == pytest.approx(0.2, abs=0.05)
    assert store.rows("select count(*) as n from uncontrolled_hours") == [{"n": 4}]
