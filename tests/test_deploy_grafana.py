"""Grafana's recipe: what the plugins read is there, every query is answered by a store with made-up rows, every series exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import elsewhere_rooms
import pytest
import yaml
from dashboards_rows import NOW
from prometheus_client.parser import text_string_to_metric_families

from leverwatch.engine_room import EngineRoom
from pipeline.segments import LEVERS

FOLDER = Path(__file__).parents[1] / "deploy/grafana"
BOARDS = sorted((FOLDER / "dashboards").glob("*.json"))
INFINITY, PROMETHEUS = "yesoreyeram-infinity-datasource", "prometheus"
# What the plugin's query has (its pkg/models/query.go, 3.11), of that which is used here.
QUERY_KEYS = {"refId", "datasource", "type", "source", "format", "parser", "url", "url_options", "root_selector", "columns", "filters"}
COLUMN_TYPES = {"string", "number", "timestamp", "boolean"}
VALUES = {
    "${__from:date:iso}": "2026-03-01T12:00:00.000Z",
    "${__to:date:iso}": f"{NOW:%Y-%m-%dT%H:%M:%S}.000Z",
    "${lever}": "speculation",
    "${model:regex}": r"llama-3\.3-70b|qwen3-32b",
    "${hardware:regex}": ".*",
    "${topology:regex}": ".*",
    "${input_bucket:regex}": "512-2047|<512",
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    with elsewhere_rooms.room(tmp_path_factory.mktemp("data")) as opened:
        yield opened


def read(path: Path) -> dict[str, Any]:
    board: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return board


def targets(kind: str) -> list[tuple[str, dict[str, Any]]]:
    found = [(panel["title"], one) for path in BOARDS for panel in read(path)["panels"] for one in panel["targets"]]
    return [(title, one) for title, one in found if one["datasource"]["type"] == kind]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_dashboard_has_its_parts_and_every_panel_says_what_it_shows(path: Path) -> None:
    board = read(path)
    assert board["uid"] == path.stem
    assert board["timezone"] == "utc"
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["description"] and panel["fieldConfig"]["defaults"]["noValue"] == "no data" for panel in panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    variables = {variable["name"] for variable in board["templating"]["list"]}
    named = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps([panels, board["templating"]])))
    assert named <= variables
    links = [link["url"].removeprefix("/d/") for link in board["links"]]
    assert set(links) <= {other.stem for other in BOARDS}


def test_the_levers_to_choose_from_are_all_that_there_are() -> None:
    (chosen,) = (one for one in read(FOLDER / "dashboards/leverwatch-segment.json")["templating"]["list"] if one["name"] == "lever")
    assert chosen["query"].split(",") == list(LEVERS)


@pytest.mark.parametrize(("title", "query"), targets(INFINITY), ids=lambda one: one if isinstance(one, str) else "")
def test_every_query_to_the_api_is_answered_and_every_column_is_in_the_answer(room: EngineRoom, title: str, query: dict[str, Any]) -> None:
    assert set(query) == QUERY_KEYS, title
    assert (query["type"], query["source"], query["parser"], query["url_options"]["method"]) == ("json", "url", "backend", "GET")
    params = {one["key"]: filled(one["value"]) for one in query["url_options"]["params"]}
    answer = elsewhere_rooms.ask(elsewhere_rooms.application(room), "GET", query["url"], params=params)
    assert answer.status_code == 200, answer.text
    rows = answer.json()
    assert rows
    for column in query["columns"]:
        assert column["type"] in COLUMN_TYPES
        first, _, rest = column["selector"].partition(".")
        values = [row[first] for row in rows]
        assert not rest or any(rest in value for value in values), column
        kinds = {type(value) for value in values if value is not None}
        assert column["type"] != "number" or kinds <= {int, float}, column


def test_every_series_that_is_asked_for_exists(room: EngineRoom) -> None:
    text = elsewhere_rooms.ask(elsewhere_rooms.application(room), "GET", "/metrics").text
    known = {sample.name: set(sample.labels) for family in text_string_to_metric_families(text) for sample in family.samples}
    variables = [one["definition"] for path in BOARDS for one in read(path)["templating"]["list"] if one["type"] == "query"]
    asked = [query["expr"] for _, query in targets(PROMETHEUS)]
    for expression in [*asked, *variables]:
        for name, selector in re.findall(r"(leverwatch_\w+)(?:\{([^}]*)\})?", expression):
            assert name in known, expression
            assert set(re.findall(r"(\w+)=~?\"", selector)) <= known[name], expression
    assert all(re.search(r", (\w+)\)", one)[1] in known["leverwatch_segment_requests"] for one in variables)  # type: ignore[index]


def test_the_data_sources_say_what_the_plugins_read() -> None:
    api, numbers = yaml.safe_load((FOLDER / "datasources.yaml").read_text(encoding="utf-8"))["datasources"]
    assert (api["type"], numbers["type"]) == (INFINITY, PROMETHEUS)
    assert set(api["jsonData"]) == {"auth_method", "allowedHosts", "timeoutInSeconds"}
    assert api["jsonData"]["auth_method"] == "bearerToken"
    assert api["jsonData"]["allowedHosts"] == [api["url"]]
    assert api["secureJsonData"] == {"bearerToken": "$LEVERWATCH_READ_TOKEN"}
    (provider,) = yaml.safe_load((FOLDER / "dashboards.yaml").read_text(encoding="utf-8"))["providers"]
    assert provider["type"] == "file"


def filled(text: str) -> str:
    for name, value in VALUES.items():
        text = text.replace(name, value)
    assert "$" not in text
    return text
