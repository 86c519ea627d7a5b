"""Every answer of the port carries headers that keep a browser from misusing it; what fails says so without a trace."""

from __future__ import annotations

import anyio
import httpx
import pytest
from fastapi import FastAPI, Response
from starlette.requests import ClientDisconnect

from dashboards import answers
from dashboards.security import HEADERS, Headed
from leverwatch.error_shape import shape_errors

BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def client() -> httpx.AsyncClient:
    application = FastAPI(docs_url=None, redoc_url=None)
    shape_errors(application)

    @application.get("/page")
    def page() -> Response:
        return answers.page("<p>here</p>")

    @application.get("/broken")
    def broken() -> Response:
        msg = "secret of the inside"
        raise RuntimeError(msg)

    @application.get("/left")
    def left() -> Response:
        raise ClientDisconnect

    transport = httpx.ASGITransport(Headed(application), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://here")


@pytest.mark.parametrize(
    ("path", "status"), [("/page", 200), ("/nope", 404), ("/deep/nope", 404), ("/broken", 500), ("/openapi.json", 200)]
)
@pytest.mark.parametrize("accept", [BROWSER, {}], ids=["browser", "program"])
def test_every_answer_has_the_headers_errors_included(client: httpx.AsyncClient, path: str, status: int, accept: dict[str, str]) -> None:
    answer = anyio.run(lambda: client.get(path, headers=accept))
    assert answer.status_code == status
    assert {name.lower() for name in HEADERS} <= set(answer.headers)
    assert "secret of the inside" not in answer.text


def test_a_caller_that_hung_up_is_no_fault_of_the_server(client: httpx.AsyncClient) -> None:
    answer = anyio.run(lambda: client.get("/left"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "cancelled")


def test_a_page_keeps_its_own_policy_and_a_program_gets_none_to_run(client: httpx.AsyncClient) -> None:
    assert "default-src 'self'" in anyio.run(lambda: client.get("/page")).headers["content-security-policy"]
    assert "default-src 'none'" in anyio.run(lambda: client.get("/openapi.json")).headers["content-security-policy"]


def test_a_browser_gets_a_page_of_a_failure_and_a_program_its_error(client: httpx.AsyncClient) -> None:
    assert "This page could not be drawn" in anyio.run(lambda: client.get("/broken", headers=BROWSER)).text
    assert "There is no such page" in anyio.run(lambda: client.get("/nope", headers=BROWSER)).text
    assert anyio.run(lambda: client.get("/broken")).json()["error"]["code"] == "internal"
    assert anyio.run(lambda: client.get("/nope")).json()["error"]["code"] == "not_found"
