"""Figures: what is drawn, said in words and listed as numbers is the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards import charts, segment_charts
from dashboards.charts import Series

START = datetime(2026, 3, 2, tzinfo=UTC)


def _bucket(arm: str | None, number: int = 0, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("ttft_s", "ttft_s_p50", "ttft_s_p95", "decode_s", "gaps", "draft_tokens", "accepted_tokens"))
    counts = dict.fromkeys(("n", "timed_n", "ttft_n", "drafted_n", "verified_n"), 0)
    rest = {"verify_steps": None, "verified_tokens": None}
    return {"bucket": START + timedelta(minutes=30 * number), "arm": arm, **empty, **counts, **rest, **values}


def test_the_drawing_loads_nothing_and_takes_its_colors_from_the_page() -> None:
    figure = charts.lines(
        "k", "Title", [Series("a", "var(--treated)", [(START, 0.02, 3), (START + timedelta(hours=1), 0.03, 4)])], charts.MILLISECONDS, ""
    )
    svg = str(figure.svg)
    assert svg.startswith("<svg")
    assert 'stroke="var(--treated)"' in svg
    assert not re.search(r"<script|<image|href=", svg)


def test_the_words_and_the_numbers_are_those_of_the_lines() -> None:
    figure = charts.lines(
        "k", "Latency", [Series("on", "red", [(START, 0.02, 3), (START + timedelta(hours=1), 0.03, 4)])], charts.MILLISECONDS, ""
    )
    assert figure.label == "Latency: on went from 20 to 30 ms"
    assert figure.numbers == [["2026-03-02 00:00", "20", "3"], ["2026-03-02 01:00", "30", "4"]]


def test_a_hostile_name_is_text_in_the_drawing() -> None:
    series = [Series(name, "red", [(START, 1.0, 1)]) for name in ("<script>alert(1)</script>", "b")]
    assert "<script" not in str(charts.lines("k", "t", series, charts.PLAIN, "").svg)


def test_at_most_5000_rows_are_drawn() -> None:
    points = [(START + timedelta(minutes=n), 1.0, 1) for n in range(charts.MOST_ROWS + 50)]
    svg = str(charts.interval("k", "t", [(t, v, None, None) for t, v, _ in points], [], "").svg)
    assert svg.count("<path") <= charts.MOST_ROWS + 20


def test_later_first_tokens_than_control_count_into_net_itl() -> None:
    treated = _bucket("treated", timed_n=10, decode_s=20.0, gaps=1000.0, ttft_s=0.5)
    control = _bucket("control", timed_n=5, decode_s=15.0, gaps=500.0, ttft_s=0.3)
    assert segment_charts.net_itl_s(treated, control) == (20.0 + 10 * 0.2) / 1000
    assert segment_charts.net_itl_s(treated, None) == 0.02
    assert segment_charts.net_itl_s(control, treated) == 0.03


def test_a_bucket_without_requests_of_two_tokens_is_no_point_not_zero() -> None:
    rows = [_bucket("treated", 0, n=3), _bucket("treated", 1, n=3, timed_n=2, decode_s=1.0, gaps=50.0)]
    figure = segment_charts.figures(rows, [], [], "30 min")[0]
    assert figure.numbers == [["2026-03-02 00:30", "20", "2"]]


def test_what_is_missing_says_why() -> None:
    figures = {figure.key: figure for figure in segment_charts.figures([_bucket(None, n=3)], [], [], "30 min")}
    assert figures["acceptance"].svg is None
    assert figures["acceptance"].note == "Not available: no engine puts draft acceptance on its span; a response tap brings it."
    assert "no control arm" in figures["gain"].note


def test_the_note_of_an_effect_without_a_gain_is_shown() -> None:
    effect = {"gain": None, "note": "fewer than 3 blocks"}
    assert segment_charts.figures([], [effect], [], "30 min")[1].note == "Not available: fewer than 3 blocks."
