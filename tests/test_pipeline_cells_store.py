"""Cells in the store: a bound on segments, one row a cell once folded, and hours, days and weeks that late data corrects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_requests import BEGAN, frame_of, request_rows, stored

from leverwatch import report_source
from pipeline import cell_store, measure
from pipeline.cell_bins import RELATIVE_ERROR
from pipeline.metrics import METRICS, Metric, by_name
from queries import cells_report, cells_rolled, files
from queries.report import ReportError, report
from queries.store import Store

HOUR = timedelta(hours=1)
MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
HELD = [metric for metric in METRICS if cells_report.is_held(metric)]
TIERS = ("block", "hour", "day", "fleet", "week")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def rows(count: int, began: datetime = BEGAN, seed: int = 0, **fields: Any) -> pl.DataFrame:
    """Requests of three replicas and two models, with times and counts that differ."""
    told = [
        {
            "replica": f"r{(n + seed) % 3}", "model": f"m{n % 2}", "arm": ("treated", "control")[n % 2], "after_s": 17 * n % 900,
            "outcome": ("ok", "ok", "error")[n % 3], "ttft_s": 0.1 + 0.07 * ((n + seed) % 11), "e2e_s": 2.0 + n, "decode_s": 1.0 + 0.5 * n,
            "tpot_s": 0.01 * (1 + n % 5), "prompt_tokens": 100 + n, "cached_tokens": n, "output_tokens": 1 + n % 4, "prefill_s": 0.3,
        }
        | fields
        for n in range(count)
    ]  # fmt: skip
    shift = pl.col("started_at", "ended_at") + (began - BEGAN)
    return frame_of(told).with_columns(shift.cast(pl.Datetime("us", "UTC")))


def put(store: Store, requests: pl.DataFrame, sign: int = 1, **options: Any) -> None:
    made = measure.cells(requests)
    with store.write() as transaction:
        cell_store.add(transaction, made, sign, **options)
        cell_store.fold(transaction, made.keys["block_started_at"].unique().to_list())


def roll(store: Store, closed: datetime) -> None:
    while cells_rolled.roll_next(store, closed):
        pass


def held(store: Store, tier: str, metric: str = "requests") -> int:
    """How many requests a tier holds, all levers left out."""
    asked = (
        f"select coalesce(sum(n), 0)::bigint as n from {tier}_cells join cell_series using (series_id) join cell_metrics using (metric_id)"
    )
    return int(store.rows(f"{asked} where lever = '' and metric = $metric", {"metric": metric})[0]["n"])


def from_cells(store: Store, metrics: Sequence[Metric], by: Sequence[str] = (), **period: datetime) -> pl.DataFrame:
    ends = {"since": period.get("since"), "until": period.get("until")}
    question = report_source.from_cells(store, "cells", metrics, by, **ends, where=None)
    assert question is not None
    return store.frame(question.sql, question.params)


def test_segments_beyond_the_limit_are_one_and_those_that_came_first_stay(store: Store) -> None:
    for first in (0, 4):
        names = [f"model-{first + n}" for n in range(4)]
        made = rows(8).with_columns(pl.Series("model", [name for name in names for _ in range(2)]), arms=pl.lit(None, pl.List(pl.Null)))
        put(store, made.with_columns(rows(8)["levers"].alias("arms")), limit_segments=3)
    counted = "select segment, sum(n)::bigint as n from cells where metric = 'requests' group by segment order by segment"
    assert store.rows(counted) == [{"segment": f'{{"model":"model-{n}"}}', "n": 2} for n in range(3)] + [
        {"segment": '{"segment":"other"}', "n": 10}
    ]
    assert store.rows("select count(*) as n from other_segments") == [{"n": 5}]


def test_what_counted_as_other_is_taken_back_from_other(store: Store) -> None:
    first, late = rows(2, model="a"), rows(2, model="b")
    for requests, sign in ((first, 1), (late, 1), (late, -1)):
        put(store, requests, sign, limit_segments=1)
    assert store.rows("select distinct segment from cells where lever = ''") == [{"segment": '{"model":"a"}'}]


def test_other_is_a_key_of_its_own_in_a_report(store: Store) -> None:
    put(store, rows(4), limit_segments=1)
    frame = from_cells(store, [by_name()["ttft_s"]], ["model"])
    assert sorted(frame["model"].to_list()) == ["m0", "other"]
    assert frame["requests"].sum() == 4


def test_a_block_is_one_row_a_cell_once_folded_whatever_came_in_parts(store: Store) -> None:
    for seed in range(3):
        put(store, rows(20, seed=seed))
    doubled = "select count(*) as n from (select 1 from block_cells group by series_id, started_at, metric_id having count(*) > 1)"
    assert store.rows(doubled) == [{"n": 0}]
    assert held(store, "block") == 60


def test_a_quiet_hour_is_summed_up_and_an_hour_with_blocks_to_fold_is_not(store: Store) -> None:
    put(store, rows(10))
    with store.write() as transaction:
        transaction.execute("insert into dirty_blocks values ($at)", {"at": BEGAN})
    assert cells_rolled.roll_next(store, BEGAN + 2 * HOUR) == 0
    with store.write() as transaction:
        transaction.execute("delete from dirty_blocks")
    assert cells_rolled.roll_next(store, BEGAN + HOUR - timedelta(seconds=1)) == 0
    assert cells_rolled.roll_next(store, BEGAN + HOUR) == 1
    assert held(store, "hour") == 10


def test_late_requests_are_added_to_the_hour_the_day_and_the_week_and_taken_back(store: Store) -> None:
    put(store, rows(10, MONDAY + 5 * HOUR))
    roll(store, MONDAY + 9 * 24 * HOUR)
    assert [held(store, tier) for tier in TIERS] == [10] * 5
    late = rows(7, MONDAY + 5 * HOUR, seed=1)
    put(store, late)
    assert [held(store, tier) for tier in TIERS] == [17] * 5
    put(store, late, -1)
    assert [held(store, tier, "ttft_s") for tier in TIERS] == [10] * 5


def test_late_requests_of_an_hour_that_had_none_are_read_before_and_after_it_is_summed_up(store: Store) -> None:
    put(store, rows(10, MONDAY + 5 * HOUR))
    roll(store, MONDAY + 9 * 24 * HOUR)
    for began, count in ((MONDAY + 7 * HOUR, 14), (MONDAY + 50 * HOUR, 18)):
        put(store, rows(4, began))
        assert from_cells(store, [])["requests"].to_list() == [count]
        roll(store, MONDAY + 9 * 24 * HOUR)
        assert from_cells(store, [])["requests"].to_list() == [count]
        assert held(store, "week") == count


def test_everything_taken_back_leaves_no_row_in_any_tier(store: Store) -> None:
    first, second = rows(10, MONDAY), rows(10, MONDAY + 30 * HOUR)
    for requests in (first, second):
        put(store, requests)
    roll(store, MONDAY + 9 * 24 * HOUR)
    for requests in (first, second):
        put(store, requests, -1)
    put(store, rows(1, MONDAY + 250 * HOUR))  # a new hour: what late data touched is folded with it
    roll(store, MONDAY + 252 * HOUR)
    for tier in TIERS[2:]:
        for kind in cells_rolled.KINDS:
            assert store.rows(f"select count(*) as n from {tier}_{kind}") == [{"n": 0}], (tier, kind)


def same(store: Store, requests: pl.DataFrame, metrics: Sequence[Metric], by: Sequence[str], **period: datetime) -> None:
    """Holds the report from cells against the one over requests, column by column; percentiles within the stated error."""
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        transaction.insert("requests_hot", stored(requests))
    question = report(metrics, store.frame("select * from requests limit 0").columns, by, **period)
    wanted, got = store.frame(question.sql, question.params), from_cells(store, metrics, by, **period)
    assert got.columns == wanted.columns
    wanted, got = (frame.sort(by) if by else frame for frame in (wanted, got))
    for name in wanted.columns:
        if name.endswith("_provenance"):
            assert set(got[name].to_list()) <= {None, "cells"}
        elif wanted.schema[name].is_numeric():
            within = RELATIVE_ERROR if name.rpartition("_")[2] in ("p50", "p95", "p99") else 1e-9
            assert got[name].is_null().equals(wanted[name].is_null()), name
            assert ((got[name] - wanted[name]).abs() <= within * wanted[name].abs() + 1e-12).fill_null(value=True).all(), name
        elif not name.endswith("_totals"):
            assert got[name].equals(wanted[name]), name


@pytest.mark.parametrize("kind", sorted({metric.kind for metric in HELD} - {"rate"}))
def test_cells_say_what_the_requests_say(store: Store, kind: str) -> None:
    requests = rows(60)
    put(store, requests)
    same(store, requests, [metric for metric in HELD if metric.kind == kind], ["model"])


@given(st.lists(request_rows(), min_size=1, max_size=8))
@settings(
    max_examples=4, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_cells_say_what_any_requests_say(store: Store, drawn: list[dict[str, Any]]) -> None:
    fit = [{name: 7 if isinstance(value, int) and value > 10_000 else value for name, value in row.items()} for row in drawn]
    requests = frame_of(fit)
    put(store, requests)
    same(store, requests, [metric for metric in HELD if metric.kind != "rate"], [])
    put(store, requests, -1)


@pytest.mark.parametrize("by", [[], ["model", "hour"], ["replica", "day"], ["day", "hardware", "model"]], ids="-".join)
def test_weeks_days_hours_and_blocks_together_say_what_the_requests_say(store: Store, by: list[str]) -> None:
    hours = (0, 5, 30, 31, 24 * 7 + 3, 24 * 7 + 26, 24 * 7 + 27)
    requests = pl.concat([rows(12, MONDAY + hour * HOUR, seed=hour) for hour in hours])
    put(store, requests)
    roll(store, MONDAY + (24 * 8 + 3) * HOUR)
    metrics = [by_name()[name] for name in ("skipped_token_ratio", "ttft_s", "tpot_s", "request_load_spread", "error_rate")]
    same(store, requests, metrics, by)
    same(
        store,
        requests,
        metrics,
        by,
        since=MONDAY + 5 * HOUR + timedelta(minutes=5),
        until=MONDAY + (24 * 8 + 2) * HOUR + timedelta(minutes=10),
    )


def test_arms_of_a_lever_are_told_apart(store: Store) -> None:
    put(store, rows(20))
    frame = from_cells(store, [by_name()["ttft_s"]], ["arm.speculation", "batch_bucket"])
    assert dict(frame.select("arm.speculation", "requests").rows()) == {"treated": 10, "control": 10}
    assert frame["ttft_s_p50"].null_count() == 0


def test_a_rate_from_cells_says_that_sampling_was_not_looked_at(store: Store) -> None:
    put(store, rows(60))
    frame = from_cells(store, [by_name()["requests_per_s"]], since=BEGAN, until=BEGAN + timedelta(minutes=10))
    inside = rows(60).filter(pl.col("started_at") < BEGAN + timedelta(minutes=10))
    assert frame["requests_per_s"].to_list() == [pytest.approx(len(inside) / 600)]
    assert frame["requests_per_s_totals"].to_list() == ["unchecked"]


@pytest.mark.parametrize(
    ("metrics", "by", "where", "told"),
    [
        (["ttft_s"], ["route"], None, "key 'route' is not in cells"),
        (["ttft_s"], ["lever.speculation"], None, "key 'lever.speculation' is not in cells"),
        (["ttft_s"], ["temperature_bucket"], None, "key 'temperature_bucket' is not in cells"),
        (["net_itl_s"], [], None, "metric 'net_itl_s' is not kept in cells"),
        (["ttft_s"], ["arm.speculation", "replica"], None, "of all replicas together"),
        (["ttft_s"], ["arm.speculation", "arm.kv_quantization"], None, "the arms of one lever apart at a time"),
        (["ttft_s"], ["hour", "day"], None, "one of them at a time"),
        (["ttft_s"], ["tenant"], None, "judge_by_tenant"),
        (["ttft_s"], [], "model = 'm'", "a condition needs the requests"),
    ],
)
def test_what_cells_do_not_hold_is_refused_where_they_are_asked_and_left_to_requests_else(
    store: Store, metrics: list[str], by: list[str], where: str | None, told: str
) -> None:
    chosen = [by_name()[name] for name in metrics]
    with pytest.raises(ReportError, match=told):
        report_source.from_cells(store, "cells", chosen, by, None, None, where)
    assert report_source.from_cells(store, "auto", chosen, by, None, None, where) is None


def test_auto_reads_cells_where_the_requests_of_the_beginning_are_gone(store: Store) -> None:
    put(store, rows(5))
    asked: tuple[Any, ...] = ([by_name()["ttft_s"]], ["model"])
    early, late = BEGAN - HOUR, BEGAN + 2 * HOUR
    assert report_source.from_cells(store, "auto", *asked, early, None, None) is None
    with store.write() as transaction:
        transaction.execute(
            "insert into retention_log values ('requests', $since, $until, 5, null, 'age', now())", {"since": BEGAN, "until": BEGAN + HOUR}
        )
    assert report_source.from_cells(store, "auto", *asked, early, None, None) is not None
    assert [report_source.from_cells(store, "auto", *asked, since, None, None) for since in (late, None)] == [None, None]


def test_cells_of_before_are_kept_under_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = files.schema()
    monkeypatch.setattr(files, "schema", lambda: [step for step in steps if step[0] < 17])
    old = Store(tmp_path)
    with old.write() as transaction:
        transaction.execute(
            "insert into cells values ($segment, 'speculation', 'treated', 'r', $at, 'ttft_s', 3, 1.5, 3, 1, 3, 1.5)",
            {"segment": '{"input_bucket":"<512","model":"m"}', "at": BEGAN},
        )
    old.close()
    monkeypatch.setattr(files, "schema", lambda: steps)
    store = Store(tmp_path)
    found = store.rows("select segment, lever, arm, replica, block_started_at, metric, n, num, known from cells")
    assert [tuple(row.values()) for row in found] == [
        ('{"input_bucket":"<512","model":"m"}', "speculation", "treated", "r", BEGAN, "ttft_s", 3, 1.5, 3)
    ]
    assert store.rows("select model, input_bucket, hardware from cell_segments where segment_id > 0") == [
        {"model": "m", "input_bucket": "<512", "hardware": None}
    ]
    roll(store, BEGAN + HOUR)
    assert store.rows("select n from hour_cells") == [{"n": 3}]
    store.close()
