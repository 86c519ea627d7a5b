"""The API's description: good to read, true of what the routes answer, whatever they are asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elsewhere_rooms
import pytest

from dashboards.security import Headed
from leverwatch.api_description import schema
from leverwatch.api_routes import REFUSALS, ROUTES
from leverwatch.engine_room import EngineRoom

EXAMPLES = 5
ERROR = {"$ref": "#/components/schemas/Error"}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineRoom]:
    with elsewhere_rooms.room(tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture(scope="module")
def operations(room: EngineRoom) -> dict[str, dict[str, Any]]:
    paths = elsewhere_rooms.application(room).openapi()["paths"]
    return {f"{method.upper()} {path}": operation for path, methods in paths.items() for method, operation in methods.items()}


def test_every_route_is_described_and_no_row_is_left_over(operations: dict[str, dict[str, Any]]) -> None:
    assert sorted(operations) == sorted(ROUTES)


def test_every_route_has_a_title_a_sentence_and_described_parameters(operations: dict[str, dict[str, Any]]) -> None:
    for label, operation in operations.items():
        assert operation["summary"] == ROUTES[label].title
        assert operation["description"].strip(), label
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (label, parameter["name"])


def test_every_answer_has_a_schema_and_every_refusal_the_same_one(operations: dict[str, dict[str, Any]]) -> None:
    for label, operation in operations.items():
        for code, response in operation["responses"].items():
            if code.startswith("2"):
                assert response["content"], label
                assert all(media != "application/json" or kind["schema"] for media, kind in response["content"].items()), label
            elif label != "GET /readyz":
                assert response["content"]["application/json"]["schema"] == ERROR, (label, code)
                assert int(code) in REFUSALS


def test_a_shape_becomes_a_schema() -> None:
    assert schema("[a b:number?]") == {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {"type": "string"}, "b": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        },
    }


def test_made_up_calls_are_answered_as_described_and_with_security_headers(room: EngineRoom) -> None:
    fuzz = pytest.importorskip("openapi_fuzz", reason="schemathesis is not installed")
    assert list(fuzz.faults(Headed(elsewhere_rooms.application(room)), EXAMPLES)) == []
