"""Pages as modules, what their URLs choose, and figures as files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import dashboards_rows
import httpx
import polars as pl
import pytest
from dashboards_rows import HOSTILE, NOW, StoreReader

from dashboards import figure_files, filters, page_list, theme
from dashboards.choice import choice
from dashboards.figure import Figure, Sql
from dashboards.page import Asked
from dashboards.studio import Studio
from pipeline.segments import LEVERS
from queries import files
from queries.sandbox import Sandbox
from queries.store import Store


@pytest.fixture(scope="module")
def client(page_sandbox: Sandbox, studio: Studio) -> Iterator[httpx.Client]:
    with dashboards_rows.serving(page_sandbox, studio) as address, httpx.Client(base_url=address, timeout=30) as opened:
        yield opened


def test_every_page_is_found_once_and_lies_at_the_root() -> None:
    paths = [page.path for page in page_list.found()]
    assert len(set(paths)) == len(paths)
    assert {"/", "/segment", "/docs"} <= set(paths)
    assert all(path.count("/") == 1 for path in paths)


def test_navigation_takes_the_filters_along_and_marks_the_page(page_store: Store) -> None:
    query = {"model": HOSTILE, "since": "6h", "lever": "speculation", "after": "50"}
    links = {link.title: link for link in Asked(StoreReader(page_store), query, NOW, path="/segment", pages=page_list.found()).links}
    assert parse_qs(urlsplit(links["Segment"].url).query) == {"model": [HOSTILE], "since": ["6h"], "lever": ["speculation"]}
    assert [link.title for link in links.values() if link.is_current] == ["Segment"]
    assert links["Overview"].url.startswith("./?model=%3Cscript%3E")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"lever": "speculations"}, "did you mean 'speculation'"),
        ({"metric": "ttft"}, "metric 'ttft' is unknown"),
        ({"since": "yesterday"}, "ISO 8601 or an age"),
        ({"since": "1h", "until": "2025-01-01", "model": "m"}, None),
        ({"since": "2026-03-02", "until": "2026-03-01"}, "since has to lie before until"),
    ],
)
def test_a_choice_that_is_none_says_what_is_taken(query: dict[str, str], said: str | None) -> None:
    if said is None:
        assert choice(query, NOW).until - choice(query, NOW).since == timedelta(hours=1)
        return
    with pytest.raises((ValueError, KeyError), match=said):
        choice(query, NOW)


def test_a_form_says_any_with_a_star_and_unknown_with_nothing() -> None:
    assert choice({"model": "*", "hardware": "", "lever": "*", "metric": "*", "since": ""}, NOW).query == {"hardware": "", "since": "24h"}


def test_a_wrong_value_is_a_readable_page_with_status_400(client: httpx.Client) -> None:
    for path in ("/", "/segment"):
        answer = client.get(path, params={"since": "<script>"})
        assert answer.status_code == 400
        assert "ISO 8601 or an age such as 90m, 24h, 7d is taken" in answer.text
        assert "<script>" not in answer.text
        assert 'aria-label="Pages"' in answer.text


def test_the_filter_bar_offers_what_there_is_and_keeps_the_rest(page_store: Store) -> None:
    asked = Asked(StoreReader(page_store), {"model": "gone", "since": "6h", "after": "5"}, NOW, path="/segment")
    bar = filters.bar(asked, choice(asked.query, NOW), own=("after",))
    selects = {select.name: select for select in bar.selects}
    assert [option.value for option in selects["model"].options if option.is_chosen] == ["gone"]
    assert {"*", "gone", "llama-3.3-70b", HOSTILE} <= {option.value for option in selects["model"].options}
    assert len(selects["lever"].options) == len(LEVERS) + 1
    assert bar.hidden == [("since", "6h"), ("after", "5")]
    assert bar.periods[0][1] == "segment?model=gone&since=1h&after=5"


def test_a_question_can_be_asked_again_as_text(page_store: Store) -> None:
    asked = {"lever": "speculation", "segment": None, "since": NOW - timedelta(hours=2), "until": NOW}
    question = Sql(files.question("page_streams"), asked)
    query = parse_qs(urlsplit(question.url).query)
    given = {name.removeprefix("p."): values[0] for name, values in query.items() if name.startswith("p.")}
    assert set(given) == {"lever", "since", "until"}
    assert page_store.frame(query["sql"][0], given).equals(page_store.frame(question.text, asked))


def test_lists_and_quotes_in_a_question_stay_values() -> None:
    question = Sql("select $names::varchar[] as names, $none::varchar as nothing", {"names": ["a'b", HOSTILE], "none": None})
    assert question.filled.startswith("select ['a''b', '<script>alert(1)</script>\"''&']::varchar[]")
    assert question.filled.endswith("null::varchar as nothing")


def test_a_figure_comes_as_svg_png_and_csv(client: httpx.Client) -> None:
    svg = client.get("/figure/segment/gain.svg?since=6h")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert "sandbox" in svg.headers["content-security-policy"]
    assert svg.headers["content-disposition"] == 'attachment; filename="leverwatch-segment-gain.svg"'
    assert svg.text.startswith("<svg")
    assert "var(--" not in svg.text
    assert client.get("/figure/segment/gain.png").content.startswith(b"\x89PNG\r\n\x1a\n")
    rows = client.get("/figure/segment/gain.csv").text.splitlines()
    assert rows[0] == "until,gain,gain_low,gain_high"
    assert re.fullmatch(r"2026-03-01T12:05:00Z,0\.\d+,-0\.\d+,0\.\d+", rows[1])


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/figure/segment/nope.svg", 404),
        ("/figure/nope/gain.svg", 400),
        ("/figure/segment/gain.exe", 400),
        ("/figure/segment/gain", 404),
        ("/figure/segment/gain.svg?since=x", 400),
        ("/figure/segment/interconnect.png", 400),
    ],
)
def test_a_figure_that_is_not_there_says_so(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_text_that_begins_like_a_formula_stays_text_in_a_spreadsheet(studio: Studio) -> None:
    values = pl.DataFrame({"model": ["=cmd()", "plain"], "gain": [-0.5, 0.5]})
    told = figure_files.file(Figure("k", "t", "", values=values), "csv", studio).decode()
    assert told.splitlines() == ["model,gain", "'=cmd(),-0.5", "plain,0.5"]


def test_colors_of_files_are_those_of_the_light_page() -> None:
    css = (Path(theme.__file__).parent / "assets" / "page.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", css[: css.index("prefers-color-scheme")]))
    assert {name: light[name] for name in theme.LIGHT} == theme.LIGHT
