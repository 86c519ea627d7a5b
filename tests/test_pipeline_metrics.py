"""A metric is a row of data: its SQL, its Polars form and its cells say the same of any requests."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline import arithmetic, measure
from pipeline.metrics import CORE, METRICS, Metric, UnknownMetricError, by_name, chosen
from queries import metric_sql
from queries.report import report
from queries.store import Store

BEGAN = datetime(2026, 11, 29, 12, tzinfo=UTC)
LAGS = [metric for metric in METRICS if metric.kind != "contrast"]

maybe_count = st.one_of(st.none(), st.integers(0, 5000))
maybe_time = st.one_of(st.none(), st.floats(0, 50, allow_nan=False))


@st.composite
def request_rows(draw: st.DrawFn) -> dict[str, Any]:
    drafted = draw(maybe_count)
    prompt = draw(maybe_count)
    return {
        "prompt_tokens": prompt,
        "cached_tokens": draw(st.one_of(st.none(), st.integers(0, prompt))) if prompt is not None else draw(maybe_count),
        "output_tokens": draw(maybe_count),
        "draft_tokens": drafted,
        "accepted_tokens": draw(st.integers(0, drafted)) if drafted is not None else None,
        "verify_steps": draw(maybe_count),
        "decode_s": draw(maybe_time),
        "ttft_s": draw(maybe_time),
        "e2e_s": draw(maybe_time),
        "queue_s": draw(maybe_time),
        "kv_transfer_bytes": draw(maybe_count),
        "kv_transfer_s": draw(maybe_time),
        "link_peak_bytes_per_s": draw(st.one_of(st.none(), st.floats(1, 1e9))),
        "batch_at_admission": draw(maybe_count),
        "outcome": draw(st.sampled_from(["ok", "error", "aborted", "unknown"])),
        "replica": draw(st.sampled_from(["a", "b"])),
        "model": draw(st.sampled_from(["m", "n"])),
        "arm": draw(st.sampled_from(["treated", "control"])),
        "after_s": draw(st.integers(0, 899)),
    }


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    kinds = {name: pl.Int64 for name in rows[0] if name.endswith(("tokens", "steps", "bytes", "admission"))}
    kinds |= dict.fromkeys(("decode_s", "ttft_s", "e2e_s", "queue_s", "kv_transfer_s", "link_peak_bytes_per_s"), pl.Float64)
    frame = pl.DataFrame(rows, schema_overrides=kinds)
    pair = pl.struct(pl.lit("speculation").alias("key"), pl.col("arm").alias("value"))
    return frame.with_columns(
        (pl.lit(BEGAN) + pl.duration(seconds="after_s")).cast(pl.Datetime("us", "UTC")).alias("started_at"),
        pl.concat_list(pair).alias("arms"),
        pl.lit(None, pl.List(pl.Struct({"key": pl.String, "value": pl.String}))).alias("levers"),
        *(pl.lit(None, pl.String).alias(key) for key in ("hardware", "topology", "input_bucket", "temperature_bucket")),
    )


def polars_value(metric: Metric, frame: pl.DataFrame) -> tuple[float | None, int]:
    known = frame.filter(arithmetic.counts(metric))
    num = known.select(arithmetic.expression(metric.numerator).cast(pl.Float64)).to_series().sum()
    den = known.select(
        pl.lit(1.0).repeat_by(1).explode() if metric.denominator == "1" else arithmetic.expression(metric.denominator)
    ).to_series()
    total = float(len(known)) if metric.denominator == "1" else float(den.cast(pl.Float64).sum())
    return (num / total if total else None), len(known)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("metrics"))


@given(st.lists(request_rows(), min_size=1, max_size=12))
@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_sql_polars_and_cells_agree_for_every_metric(store: Store, rows: list[dict[str, Any]]) -> None:
    frame = frame_of(rows)
    cells = measure.cells(frame.with_row_index("row"))
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        stored = (
            frame.drop("arm", "after_s", "arms", "levers")
            .with_row_index("request_id")
            .with_columns(pl.col("request_id").cast(pl.String), pl.lit("t").alias("trace_id"), pl.col("started_at").alias("ended_at"))
        )
        transaction.insert("requests_hot", stored)
        for metric in LAGS:
            if metric.kind == "quantile":
                continue
            items = ", ".join([*metric_sql.value_columns(metric), *metric_sql.said_columns(metric)[:1]])
            by_sql = transaction.frame(f"select {items} from requests_hot").row(0)
            by_polars = polars_value(metric, frame)
            mine = cells.filter(pl.col("metric") == metric.name)
            den = mine["den"].sum()
            by_cells = (mine["num"].sum() / den if den else None), mine["n"].sum()
            for other in (by_polars, by_cells):
                assert by_sql[1] == other[1], metric.name
                assert (by_sql[0] is None) == (other[0] is None), metric.name
                assert by_sql[0] is None or math.isclose(by_sql[0], other[0], rel_tol=1e-9, abs_tol=1e-12), metric.name


@given(st.lists(request_rows(), min_size=1, max_size=12), st.integers(0, 12))
@settings(max_examples=25, deadline=None, derandomize=True)
def test_cells_add_up_over_any_split(rows: list[dict[str, Any]], at: int) -> None:
    def sums(*parts: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        frames = [measure.cells(frame_of(part).with_row_index("row")) for part in parts if part]
        keys = [*measure.CELL_KEYS, "metric"]
        total = pl.concat(frames).group_by(keys).agg(pl.col("n", "num", "den", "num_den").sum()).sort(keys)
        return total.with_columns(pl.col("num", "den", "num_den").round_sig_figs(9)).rows()

    assert sums(rows) == sums(rows[:at], rows[at:])


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_reads_the_same_columns_in_sql_and_polars(metric: Metric) -> None:
    assert metric_sql.columns_of(metric) == list(arithmetic.columns_of(metric))


def test_a_block_without_requests_is_no_data_not_zero(store: Store) -> None:
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
    columns = store.frame("select * from requests limit 0").columns
    row = store.rows(report(METRICS, columns).sql)[0]
    assert row["requests"] == 0
    values = {name: value for name, value in row.items() if not name.endswith("_n") and name != "requests"}
    assert set(values.values()) == {None}


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMetricError, match=r"metric 'tpot' is unknown; known: .*tpot_s"):
        chosen(("tpot",))


def test_the_default_is_the_five_and_all_is_every_one() -> None:
    assert tuple(metric.name for metric in chosen(None)) == CORE
    assert chosen(("all",)) == METRICS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_states_unit_direction_formula_and_source(metric: Metric) -> None:
    assert metric.unit
    assert metric.formula
    assert metric.source
    assert metric is by_name()[metric.name]


@pytest.mark.parametrize("text", ["__import__('os')", "prompt_tokens if 1 else 2", "f(prompt_tokens)", "prompt_tokens ** 2", "a < b < c"])
def test_arithmetic_that_sql_and_polars_do_not_share_is_refused(text: str) -> None:
    with pytest.raises(arithmetic.ExpressionError, match="is not taken"):
        arithmetic.expression(text)


def test_a_request_with_no_judging_key_is_in_no_cell() -> None:
    row = {
        **dict.fromkeys(("prompt_tokens", "output_tokens"), 5),
        "replica": "a",
        "model": None,
        "arm": "treated",
        "after_s": 0,
        "outcome": "ok",
    }
    frame = frame_of([row]).with_columns(pl.col("model").cast(pl.String))
    rest = ["cached_tokens", "draft_tokens", "accepted_tokens", "verify_steps", "kv_transfer_bytes", "batch_at_admission"]
    times = ["decode_s", "ttft_s", "e2e_s", "queue_s", "kv_transfer_s", "link_peak_bytes_per_s"]
    frame = frame.with_columns(*(pl.lit(None, pl.Int64).alias(c) for c in rest), *(pl.lit(None, pl.Float64).alias(c) for c in times))
    assert measure.cells(frame.with_row_index("row")).is_empty()


BASE: dict[str, Any] = {
    "replica": "a",
    "model": "m",
    "arm": "treated",
    "after_s": 0,
    "outcome": "ok",
    **dict.fromkeys(("prompt_tokens", "cached_tokens", "output_tokens", "draft_tokens", "accepted_tokens", "verify_steps"), 5),
    **dict.fromkeys(("kv_transfer_bytes", "batch_at_admission"), 5),
    **dict.fromkeys(("decode_s", "ttft_s", "e2e_s", "queue_s", "kv_transfer_s", "link_peak_bytes_per_s"), 1.0),
}


def test_counts_near_the_largest_whole_number_fail_no_report_and_wrap_no_cell(store: Store) -> None:
    most = 2**63 - 1
    odd = BASE | {"accepted_tokens": most, "verify_steps": most, "prompt_tokens": most, "output_tokens": -most - 1, "decode_s": 1e308}
    frame = frame_of([odd] * 3)
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        stored = frame.drop("arm", "after_s", "arms", "levers").with_row_index("request_id")
        stored = stored.with_columns(
            pl.col("request_id").cast(pl.String), pl.lit("t").alias("trace_id"), pl.col("started_at").alias("ended_at")
        )
        transaction.insert("requests_hot", stored)
    columns = store.frame("select * from requests limit 0").columns
    assert store.rows(report(METRICS, columns, ["model"]).sql)[0]["acceptance_length"] == 2.0
    length = measure.cells(frame.with_row_index("row")).filter(pl.col("metric") == "acceptance_length")
    assert length["num"].to_list() == [6.0 * 2**63]


def test_only_the_known_levers_and_arms_are_measured() -> None:
    rows = frame_of([BASE, BASE | {"arm": "made up"}]).drop("arm").with_row_index("row")
    made_up = [{"key": f"l{number}", "value": "on"} for number in range(50)] + [{"key": "prefix_caching", "value": "on"}]
    named = rows.with_columns(pl.Series("levers", [made_up, made_up], dtype=rows.schema["arms"]))
    cells = measure.cells(named)
    assert set(cells.select("lever", "arm").unique().rows()) == {("speculation", "treated"), ("prefix_caching", "treated")}
    assert cells.filter((pl.col("metric") == measure.REQUESTS) & (pl.col("lever") == "speculation"))["n"].to_list() == [1]


def test_blocks_are_five_minutes_from_the_epoch() -> None:
    assert (BEGAN + timedelta(seconds=measure.BLOCK_S)).timestamp() % 300 == 0
