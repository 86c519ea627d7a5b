"""SQL made from metric rows, held to the letter by golden files; `make golden` rewrites them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from leverwatch.config import Config, SqlConfig
from leverwatch.engine_room import EngineRoom
from pipeline.metrics import CORE, METRICS, Metric, Slo, chosen, with_slo
from queries import metric_sql
from queries.report import ReportError, moment, report
from queries.store import Store

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
COLUMNS = ["model", "tenant", "started_at"]
SHOWN = (*CORE, "tpot_s", "ttft_s", "batch_at_admission", "error_rate", "abort_rate", "prefill_avoided_s")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("metric_sql"))


def assert_matches_golden(name: str, text: str, update: bool) -> None:
    path = GOLDEN / f"{name}.sql"
    broken = text.replace(" from ", "\nfrom ").replace("), ", "),\n").replace(", ", ",\n    ") + "\n"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(broken, encoding="utf-8")
    assert broken == path.read_text(encoding="utf-8")


def test_report_of_the_core_metrics_by_model_and_arm(update_golden: bool) -> None:
    asked = report(chosen(None), COLUMNS, ["model", "arm.speculation", "hour"], since=NOW)
    assert_matches_golden("report_of_the_core_metrics_by_model_and_arm", asked.sql, update_golden)
    assert asked.params == {"since": NOW}


@pytest.mark.parametrize("metric", chosen(SHOWN), ids=lambda metric: metric.name)
def test_report_of_a_metric(metric: Metric, update_golden: bool) -> None:
    assert_matches_golden(f"report_of_{metric.name}", report([metric], COLUMNS).sql, update_golden)


def test_what_counts_and_what_it_adds_of_every_metric(update_golden: bool) -> None:
    told = []
    for metric in with_slo(Slo(0.5, 0.05, 30.0)):
        parts = {
            "numerator": metric.numerator,
            "denominator": metric.denominator,
            "times": metric.times,
            "percentiles": metric.percentiles_of,
        }
        told += [f"-- {metric.name}, where {metric_sql.counts(metric)}"]
        told += [f"{metric_sql.arithmetic(text)} as {part}" for part, text in parts.items() if text not in ("", "1")]
    path = GOLDEN / "metric_sql.txt"
    if update_golden:
        path.write_text("\n".join(told) + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines() == told


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_what_is_known_is_never_null_and_what_counts_is_known(store: Store, metric: Metric) -> None:
    virtual = "".join(f"null::double as {name}, " for name in metric_sql.virtual_columns(metric))
    row = pl.DataFrame({"request_id": ["a"], "trace_id": ["t"], "started_at": [NOW], "ended_at": [NOW], "outcome": ["ok"]})
    with store.write() as transaction:
        transaction.execute("delete from requests_hot")
        transaction.insert("requests_hot", row)
        asked = f"select {metric_sql.known(metric)} as known, {metric_sql.counts(metric)} as counts from (select {virtual}* from requests)"
        (known, counts), *_ = transaction.frame(asked).rows()
    assert known is not None
    assert known or not counts


def test_a_condition_whose_columns_are_asked_for_anyway_is_asked_once() -> None:
    (metric,) = chosen(("interconnect_efficiency",))
    assert metric_sql.known(metric) == "kv_transfer_bytes is not null and kv_transfer_s is not null and link_peak_bytes_per_s is not null"


def test_a_truth_that_is_known_without_every_column_is_asked_as_a_whole() -> None:
    (metric,) = chosen(("good_fraction",), Slo(ttft_s=0.5))
    good = "((outcome == 'ok') and (ttft_s::double <= 0.5e0)) is not null"
    assert metric_sql.known(metric) == f"{good} and outcome is not null"


def test_percentiles_read_more_columns_than_say_what_is_known() -> None:
    (metric,) = chosen(("tpot_s",))
    assert metric_sql.columns_of(metric) == ["decode_s", "output_tokens"]
    assert metric_sql.read_columns(metric) == ["decode_s", "output_tokens", "tpot_s"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", datetime(2026, 11, 29, 10, 30, tzinfo=UTC)),
        ("24h", datetime(2026, 11, 28, 12, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 22, 12, tzinfo=UTC)),
        ("2026-11-29T10:00:00", datetime(2026, 11, 29, 10, tzinfo=UTC)),
        ("2026-11-29T12:00:00+02:00", datetime(2026, 11, 29, 10, tzinfo=UTC)),
        ("2026-11-29", datetime(2026, 11, 29, tzinfo=UTC)),
    ],
)
def test_a_time_is_iso_8601_in_utc_or_an_age(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "9999999999d",
        "9" * 5000 + "s",
        "800000d",
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
        "yesterday",
        "10000-01-01",
        "",
    ],
)
def test_a_time_outside_the_calendar_or_none_at_all_is_refused(text: str) -> None:
    with pytest.raises(ReportError, match=r"ISO 8601 or an age such as 90m, 24h, 7d is taken"):
        moment(text, NOW)


def test_a_key_or_a_metric_is_taken_once() -> None:
    with pytest.raises(ReportError, match="key 'model' came twice"):
        report(chosen(None), COLUMNS, ["model", "tenant", "model"])
    with pytest.raises(ReportError, match="metric 'net_itl_s' came twice"):
        report(chosen(("net_itl_s", "net_itl_s")), COLUMNS)


def test_every_column_is_a_key_of_every_metric_or_refused_with_the_metric_that_has_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    columns = store.frame("select * from requests limit 0").columns
    refused = set()
    for metrics in (METRICS, chosen(("tpot_s",)), chosen(("net_itl_s", "net_itl_gain")), chosen(("batch_at_admission",))):
        taken = []
        for key in columns:
            try:
                report(metrics, columns, [key], since=NOW)
            except ReportError as error:
                assert f"key {key!r} is also a column of metric" in str(error)
                refused.add((key, len(metrics)))
            else:
                taken.append(key)
        asked = report(metrics, columns, taken, since=NOW)
        assert store.frame(f"explain {asked.sql}", asked.params).height
    store.close()
    named = {metric.name for metric in METRICS if metric.kind != "quantile"}.intersection(columns)
    assert named >= {"tpot_s", "batch_at_admission", "kv_usage"}
    assert refused == {("tpot_s", 1), ("batch_at_admission", 1), *((name, len(METRICS)) for name in named)}


@pytest.mark.parametrize("key", ["nope", "lever.", "lever.x'] or ['", "model; drop", 'model"'])
def test_a_key_that_is_no_column_is_refused(key: str) -> None:
    with pytest.raises(ReportError, match=r"is unknown;.* taken: a column of requests"):
        report(chosen(None), COLUMNS, [key])


@pytest.fixture
def room(tmp_path: Path) -> Iterator[EngineRoom]:
    """A data folder with three requests of three models, one of them named like a parameter."""
    opened = EngineRoom(tmp_path, Config(sql=SqlConfig(limit_rows=2)))
    rows = pl.DataFrame({"request_id": ["a", "b", "c"], "model": ["$since", "m", "n"], "started_at": NOW, "ended_at": NOW})
    with opened.store.write() as transaction:
        transaction.insert("requests_hot", rows.with_columns(pl.lit("t").alias("trace_id"), pl.lit("ok").alias("outcome")))
    yield opened
    opened.close()


def test_a_strangers_condition_is_taken_to_the_letter(room: EngineRoom) -> None:
    frame = room.report(by=["model"], metrics=["error_rate"], since=NOW, until=NOW + timedelta(hours=1), where="model = '$since'")
    assert frame["model"].to_list() == ["$since"]
    assert room.report(metrics=["error_rate"], since=NOW + timedelta(hours=1), where="model <> '$until'")["requests"].to_list() == [0]


def test_a_report_with_a_condition_is_whole_or_refused(room: EngineRoom) -> None:
    assert room.report(by=["model"], metrics=["error_rate"], where="model in ('m', 'n')").height == 2
    with pytest.raises(ReportError, match=r"the report has more than 2 segments, .*: name fewer keys or narrow it"):
        room.report(by=["model"], metrics=["error_rate"], where="true")
