"""The page on metrics says what the rows say, and so does the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leverwatch.config import Config, SloConfig
from leverwatch.engine_room import EngineRoom
from pipeline import metric_table
from pipeline.metric_docs import INTROS, page
from pipeline.metrics import CORE, METRICS, Metric, by_subject, in_cells
from queries.store import Store

PAGE = Path(__file__).parents[1] / "docs/metrics.md"


def test_the_page_is_the_one_that_the_rows_make(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make golden`"


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metrics_section_says_formula_source_traps_and_what_is_missing(metric: Metric) -> None:
    (told,) = (part for part in page().split("\n### ") if part.startswith(f"`{metric.name}`\n"))
    assert all(said in told.replace("&lt;", "<") for said in (metric.title, metric.formula, metric.source, metric.missing, *metric.traps))


def test_every_subject_has_an_introduction_and_the_cache_shows_why_hits_are_no_measure() -> None:
    assert INTROS.keys() == by_subject().keys()
    assert all(figure in page() for figure in ("0.373624", "0.999917"))


def test_the_table_holds_a_row_for_every_metric_with_what_its_row_says(tmp_path: Path) -> None:
    store = Store(tmp_path)
    metric_table.describe(store)
    metric_table.describe(store)
    rows = {row["name"]: row for row in store.frame("select * from metrics").to_dicts()}
    store.close()
    assert rows.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        row = rows[metric.name]
        assert (row["title"], row["unit"], row["better"], row["formula"]) == (metric.title, metric.unit, metric.better, metric.formula)
        assert (row["traps"], row["from_cells"], row["core"]) == (list(metric.traps), in_cells(metric), metric.name in CORE)
        assert row["times"] == (metric.times or None)


def test_the_table_states_the_slo_in_use(tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config(slo=SloConfig(ttft_s=0.4)))
    (row,) = room.store.rows("select formula, missing from metrics where name = 'good_fraction'")
    report = room.report(metrics=["good_fraction"])
    room.close()
    assert "ttft_s <= 0.4" in row["formula"]
    assert json.loads(report.write_json())[0]["good_fraction_n"] == 0
