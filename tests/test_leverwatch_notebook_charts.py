"""Charts for notebooks: they hold what the connection says, with units, n and intervals, and few enough rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elsewhere_rooms
import polars as pl
import pytest
import vl_convert
from dashboards_rows import FLEETS, HOSTILE, NOW

from leverwatch.local import Local
from leverwatch.notebook_charts import CHARTS, MOST_ROWS, NothingToDrawError, UnknownChartError
from leverwatch.notebook_drawing import break_even
from pipeline.metrics import UnknownMetricError
from pipeline.segments import canonical

BAD = {key: value for key, value in FLEETS[1].keys.items() if value}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with elsewhere_rooms.room(tmp_path_factory.mktemp("data")) as room:
        yield Local(room)


def rows(spec: dict[str, Any], column: str) -> list[dict[str, Any]]:
    """The rows of a chart that have a column."""
    found = [layer.get("data") for layer in [spec, *spec.get("layer", [])]]
    values = [*(data["values"] for data in found if data and "values" in data), *spec.get("datasets", {}).values()]
    return next(one for one in values if one and column in one[0])


def test_every_chart_that_is_listed_can_be_drawn(asked: Local) -> None:
    assert asked.charts()["name"].to_list() == list(CHARTS)
    for name in ("gain", "gains", "metric", "verdicts"):
        spec = asked.chart(name, until=NOW).to_dict()
        assert vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).startswith("<svg"), name


def test_a_gain_over_time_is_that_of_the_effects_with_its_interval_and_n(asked: Local) -> None:
    spec = asked.chart("gain", segment=BAD, since="6h", until=NOW).to_dict()
    drawn = rows(spec, "gain_pct")
    named = {"segment": canonical(BAD), "until": NOW}
    expected = asked.room.store.frame(
        "select * from effects where segment = $segment and until > $until::timestamptz - interval 6 hours order by until", named
    )
    assert [one["gain_pct"] for one in drawn] == pytest.approx((100 * expected["gain"]).to_list())
    assert [one["low_pct"] for one in drawn] == pytest.approx((100 * expected["gain_low"]).to_list())
    assert "n 180 treated, 60 control" in spec["title"]["subtitle"]
    assert "%" in str(spec["layer"][1]["encoding"]["y"]["title"])


def test_a_segment_may_be_named_by_its_text_and_is_else_the_one_with_most_requests(asked: Local) -> None:
    by_text = asked.chart("gain", segment=canonical(BAD), until=NOW).to_dict()
    assert "512-2047" in by_text["title"]["subtitle"]
    assert "&lt;512" in vl_convert.vegalite_to_svg(asked.chart("gain", until=NOW).to_dict(), allowed_base_urls=[])


def test_newest_gains_stand_with_the_worst_first(asked: Local) -> None:
    drawn = rows(asked.chart("gains", until=NOW).to_dict(), "gain_pct")
    gains = [one["gain_pct"] for one in drawn]
    assert gains == sorted(gains)
    assert len(drawn) == sum(fleet.has_control for fleet in FLEETS)


def test_a_metric_is_that_of_the_report_in_its_display_unit(asked: Local) -> None:
    spec = asked.chart("metric", metric="tpot_s", by="model", since="6h", until=NOW).to_dict()
    drawn = {(one["from"], one["model"]): one["shown"] for one in rows(spec, "shown")}
    report = asked.report(by="hour,model", metrics="tpot_s", since="2026-03-02T06:00:00Z", until=NOW)
    told = {(f"{row['hour']:%Y-%m-%dT%H:%M:%SZ}", row["model"]): 1000 * row["tpot_s"] for row in report.to_dicts()}
    assert drawn == pytest.approx(told)
    assert "ms/token" in str(spec)
    assert HOSTILE in {model for _, model in drawn}
    assert "<script>" not in vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def test_a_segment_with_quotes_in_its_name_is_a_value_and_no_sql(asked: Local) -> None:
    drawn = rows(asked.chart("metric", metric="tpot_s", segment={"model": HOSTILE}, until=NOW).to_dict(), "shown")
    assert sum(one["n"] for one in drawn) == 96


def test_a_break_even_shows_each_bucket_and_the_edges() -> None:
    row = {"lever": "speculation", "segment": "{}", "key": "batch", "metric": "net_itl_s", "state": "resolved", "blocks": [4, 4, 0]}
    row |= {"buckets": ["<2", "2-3", "4-7"], "gains": [0.2, -0.1, None], "gains_low": [0.1, -0.2, None], "gains_high": [0.3, 0.0, None]}
    row |= {"signs": ["pays", "loses", "open"], "pays_edge": 2.0, "loses_edge": 4.0}
    spec = break_even(row).to_dict()
    assert [one["gain_pct"] for one in rows(spec, "bucket")] == pytest.approx([20.0, -10.0])
    assert "pays up to 2.0, loses from 4.0" in spec["title"]["subtitle"]


def test_no_chart_holds_more_rows_than_a_notebook_bears(asked: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    many = pl.DataFrame({"until": [NOW] * 9000, "gain": [0.1] * 9000, "gain_low": [0.0] * 9000, "gain_high": [0.2] * 9000})
    monkeypatch.setattr(asked, "sql", lambda *_: many.with_columns(n_a=pl.lit(1), n_b=pl.lit(1)), raising=False)
    assert len(rows(asked.chart("gain", segment=BAD, until=NOW).to_dict(), "gain_pct")) == MOST_ROWS


def test_what_cannot_be_drawn_is_said(asked: Local) -> None:
    with pytest.raises(UnknownChartError, match=r"chart 'gian' is unknown; did you mean 'gain'\? known: gain, gains, metric"):
        asked.chart("gian")
    with pytest.raises(UnknownMetricError, match="did you mean"):
        asked.chart("metric", metric="tpot", until=NOW)
    with pytest.raises(NothingToDrawError, match="no break-even of speculation is known between 2026-03-01 12:00 and 2026-03-02 12:00 UTC"):
        asked.chart("break_even", until=NOW)
    with pytest.raises(NothingToDrawError, match="no gain of prefix_caching"):
        asked.chart("gains", lever="prefix_caching", until=NOW)
