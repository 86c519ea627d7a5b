"""The web guard: which route takes which token, forms, foreign pages, rebound names."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request

from leverwatch.access import Tokens, resolve
from leverwatch.access_settings import Access, Token
from leverwatch.guard import WebGuard, server_names
from leverwatch.refused import Refused

INGEST, READ, ADMIN = "ingest-token-0001", "read-token-000001", "admin-token-00001"
AT = "http://127.0.0.1:8080"
FULL = Access((Token(token=INGEST),), (Token(token=READ),), (Token(token=ADMIN),))
JSON = {"content-type": "application/json"}
BODY: dict[str, Any] = {"content": b"{}", "headers": JSON}


class Site:
    """A guarded application that answers every path, and a client in front of it."""

    def __init__(self, access: Access = FULL, *, is_tls: bool = False) -> None:
        application = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

        @application.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE"])
        def everything(path: str, request: Request) -> dict[str, Any]:
            return {"path": path, "detail": request.scope["leverwatch.shows_detail"], "may_change": request.scope["leverwatch.may_change"]}

        self.refused, self.now_s, self.cookies = Refused(), 1000.0, httpx.Cookies()
        names = server_names("127.0.0.1", ("https://levers.example/x",))
        tokens: Tokens = resolve(access, {})
        self.guard = WebGuard(application, tokens, self.refused, names, is_tls, lambda: self.now_s)

    def ask(self, method: str, path: str, token: str = "", **what: Any) -> httpx.Response:
        headers = what.pop("headers", {}) | ({"authorization": f"Bearer {token}"} if token else {})
        at = what.pop("at", AT)

        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(self.guard), base_url=at, cookies=self.cookies) as client:
                return await client.request(method, path, headers=headers, **what)

        return asyncio.run(asked())


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize(
    ("method", "path", "takes"),
    [
        ("GET", "/", {READ, ADMIN}),
        ("GET", "/metrics", {READ, ADMIN}),
        ("GET", "/docs", {READ, ADMIN}),
        ("GET", "/openapi.json", {READ, ADMIN}),
        ("GET", "/api/report", {READ, ADMIN}),
        ("GET", "/api/verdicts", {READ, ADMIN}),
        ("POST", "/api/sql", {READ, ADMIN}),
        ("POST", "/api/backtest", {READ, ADMIN}),
        ("POST", "/api/silences", {ADMIN}),
        ("POST", "/api/deliveries/1/replay", {ADMIN}),
        ("DELETE", "/api/silences/1", {ADMIN}),
        ("DELETE", "/api/sql/mine", {READ, ADMIN}),
        ("POST", "/api/questions", {ADMIN}),
        ("DELETE", "/api/questions/mine", {ADMIN}),
        ("PUT", "/anything", {ADMIN}),
        ("POST", "/api/evaluations", {INGEST, ADMIN}),
    ],
)
def test_every_route_takes_its_tokens_and_no_others(site: Site, method: str, path: str, takes: set[str]) -> None:
    what = {} if method == "GET" else BODY
    for token in (INGEST, READ, ADMIN):
        assert site.ask(method, path, token, **what).status_code == (200 if token in takes else 403), token
    answer = site.ask(method, path, **what)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.json()["error"].keys() == {"code", "message", "hint"}
    assert site.ask(method, path, "wrong-token-00000", **what).status_code == 401


@pytest.mark.parametrize("path", ["/healthz", "/assets/page.css"])
def test_health_and_assets_are_open(site: Site, path: str) -> None:
    assert site.ask("GET", path).status_code == 200


def test_pages_know_whether_whoever_asks_may_change_something(site: Site) -> None:
    assert [site.ask("GET", "/notices", token).json()["may_change"] for token in (READ, ADMIN)] == [False, True]
    assert Site(Access()).ask("GET", "/notices").json()["may_change"]


def test_readiness_is_open_without_its_detail(site: Site) -> None:
    assert site.ask("GET", "/readyz").json()["detail"] is False
    assert site.ask("GET", "/readyz", READ).json()["detail"] is True
    assert Site(Access()).ask("GET", "/readyz").json()["detail"] is True


def test_without_tokens_everything_is_open_here() -> None:
    site = Site(Access())
    assert site.ask("GET", "/").status_code == site.ask("POST", "/api/silences", **BODY).status_code == 200


def test_an_ingest_token_alone_guards_evaluations_and_no_page() -> None:
    site = Site(Access(ingest=(Token(token=INGEST),)))
    assert site.ask("GET", "/").status_code == 200
    assert site.ask("POST", "/api/evaluations", **BODY).status_code == 401


def test_a_browser_gets_a_form_and_then_a_session_in_place_of_the_token(site: Site) -> None:
    page = site.ask("GET", "/segment?by=model", headers={"accept": "text/html"})
    assert page.status_code == 401
    assert 'name="next" value="/segment?by=model"' in page.text
    entered = site.ask("POST", "/login", data={"token": READ, "next": "/segment?by=model"}, headers={"origin": AT})
    assert (entered.status_code, entered.headers["location"]) == (303, "/segment?by=model")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert READ not in str(entered.headers)
    site.cookies = entered.cookies
    assert site.ask("GET", "/").status_code == 200
    assert site.ask("POST", "/api/silences", **BODY).status_code == 403
    site.now_s += 8 * 86_400
    assert site.ask("GET", "/").status_code == 401


def test_a_token_in_a_link_becomes_a_session_and_leaves_the_link(site: Site) -> None:
    entered = site.ask("GET", f"/segment?by=model&token={READ}&empty=")
    assert (entered.status_code, entered.headers["location"]) == (303, "/segment?by=model&empty=")
    assert entered.headers["referrer-policy"] == "no-referrer"
    refused = site.ask("GET", "/segment?token=wrong-token-00000")
    assert refused.status_code == 401
    assert "wrong-token" not in refused.text


def test_under_tls_a_session_goes_over_tls_alone() -> None:
    assert "secure" in Site(is_tls=True).ask("GET", f"/?token={READ}").headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "https://evil.example", "", "javascript:x", "/a\r\nx: y"])
def test_a_form_leads_to_no_other_server(site: Site, path: str) -> None:
    assert site.ask("POST", "/login", data={"token": READ, "next": path}).headers["location"] == "./"


def test_a_form_that_grows_is_refused(site: Site) -> None:
    assert site.ask("POST", "/login", content=b"token=" + b"x" * 20_000).status_code == 413


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example"])
def test_a_name_that_was_pointed_here_reads_nothing(host: str) -> None:
    site = Site(Access())
    for method, path in (("GET", "/api/report"), ("POST", "/api/sql")):
        answer = site.ask(method, path, at=f"http://{host}", **(BODY if method == "POST" else {}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (421, "unknown_host")
    assert site.ask("GET", "/healthz", at=f"http://{host}").status_code == 200


@pytest.mark.parametrize("shown", ["anything", "ingest-token-0009"])
def test_a_token_that_is_not_known_opens_no_rebound_name(shown: str) -> None:
    for site in (Site(Access()), Site(Access((Token(token=INGEST),)))):
        headers = {**JSON, "origin": "http://evil.example", "authorization": f"Bearer {shown}"}
        for path in ("/api/sql", "/api/evaluations"):
            answer = site.ask("POST", path, at="http://evil.example", content=b"{}", headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (421, "unknown_host")


def test_a_rebound_name_learns_only_that_the_server_is_ready() -> None:
    site = Site(Access())
    assert not site.ask("GET", "/readyz", at="http://evil.example").json()["detail"]
    assert not site.ask("GET", "/readyz", "anything", at="http://evil.example").json()["detail"]
    assert site.ask("GET", "/readyz").json()["detail"]
    assert Site().ask("GET", "/readyz", READ, at="http://evil.example").json()["detail"]


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost:8080", "[::1]:8080", "10.1.2.3", "LEVERS.example", "levers.example."])
def test_addresses_and_names_of_this_server_are_taken(host: str) -> None:
    assert Site(Access()).ask("GET", "/", headers={"host": host}).status_code == 200


def test_who_shows_a_token_may_use_any_name(site: Site) -> None:
    assert site.ask("GET", "/", READ, at="http://leverwatch.svc:8080").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        ({**JSON, "origin": "https://evil.example"}, 403),
        ({**JSON, "origin": "null"}, 403),
        ({**JSON, "sec-fetch-site": "cross-site"}, 403),
        ({**JSON, "origin": AT, "sec-fetch-site": "same-origin"}, 200),
        ({"content-type": "application/json; charset=utf-8"}, 200),
    ],
)
@pytest.mark.parametrize("path", ["/api/sql", "/api/silences", "/api/deliveries/1/replay"])
def test_pages_of_other_sites_can_neither_ask_nor_change(path: str, headers: dict[str, str], status: int) -> None:
    assert Site(Access()).ask("POST", path, content=b"{}", headers=headers).status_code == status


def test_a_replay_without_a_body_needs_no_content_type() -> None:
    assert Site(Access()).ask("POST", "/api/deliveries/1/replay").status_code == 200


def test_refused_calls_are_counted(site: Site) -> None:
    for _ in range(3):
        site.ask("GET", "/")
    site.ask("POST", "/api/silences", READ, **BODY)
    counted = {tuple(sample.labels.values()): sample.value for sample in site.refused.family().samples}
    assert counted == {("web", "unauthenticated"): 3, ("web", "forbidden"): 1}


def test_an_export_to_the_port_of_the_pages_is_told_the_right_one(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    answer = site.ask("POST", "/v1/traces", content=b"", headers={"content-type": "application/x-protobuf"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "wrong_port")
    assert "taken on port 4318" in answer.json()["error"]["hint"]
    assert "refused: wrong_port; OTLP over HTTP is taken on port 4318" in caplog.text
