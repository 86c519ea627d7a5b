"""SQL made from metric rows, held to the letter by golden files; `make golden` rewrites them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.metrics import METRICS, Metric, chosen
from queries.report import ReportError, moment, report

GOLDEN = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
COLUMNS = ["model", "tenant", "started_at"]


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


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_report_of_each_metric(metric: Metric, update_golden: bool) -> None:
    assert_matches_golden(f"report_of_{metric.name}", report([metric], COLUMNS).sql, update_golden)


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


@pytest.mark.parametrize("key", ["nope", "lever.", "lever.x'] or ['", "model; drop", 'model"'])
def test_a_key_that_is_no_column_is_refused(key: str) -> None:
    with pytest.raises(ReportError, match=r"is unknown;.* taken: a column of requests"):
        report(chosen(None), COLUMNS, [key])
