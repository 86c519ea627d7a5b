"""The SQL page: what a URL runs and what it does not, the table, the chart, and text of strangers in all of them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader

from dashboards import drawing_child, sql_chart, sql_table, theme
from dashboards.page import Asked
from dashboards.pages import sql
from dashboards.sql_chart import Drawing
from dashboards.studio import Studio
from queries.questions import UnknownInvestigationError
from queries.results import SqlResult
from queries.sandbox import Sandbox

ONE = SqlResult([("a", "INTEGER")], pa.table({"a": [1]}), truncated=False, elapsed_s=0.01)


@pytest.fixture(scope="module")
def sandbox(page_sandbox: Sandbox) -> Sandbox:
    return page_sandbox


def _asked(sandbox: Sandbox, query: dict[str, str], studio: Studio | None = None, **headers: str) -> Asked:
    return Asked(StoreReader(sandbox._copies._store), query, NOW, path="/sql", sandbox=sandbox, headers=headers, studio=studio)


def test_the_page_lists_questions_tables_metrics_and_functions_and_runs_nothing(sandbox: Sandbox) -> None:
    html = sql.draw(_asked(sandbox, {}))
    for said in ("Hot replicas", "one row per logical request", "net_itl_gain", "quantile_cont", "Run a statement, or take a question"):
        assert said in html


def test_a_question_is_asked_by_its_name_and_its_parameters_are_a_form(sandbox: Sandbox) -> None:
    html = sql.draw(_asked(sandbox, {"question": "hot-replicas", "p.model": "no-such"}))
    assert "<h1>Hot replicas</h1>" in html
    assert 'name="p.since" value="24h"' in html
    assert 'name="p.model" value="no-such"' in html
    assert "The answer has no rows" in html
    with pytest.raises(UnknownInvestigationError, match="did you mean 'hot-replicas'"):
        sql.draw(_asked(sandbox, {"question": "hot-replica"}))


def test_text_of_strangers_is_text_in_the_table_the_form_the_chart_and_the_message(sandbox: Sandbox, studio: Studio) -> None:
    named = HOSTILE.replace('"', '""')
    asked = {"sql": f'select $m as "{named}", 1 as y, model from requests where model = $m limit 3', "p.m": HOSTILE}
    html = sql.draw(_asked(sandbox, {**asked, "chart": "bar", "x": "model", "y": "y"}, studio))
    assert "3 rows" in html
    assert "<svg" in html
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    wrong = sql.draw(_asked(sandbox, {"sql": f"select '{HOSTILE}"}))
    assert "<script>alert" not in wrong


def test_a_parameter_without_a_value_is_asked_for_and_nothing_runs(sandbox: Sandbox) -> None:
    html = sql.draw(_asked(sandbox, {"sql": "select $n + 1 as a"}))
    assert "$n need a value." in html
    assert 'name="p.n"' in html


@pytest.mark.parametrize(
    ("headers", "runs"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-user": "?1"}, True),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-user": "?1"}, False),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate"}, False),
    ],
)
def test_a_link_of_another_site_runs_nothing_unless_somebody_clicked_it(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], runs: bool
) -> None:
    ran: list[str] = []

    def run(text: str, *_: object, **__: object) -> SqlResult:
        ran.append(text)
        return ONE

    monkeypatch.setattr(sandbox, "run", run)
    html = sql.draw(_asked(sandbox, {"sql": "select 1 as a"}, **headers))
    assert bool(ran) is runs
    assert ("Another site led here" in html) is not runs
    assert list(sql.figures(_asked(sandbox, {"sql": "select 1 as a"}, **headers))) == []


def test_what_is_refused_says_why_and_what_is_taken(sandbox: Sandbox) -> None:
    html = sql.draw(_asked(sandbox, {"sql": "copy (select 1) to 'x'"}))
    assert "COPY is not taken: ad-hoc SQL only reads" in html
    assert 'role="alert"' in html


def test_a_limit_that_is_none_is_said(sandbox: Sandbox) -> None:
    for limit in ("0", "x", "5001", "9" * 40, "²"):
        with pytest.raises(ValueError, match="1 to 5,000 rows are taken here"):
            sql.draw(_asked(sandbox, {"sql": "select 1", "limit": limit}))


def test_nulls_numbers_and_long_values_are_shown_as_such() -> None:
    assert sql_table.cell(None).is_null
    assert sql_table.cell(0.123456789) == sql_table.Cell("0.123457", "0.123456789")
    assert sql_table.cell(2.5) == sql_table.Cell("2.5")
    long = sql_table.cell("x" * 500)
    assert (len(long.text), len(long.whole)) == (sql_table.CUT_CHARACTERS, 500)
    assert sql_table.cell({"a": [1]}).text == '{"a": [1]}'


def test_a_chart_is_drawn_of_columns_that_are_there(sandbox: Sandbox) -> None:
    result = sandbox.run("select range as x, range * 2.0 as y, 's' || range % 20 as s, 'text' as t from range(40)")
    chosen = sql_chart.drawing({"chart": "point", "x": "x", "y": "y", "series": "s"}, result)
    assert chosen is not None
    figure = sql_chart.figure(result, chosen, "T", "s")
    assert figure.drawing is not None
    assert "Of 20 series, the 12 with most rows are drawn." in figure.note
    assert "from 0.0 to 78.0" in figure.label
    assert len(figure.numbers) == 40
    for wrong, told in (({"chart": "pie"}, "known: line, bar, point"), ({"chart": "bar", "y": "t"}, "y 't'; taken: x, y")):
        with pytest.raises(sql_chart.ChartError, match=told):
            sql_chart.drawing(wrong, result)
    assert sql_chart.drawing({}, result) is None


def _hours() -> SqlResult:
    hours = [NOW.replace(hour=hour) for hour in (1, 2) for _ in range(2)]
    table = pa.table({"n": [9, 9, 9, 9], "arm": ["treated", "control"] * 2, "hour": hours, "itl_s": [0.1, 0.2, 0.3, 0.4]})
    kinds = [("n", "BIGINT"), ("arm", "VARCHAR"), ("hour", "TIMESTAMP WITH TIME ZONE"), ("itl_s", "DOUBLE")]
    return SqlResult(kinds, table, truncated=False, elapsed_s=0.01)


def test_what_a_url_leaves_open_is_drawn_over_time_with_a_line_for_each_arm() -> None:
    assert sql_chart.drawing({"chart": "line", "y": "itl_s"}, _hours()) == Drawing("line", "hour", "itl_s", "arm")
    assert sql_chart.drawing({"chart": "line", "series": ""}, _hours()) == Drawing("line", "hour", "n", "")
    assert sql_chart.drawing({"chart": "bar"}, ONE) == Drawing("bar", "a", "a", "")
    assert sql_chart.offered({}, _hours())["series"] == "arm"


def test_arms_have_their_colors_and_a_time_axis_names_its_zone(studio: Studio) -> None:
    drawn = sql_chart.figure(_hours(), Drawing("line", "hour", "itl_s", "arm"), "Arms").drawing
    assert drawn is not None
    assert "hour (UTC)" in studio.svg(drawn)
    assert sql_chart._colors(["control", "other", "treated"]) == [theme.CONTROL, theme.SECOND, theme.TREATED]
    assert len(sql_chart._colors([str(n) for n in range(12)])) == 12


def test_an_answer_without_numbers_or_values_has_no_chart(sandbox: Sandbox) -> None:
    result = sandbox.run("select 'a' as x, null::double as y")
    chosen = sql_chart.drawing({"chart": "bar"}, result)
    assert chosen is not None
    assert sql_chart.figure(result, chosen, "T").drawing is None
    with pytest.raises(sql_chart.ChartError, match="no column of numbers"):
        sql_chart.drawing({"chart": "bar"}, sandbox.run("select 'a' as x"))


@pytest.mark.parametrize("code", [0, 1, 27, 0xFFFE, 0xFFFF])
def test_a_character_that_no_drawing_can_hold_is_drawn_as_another(sandbox: Sandbox, studio: Studio, code: int) -> None:
    """The drawing library ends its process over one."""
    html = sql.draw(_asked(sandbox, {"sql": f"select chr({code}) || 'name' as x, 1 as y", "chart": "bar"}, studio))
    assert "\N{REPLACEMENT CHARACTER}name" in html


@pytest.mark.parametrize("x", ["i || repeat('x', 2000)", "i"])
def test_thousands_of_places_with_a_name_each_are_cut_and_said(sandbox: Sandbox, x: str) -> None:
    result = sandbox.run(f"select {x} as x, i as y from range(5000) t(i)")
    chosen = sql_chart.drawing({"chart": "bar"}, result)
    assert chosen is not None
    drawn = sql_chart.figure(result, chosen, "t")
    assert "Of 5,000 places, the first 200 are drawn." in drawn.note
    assert len(drawing_child.svg(drawn.drawing or "")) < 200_000


@pytest.mark.parametrize("at", ["timestamp 'infinity'", "timestamptz '290000-01-01'", "date '-infinity'"])
def test_a_time_beyond_the_calendar_is_left_out_of_a_drawing_and_said(sandbox: Sandbox, studio: Studio, at: str) -> None:
    kind = at.split()[0]
    sql_text = f"select {at} as x, 1 as y union all select {kind} '2026-03-04', 2 union all select {kind} '2026-03-05', 3"
    html = sql.draw(_asked(sandbox, {"sql": sql_text, "chart": "line"}, studio))
    assert "<svg" in html
    assert "1 rows without a value, or beyond the years that can be drawn, are not drawn." in html


def test_who_may_only_read_is_not_offered_to_keep_a_question(sandbox: Sandbox) -> None:
    asked = _asked(sandbox, {})
    assert 'id="save"' in sql.draw(asked)
    page = sql.draw(replace(asked, may_change=False))
    assert 'id="save"' not in page
    assert "This session may only read" in page
