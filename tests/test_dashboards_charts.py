"""Figures: what is drawn, said in words and listed as numbers is the same."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboards import charts, drawing_child, segment_charts
from dashboards.charts import Axis, Period, Series
from dashboards.figure import Figure

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
HALF = timedelta(minutes=30)
DAY = Period(START, START + timedelta(days=1))


def _bucket(arm: str | None, number: int = 0, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("ttft_s", "ttft_s_p50", "ttft_s_p95", "decode_s", "gaps", "draft_tokens", "accepted_tokens"))
    counts = dict.fromkeys(("n", "timed_n", "ttft_n", "drafted_n", "verified_n"), 0)
    more = (
        "verify_steps",
        "verified_tokens",
        "cached_tokens",
        "prompt_tokens",
        "hits",
        "sent_bytes",
        "sendable_bytes",
        "gpu_s",
        "gpu_tokens",
    )
    rest = {**dict.fromkeys(more), **dict.fromkeys(("skipped_n", "hit_n", "sent_n", "gpu_n"), 0)}
    return {"bucket": START + timedelta(minutes=30 * number), "arm": arm, **empty, **counts, **rest, **values}


def _lines(series: list[Series], axis: Axis = charts.MILLISECONDS_PER_TOKEN) -> Figure:
    return charts.lines("k", "Title", series, axis, "", DAY, HOUR)


def _svg(figure: Figure) -> str:
    return drawing_child.svg(figure.drawing) if figure.drawing else ""


def _drawn_lines(figure: Figure) -> list[str]:
    """The paths of the lines alone: `M` begins a stroke."""
    return re.findall(r'<path d="([^"]*)" stroke="[^"]*" stroke-width="2.2"', _svg(figure))


def test_the_drawing_loads_nothing_and_takes_its_colors_from_the_page() -> None:
    figure = _lines([Series("a", "var(--treated)", [(START, 0.02, 3), (START + HOUR, 0.03, 4)])])
    svg = _svg(figure)
    assert svg.startswith("<svg")
    assert 'stroke="var(--treated)"' in svg
    assert not re.search(r"<script|<image|href=", svg)


def test_the_words_and_the_numbers_are_those_of_the_lines() -> None:
    figure = _lines([Series("on", "red", [(START, 0.02, 3), (START + HOUR, 0.03, 4)])])
    assert figure.label == "Title: on went from 20 to 30 ms/token"
    assert figure.numbers == [["2026-03-02 00:00", "20", "3"], ["2026-03-02 01:00", "30", "4"]]


def test_a_hostile_name_is_text_in_the_drawing() -> None:
    series = [Series(name, "red", [(START, 1.0, 1)]) for name in ("<script>alert(1)</script>", "b")]
    assert "<script" not in _svg(_lines(series))


def test_at_most_5000_rows_are_drawn() -> None:
    points = [(START + timedelta(minutes=n), 1.0, 1) for n in range(charts.MOST_ROWS + 50)]
    svg = _svg(charts.interval("k", "t", [(t, v, None, None) for t, v, _ in points], [], "", DAY, HOUR))
    assert svg.count("<path") <= charts.MOST_ROWS + 20


def test_later_first_tokens_than_control_count_into_net_itl() -> None:
    treated = _bucket("treated", timed_n=10, decode_s=20.0, gaps=1000.0, ttft_s=0.5)
    control = _bucket("control", timed_n=5, decode_s=15.0, gaps=500.0, ttft_s=0.3)
    assert segment_charts.net_itl_s(treated, control) == (20.0 + 10 * 0.2) / 1000
    assert segment_charts.net_itl_s(treated, None) == 0.02
    assert segment_charts.net_itl_s(control, treated) == 0.03


def test_a_bucket_without_requests_of_two_tokens_is_no_point_not_zero() -> None:
    rows = [_bucket("treated", 0, n=3), _bucket("treated", 1, n=3, timed_n=2, decode_s=1.0, gaps=50.0)]
    figure = {figure.key: figure for figure in segment_charts.figures(rows, [], [], HALF, DAY)}["net-itl"]
    assert figure.numbers == [["2026-03-02 00:30", "20", "2"]]


def test_what_is_missing_says_why() -> None:
    figures = {figure.key: figure for figure in segment_charts.figures([_bucket(None, n=3)], [], [], HALF, DAY)}
    assert figures["acceptance"].drawing is None
    assert figures["acceptance"].note == "No data: no engine puts draft acceptance on its span; a response tap brings it."
    assert figures["gain"].note.endswith("no control arm: mark some replicas leverwatch.arm.speculation = control.")


def test_the_note_of_an_effect_without_a_gain_is_shown() -> None:
    effect = {"until": START, "gain": None, "note": "fewer than 3 blocks"}
    assert segment_charts.figures([], [effect], [], HALF, DAY)[0].note == "No data: fewer than 3 blocks."


def test_a_line_is_broken_where_a_bucket_is_missing() -> None:
    figure = _lines([Series("a", "red", [(START + n * HOUR, 0.02, 1) for n in (0, 1, 4, 5)])])
    assert [path.count("M") for path in _drawn_lines(figure)] == [2]
    assert len(figure.numbers) == 4


def test_a_gain_is_not_drawn_over_blocks_that_were_not_compared() -> None:
    band = [(START + n * HOUR, 0.1, 0.05, 0.15) for n in (0, 1, 4, 5)]
    assert [path.count("M") for path in _drawn_lines(charts.interval("k", "t", band, [], "", DAY, HOUR))] == [2]


def test_p50_and_p95_are_of_the_same_requests_and_counted_once() -> None:
    rows = [_bucket("treated", n, n=7, ttft_n=7, ttft_s=0.2, ttft_s_p50=0.2, ttft_s_p95=0.5) for n in range(2)]
    figure = {figure.key: figure for figure in segment_charts.figures(rows, [], [], HALF, DAY)}["ttft"]
    assert [row[-1] for row in figure.numbers] == ["7", "7"]
    assert figure.n == 14
    assert figure.facts[0] == "n 14"


def test_arms_are_different_requests_and_added_up() -> None:
    rows = [_bucket("treated", n=7), _bucket("control", n=3)]
    figure = {figure.key: figure for figure in segment_charts.figures(rows, [], [], HALF, DAY)}["requests"]
    assert figure.numbers == [["2026-03-02 00:00", "7", "3", "10"]]


def test_a_bucket_that_the_period_cuts_is_left_out() -> None:
    cut = Period(START + timedelta(minutes=10), START + timedelta(minutes=100))
    requests = segment_charts.figures([_bucket("treated", n, n=5) for n in range(4)], [], [], HALF, cut)[-1]
    assert [row[0] for row in requests.numbers] == ["2026-03-02 00:30", "2026-03-02 01:00"]
    assert requests.note.endswith("Buckets that the period cuts are left out.")


def test_a_bucket_that_is_not_complete_is_shown_where_it_is_all_there_is_and_said() -> None:
    cut = Period(START, START + timedelta(minutes=10))
    requests = segment_charts.figures([_bucket("treated", n=5)], [], [], HALF, cut)[-1]
    assert requests.numbers == [["2026-03-02 00:00", "5", "5"]]
    assert requests.note.endswith("It is not complete yet.")


def test_every_chart_of_a_page_covers_the_same_time() -> None:
    known = {"timed_n": 5, "decode_s": 1.0, "gaps": 50.0, "ttft_n": 5, "ttft_s": 0.1, "ttft_s_p50": 0.1, "ttft_s_p95": 0.2}
    drafts = {"drafted_n": 5, "draft_tokens": 9.0, "accepted_tokens": 6.0, "verified_n": 5, "verify_steps": 3, "verified_tokens": 6}
    rows = [_bucket("treated", n, n=5, **known, **(drafts if n == 2 else {})) for n in range(4)]
    effect = {"gain": 0.1, "gain_low": 0.0, "gain_high": 0.2, "blocks": 24, "n_a": 5, "n_b": 5, "note": None}
    effects = [{"until": START + timedelta(minutes=150 + 5 * n), **effect} for n in range(2)]
    shown = [re.findall(r">(\w+ \d\d|\d\d:\d\d)</text>", _svg(figure)) for figure in segment_charts.figures(rows, effects, [], HALF, DAY)]
    shown = [labels for labels in shown if labels]
    assert len(shown) == 6
    assert all(labels == shown[0] for labels in shown)
    assert shown[0][0] == "Mar 02"
    assert shown[0][-1] == "02:30"


def test_a_wide_interval_is_clipped_and_said_so() -> None:
    band = [(START, 0.1, -1.4, 0.9), (START + HOUR, 0.1, 0.05, 0.15)]
    figure = charts.interval("k", "t", band, [], "Note.", DAY, HOUR)
    assert figure.note.replace("\N{NO-BREAK SPACE}", " ") == "Note. Clipped at \N{PLUS-MINUS SIGN}60 % in 1 of 2 points."
    assert ">clipped</text>" in _svg(figure)
    assert ">80</text>" not in _svg(figure)
    assert figure.numbers[0][2].startswith("\N{MINUS SIGN}140")
    assert "lipped" not in charts.interval("k", "t", band[1:], [], "Note.", DAY, HOUR).note
    assert "lipped" not in _svg(charts.interval("k", "t", band[1:], [], "Note.", DAY, HOUR))


def test_acceptance_length_is_drawn_from_one_token_on() -> None:
    rows = [_bucket("treated", n, verified_n=5, verify_steps=100, verified_tokens=218 + n) for n in range(3)]
    figure = {figure.key: figure for figure in segment_charts.figures(rows, [], [], HALF, DAY)}["length"]
    assert re.findall(r">([\d.]+)</text>", _svg(figure))[0] == "1"


def test_no_request_is_not_a_missing_attribute() -> None:
    figure = segment_charts.figures([], [{"until": START, "gain": None, "note": None}], [], HALF, DAY)[-1]
    assert figure.note == "No request of this segment began in this period."
