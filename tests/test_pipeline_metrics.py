"""A metric is a row of data: its SQL and its Polars form say the same of any requests."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_requests import MOST, frame_of, request_rows, stored

from pipeline import arithmetic
from pipeline.metrics import CORE, METRICS, Metric, Slo, UnknownMetricError, by_name, chosen, in_cells, with_slo
from pipeline.values import Value, value
from queries import metric_sql
from queries.metric_text import ExpressionError
from queries.report import report
from queries.store import Store, Transaction

SLO = Slo(ttft_s=1.0, tpot_s=0.05, e2e_s=20.0)
ASKED = [metric for metric in with_slo(SLO) if metric.kind not in ("contrast", "label")]
UNSHARED = [
    "__import__('os')",
    "a if 1 else 2",
    "f(a)",
    "a ** 2",
    "a < b < c",
    "a and b",
    "(a > 1) * b",
    "a == 'x' + 'y'",
    "a < 'x'",
    "'x'",
]
UNSHARED += ["min(a)", "min(a, b, c)", "floor(a, b)", "min(a, key=b)", "l[0]", "l[-1]", "l[i]", "l[1.5]", "l[True]", "l[1:2]", "l[1][1]"]
UNSHARED += [
    "True",
    "not a",
    "-a",
    "a.b",
    "a // 2",
    "a in b",
    "lambda: a",
    "'x' == 'x'",
    "(a > 1) == (b > 1)",
    "a or None",
    "1j",
    "a and (b > 1)",
    "a / 0",
    "a / None",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("metrics"))


def replaced(transaction: Transaction, frame: pl.DataFrame) -> None:
    transaction.execute("delete from requests_hot")
    transaction.insert("requests_hot", stored(frame))


def asked(store: Store, frame: pl.DataFrame, by: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """What a report of every metric says of these requests alone."""
    columns = store.frame("select * from requests limit 0").columns
    with store.write() as transaction:
        replaced(transaction, frame)
        return transaction.frame(report(ASKED, columns, by).sql).to_dicts()


def is_steady(metric: Metric, frame: pl.DataFrame) -> bool:
    """Whether the order of summing cannot decide on a value: sums of what nearly cancels are noise in either form."""
    absent = [pl.lit(None, pl.Float64).alias(name) for name in metric_sql.virtual_columns(metric)]
    known = frame.with_columns(absent).filter(arithmetic.counts(metric))
    texts = [text for text in (metric.numerator, metric.denominator, metric.times) if text]
    values = [known.with_columns(arithmetic.expression(text).cast(pl.Float64).alias("x"))["x"] for text in texts]
    return all(abs(found.sum()) >= 1e-6 * found.abs().sum() for found in values)


def is_same(by_sql: float | None, by_polars: float | None) -> bool:
    if by_sql is None or by_polars is None:
        return by_sql is by_polars
    return math.isclose(by_sql, by_polars, rel_tol=1e-9, abs_tol=1e-12)


def one(metric: str, *rows: dict[str, Any], slo: Slo | None = None, period_s: float | None = None) -> Value:
    (row,) = chosen((metric,), slo) if slo else chosen((metric,))
    return value(row, frame_of(list(rows)), period_s)


@given(st.lists(request_rows(), min_size=1, max_size=40))
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_sql_and_polars_agree_on_every_metric(store: Store, rows: list[dict[str, Any]]) -> None:
    whole = frame_of(rows)
    period_s = (whole["ended_at"].max() - whole["started_at"].min()).total_seconds()
    for row in asked(store, whole, ("model",)):
        frame = whole.filter(pl.col("model") == row["model"])
        for metric in ASKED:
            agree(row, metric, frame, value(metric, frame, period_s))


def agree(row: dict[str, Any], metric: Metric, frame: pl.DataFrame, mine: Value) -> None:
    assert row[f"{metric.name}_n"] == mine.n, metric.name
    assert row[f"{metric.name}_coverage"] == pytest.approx(mine.coverage), metric.name
    if metric.kind != "quantile" and is_steady(metric, frame):
        assert is_same(row[metric.name], mine.value), metric.name
    for tag, _ in metric_sql.QUANTILES:
        assert is_same(row.get(f"{metric.name}_{tag}"), mine.percentiles.get(tag)), (metric.name, tag)


@given(st.lists(request_rows(), min_size=2, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_order_of_requests_changes_no_value(rows: list[dict[str, Any]], random: Any) -> None:
    mixed = random.sample(rows, len(rows))
    for metric in ASKED:
        if is_steady(metric, frame_of(rows)):
            assert is_same(value(metric, frame_of(rows)).value, value(metric, frame_of(mixed)).value), metric.name


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_reads_the_same_columns_in_sql_and_polars(metric: Metric) -> None:
    texts = [text for text in (metric.numerator, metric.denominator, metric.times, metric.known_when) if text]
    read = {name for text in texts for name in arithmetic.expression(text).meta.root_names()} | ({metric.across} - {""})
    assert set(metric_sql.columns_of(metric)) == read == set(arithmetic.columns_of(metric))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_reads_columns_of_requests_or_virtual_ones(store: Store, metric: Metric) -> None:
    columns = store.frame("select * from requests limit 0").columns
    assert set(metric_sql.read_columns(metric)) <= {*columns, *metric_sql.VIRTUAL_COLUMNS}


def test_a_block_without_requests_is_no_data_not_zero(store: Store) -> None:
    (row,) = asked(store, frame_of([]))
    assert row["requests"] == 0
    values = {name: found for name, found in row.items() if not name.endswith("_n") and name != "requests"}
    assert set(values.values()) == {None}
    assert all(value(metric, frame_of([])) == Value(None, 0, None) for metric in ASKED)


def test_an_unknown_metric_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownMetricError, match=r"metric 'tpot' is unknown; did you mean 'tpot_s'.*known: .*tpot_s"):
        chosen(("tpot",))


def test_the_default_is_the_five_and_all_is_every_one() -> None:
    assert tuple(metric.name for metric in chosen(None)) == CORE
    assert chosen(("all",)) == METRICS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_states_what_it_is_and_what_brings_it(metric: Metric) -> None:
    assert metric.title
    assert metric.unit
    assert metric.formula
    assert metric.source
    assert metric is by_name()[metric.name]
    assert metric.missing or metric.name in ("error_rate", "abort_rate", "requests_per_s")
    assert len(METRICS) == len(by_name())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_the_parts_of_its_kind_and_no_others(metric: Metric) -> None:
    assert bool(metric.times) == (metric.kind == "product")
    assert bool(metric.across) == (metric.kind in ("spread", "slope"))
    assert metric.denominator == "1" or metric.kind in ("ratio", "product", "contrast", "label")
    assert not metric.percentiles_of or metric.kind != "quantile"
    assert metric.numerator or metric.kind == "contrast"


@pytest.mark.parametrize("text", UNSHARED)
def test_arithmetic_that_sql_and_polars_do_not_share_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match="is not taken"):
        arithmetic.expression(text)
    with pytest.raises(ExpressionError, match="is not taken"):
        metric_sql.arithmetic(text)


def test_a_text_that_is_no_arithmetic_is_refused() -> None:
    with pytest.raises(ExpressionError, match=r"metric arithmetic 'a \+': it cannot be read"):
        arithmetic.expression("a +")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min(ttft_s, e2e_s)", [1.0, None, None]),
        ("max(ttft_s, e2e_s)", [2.0, None, None]),
        ("floor(e2e_s / 0.75)", [2.0, 2.0, None]),
        ("e2e_s / queue_s", [None, 4.0, None]),
        ("accepted_by_position[2]", [7.0, None, None]),
        ("outcome == 'ok' and ttft_s <= 1", [1.0, None, 0.0]),
        ("outcome != 'ok' or ttft_s <= 1", [1.0, None, 1.0]),
        ("None", [None, None, None]),
    ],
)
def test_what_is_not_known_goes_through_arithmetic_in_both_forms(store: Store, text: str, expected: list[float | None]) -> None:
    rows = [
        {"outcome": "ok", "ttft_s": 1.0, "e2e_s": 2.0, "queue_s": 0.0, "accepted_by_position": [9, 7]},
        {"outcome": "ok", "e2e_s": 2.0, "queue_s": 0.5, "accepted_by_position": [9]},
        {"outcome": "error", "queue_s": 1.0, "after_s": 0},
    ]
    frame = frame_of([{"after_s": 0, **row} for row in rows])
    with store.write() as transaction:
        replaced(transaction, frame)
        by_sql = transaction.frame(f"select cast({metric_sql.arithmetic(text)} as double) as x from requests_hot order by request_id")
    assert by_sql["x"].to_list() == expected
    assert frame.with_columns(arithmetic.expression(text).cast(pl.Float64).alias("x"))["x"].to_list() == expected


def test_counts_near_the_largest_whole_number_fail_no_report(store: Store) -> None:
    odd = dict.fromkeys(("accepted_tokens", "verify_steps", "prompt_tokens"), MOST) | {"output_tokens": -MOST - 1, "decode_s": 1e308}
    frame = frame_of([{**odd, "model": "m", "outcome": "ok", "after_s": 0}] * 3)
    with store.write() as transaction:
        replaced(transaction, frame)
    columns = store.frame("select * from requests limit 0").columns
    plain = tuple(metric.name for metric in ASKED)
    assert store.rows(report(chosen(plain), columns, ["model"]).sql)[0]["acceptance_length"] == 2.0
    assert value(by_name()["acceptance_length"], frame).value == 2.0


def test_an_error_without_a_first_token_is_not_good_and_a_slow_answer_neither() -> None:
    quick, slow, failed = {"outcome": "ok", "ttft_s": 0.5}, {"outcome": "ok", "ttft_s": 2.0}, {"outcome": "error"}
    left_out = [{"outcome": "aborted"}, {"outcome": "unknown"}, {"outcome": "ok"}]
    rows = [{"after_s": 0, **row} for row in (quick, slow, failed, *left_out)]
    found = one("good_fraction", *rows, slo=Slo(ttft_s=1.0))
    assert (found.value, found.n) == (pytest.approx(1 / 3), 3)
    assert found.coverage == pytest.approx(5 / 6)  # one answer has no known first token
    assert one("goodput_requests_per_s", *rows, slo=Slo(ttft_s=1.0), period_s=2.0).value == 0.5


def test_where_all_is_known_to_be_bad_goodput_is_0_and_where_nothing_is_known_it_is_not() -> None:
    failed = [{"outcome": "error", "after_s": 0}]
    for name in ("goodput_requests_per_s", "goodput_output_tokens_per_s"):
        known = {"output_tokens": 5, **failed[0]}
        assert one(name, known, slo=Slo(ttft_s=1.0)).value == 0.0
        assert one(name, {"outcome": "ok", "after_s": 0}, slo=Slo(ttft_s=1.0)).value is None


def test_an_answer_of_one_token_keeps_to_a_limit_per_token() -> None:
    rows = [{"outcome": "ok", "output_tokens": 1, "after_s": 0}, {"outcome": "ok", "output_tokens": 9, "tpot_s": 0.2, "after_s": 0}]
    assert one("good_fraction", *rows, slo=Slo(tpot_s=0.1)).value == 0.5


def test_without_a_stated_slo_nothing_is_known_to_be_good() -> None:
    found = one("good_fraction", {"outcome": "ok", "ttft_s": 0.1, "after_s": 0})
    assert (found.value, found.n, found.coverage) == (None, 0, 0.0)
    assert "[slo]" in by_name()["good_fraction"].missing
    (stated,) = chosen(("good_fraction",), Slo(ttft_s=0.25, e2e_s=30.0))
    assert "ttft_s <= 0.25 and e2e_s <= 30" in stated.formula


def test_token_weighted_and_request_weighted_acceptance_are_two_numbers() -> None:
    rows = [{"draft_tokens": 100, "accepted_tokens": 20, "after_s": 0}, {"draft_tokens": 10, "accepted_tokens": 8, "after_s": 0}]
    assert one("draft_acceptance", *rows).value == pytest.approx(28 / 110)
    assert one("draft_acceptance_by_request", *rows).value == pytest.approx(0.5)


def test_acceptance_by_position_is_marginal_or_given_the_one_before() -> None:
    row = {"verify_steps": 10, "accepted_by_position": [8, 4], "after_s": 0}
    assert one("acceptance_at_2", row).value == pytest.approx(0.4)
    assert one("conditional_acceptance_at_2", row).value == pytest.approx(0.5)
    assert one("acceptance_at_3", row) == Value(None, 0, 0.0)


def test_accepted_tokens_that_an_answers_end_threw_away_raise_no_coverage_above_one() -> None:
    row = {"verify_steps": 4, "accepted_tokens": 12, "output_tokens": 15, "after_s": 0}  # 14 of 16 emitted
    assert one("draft_coverage", row).value == 1.0
    assert one("acceptance_length", row).value == 4.0
    assert one("emitted_tokens_per_step", row).value == 3.5


def test_the_ceiling_leaves_out_the_last_token_and_the_last_partial_block() -> None:
    row = {"prompt_tokens": 64, "cached_tokens": 48, "kv_block_tokens": 16, "after_s": 0}
    assert one("attainable_skip_ceiling", row).value == 0.75
    assert one("skipped_of_attainable", row).value == 1.0
    assert one("skipped_token_ratio", row).value == 0.75


def test_prefill_time_avoided_is_at_the_cost_of_computed_tokens() -> None:
    rows = [{"prompt_tokens": 100, "cached_tokens": 50, "prefill_s": 0.5, "after_s": 0}]
    rows += [{"prompt_tokens": 100, "cached_tokens": 0, "prefill_s": 1.0, "after_s": 0}]
    assert one("prefill_avoided_s", *rows).value == pytest.approx(25 * 1.5 / 150)


def test_exposed_transfer_is_never_negative_nor_more_than_the_transfer() -> None:
    common = {"queue_s": 0.1, "prefill_s": 0.4, "kv_transfer_s": 0.2, "after_s": 0}
    assert one("kv_transfer_exposed_share", {**common, "ttft_s": 0.4}).value == 0.0
    assert one("kv_transfer_exposed_share", {**common, "ttft_s": 0.6}).value == pytest.approx(0.5)
    assert one("kv_transfer_exposed_share", {**common, "ttft_s": 9.0}).value == 1.0


def test_spread_is_the_largest_replica_over_their_mean_and_leaves_out_the_nameless() -> None:
    rows = [
        {"replica": name, "prompt_tokens": tokens, "cached_tokens": 0, "after_s": 0} for name, tokens in (("a", 30), ("b", 10), (None, 99))
    ]
    found = one("affinity_load_spread", *rows)
    assert (found.value, found.n, found.coverage) == (1.5, 2, pytest.approx(2 / 3))


def test_a_queue_that_grows_on_each_replica_has_one_slope_whatever_their_level() -> None:
    rows = [{"replica": "a", "queue_depth": second // 10, "after_s": second} for second in range(0, 300, 10)]
    rows += [{"replica": "b", "queue_depth": 500 + second // 10, "after_s": second + 600} for second in range(0, 300, 10)]
    assert one("prefill_queue_growth", *rows).value == pytest.approx(0.1)


def test_a_rate_is_per_second_of_the_period_asked_or_of_what_there_is() -> None:
    rows = [{"output_tokens": 100, "after_s": 0}, {"output_tokens": 50, "after_s": 20}]
    assert one("output_tokens_per_s", *rows, period_s=60.0).value == 2.5
    assert one("output_tokens_per_s", *rows).value == 5.0  # 20 s to the second start, 10 s to its end


def test_a_price_that_was_not_joined_is_not_known() -> None:
    row = {"gpu_s": 36.0, "output_tokens": 1000, "after_s": 0}
    assert one("cost_per_million_output_tokens_usd", row) == Value(None, 0, 0.0)
    priced = frame_of([row]).with_columns(pl.lit(2.0 / 3600).alias("usd_per_gpu_s"))
    assert value(by_name()["cost_per_million_output_tokens_usd"], priced).value == pytest.approx(20.0)


def test_cells_hold_what_adds_up_and_nothing_that_the_configuration_decides() -> None:
    held = {metric.name for metric in with_slo(SLO) if in_cells(metric)}
    assert held >= {"skipped_token_ratio", "ttft_s", "tpot_s", "requests_per_s", "prefill_avoided_s", "affinity_load_spread"}
    assert held.isdisjoint(
        {"good_fraction", "cost_per_million_output_tokens_usd", "net_itl_s", "prefill_queue_growth", "bottleneck", "quality"}
    )
