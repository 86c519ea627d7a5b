"""A web application in, the same behind its tokens out: who may ask what over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dashboards import answers
from dashboards.pages import login
from leverwatch import access, origins
from leverwatch.access import Level, Refusal, Tokens
from leverwatch.refused import Refused

OPEN = ("/healthz", "/readyz", "/login")
READING_POSTS = ("/api/sql", "/api/backtest")
READING_DELETES = "/api/sql/"  # stops a statement that somebody asked: no more than it would do by itself
SENDING_POSTS = ("/api/evaluations",)
EXPORTS = "/v1/"  # where an exporter that was given the wrong port sends to
MOST_FORM_BYTES = 16_384
Asgi = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class WebGuard:
    """The pages and the API, each route for those who may."""

    application: Asgi
    tokens: Tokens
    refused: Refused
    names: frozenset[str] = frozenset()
    is_tls: bool = False
    clock_s: Callable[[], float] = time.time
    otlp_http_port: int = 4318

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = await self._own_answer(request)
        if answer is None:
            await self.application(scope, receive, send)
        else:
            await answer(scope, receive, send)

    async def _own_answer(self, request: Request) -> Response | None:
        path, granted, showed = request.url.path, *self._granted(request)
        is_own = self._is_own_name(request.headers, granted)
        request.scope["leverwatch.may_change"] = "admin" in granted or not self.tokens.guards_reading
        request.scope["leverwatch.shows_detail"] = "read" in granted or (is_own and not self.tokens.guards_reading)
        if path in OPEN[:2] or path.startswith("/assets/"):
            return None
        if path.startswith(EXPORTS):
            hint = f"OTLP over HTTP is taken on port {self.otlp_http_port}, at /v1/traces, /v1/metrics and /v1/logs"
            return self._refuse(request, Refusal(404, "wrong_port", "this port has the pages and the API", hint))
        if odd := self._odd(request.headers, request.method, path, granted):
            return self._refuse(request, odd)
        if path == "/login":
            return await self._login(request)
        if self.tokens.guards_reading and "token" in request.query_params and request.method == "GET" and not path.startswith("/api/"):
            return self._enter(request, request.query_params["token"], _without_token(request))
        level = self._needed(request.method, path)
        found = access.refusal(level, granted, showed_token=showed) if level else None
        return self._refuse(request, found) if found else None

    def _is_own_name(self, headers: Headers, granted: frozenset[Level]) -> bool:
        """Whether no rebound name can be behind a request. A token proves it only where it is known: any page can send a made-up one."""
        shows_known = bool(granted and access.bearer(headers.get("authorization", "")))
        return self.is_tls or shows_known or origins.odd_host(headers, self.names) is None

    def _odd(self, headers: Headers, method: str, path: str, granted: frozenset[Level]) -> Refusal | None:
        found = None if self._is_own_name(headers, granted) else origins.odd_host(headers, self.names)
        if found is None and method not in ("GET", "HEAD", "OPTIONS"):
            found = origins.foreign(headers) or (None if path == "/login" else origins.no_json(headers))
        return found

    def _granted(self, request: Request) -> tuple[frozenset[Level], bool]:
        """What the caller may do, and whether it showed anything."""
        token = access.bearer(request.headers.get("authorization", ""))
        session = request.cookies.get(_cookie(request), "")
        if token:
            return self.tokens.granted(token), True
        return self.tokens.granted_session(session, self.clock_s()), bool(session)

    def _needed(self, method: str, path: str) -> Level | None:
        """What a route needs; None where it is open."""
        if method == "POST" and path in SENDING_POSTS:
            return "ingest" if self.tokens.any else None
        if not self.tokens.guards_reading:
            return None
        reads = method in ("GET", "HEAD", "OPTIONS") or (method == "POST" and path in READING_POSTS)
        reads = reads or (method == "DELETE" and path.startswith(READING_DELETES))
        return "read" if reads else "admin"

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return _form("./", "") if self.tokens.guards_reading else RedirectResponse("./", 303)
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM_BYTES:
                return self._refuse(request, Refusal(413, "too_large", "the form is too large"))
        form = {key: values[0] for key, values in parse_qs(body.decode(errors="replace")).items()}
        return self._enter(request, form.get("token", "").strip(), form.get("next", "./"))

    def _enter(self, request: Request, token: str, following: str) -> Response:
        """Gives a session for a token, and leads on to a path of this server."""
        if "read" not in self.tokens.granted(token):
            self.refused.note("web", "unauthenticated", _caller(request))
            return _form(_own_path(following), "This token may not read here.", 401)
        answer = RedirectResponse(_own_path(following), 303, {"cache-control": "no-store", "referrer-policy": "no-referrer"})
        session = self.tokens.session(token, self.clock_s())
        answer.set_cookie(_cookie(request), session, access.SESSION_S, httponly=True, samesite="lax", secure=self.is_tls)
        return answer

    def _refuse(self, request: Request, found: Refusal) -> Response:
        self.refused.note("web", found.code, _caller(request), found.hint)
        wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
        if wants_page and request.method == "GET" and found.status_code == 401:
            return _form(_without_token(request), "", 401)
        answer = answers.error(found.code, found.message, found.hint, found.status_code)
        if found.status_code == 401:
            answer.headers["www-authenticate"] = 'Bearer realm="leverwatch"'
        return answer


def server_names(host: str, more: Iterable[str]) -> frozenset[str]:
    """The names that a server answers to: what it listens on, and what the configuration adds (names or addresses of pages)."""
    named = (name.partition("://")[2].partition("/")[0] if "://" in name else name for name in (host, *more))
    return frozenset(origins.host_name(name) for name in named if name)


def _form(following: str, said: str, status_code: int = 200) -> Response:
    """The page that asks for a token. Under the policy of the other pages a browser would send its form with the origin `null`."""
    answer = answers.page(login.draw(following, said), status_code)
    answer.headers["referrer-policy"] = "same-origin"
    return answer


def _cookie(request: Request) -> str:
    """The session's name: browsers keep one jar for all ports of a host."""
    port = request.url.port or (443 if request.url.scheme == "https" else 80)
    return f"leverwatch_{port}"


def _without_token(request: Request) -> str:
    kept = [(key, value) for key, value in parse_qsl(request.url.query, keep_blank_values=True) if key != "token"]
    return request.url.path + (f"?{urlencode(kept)}" if kept else "")


def _own_path(path: str) -> str:
    """A path of this server; the first page for everything that could lead elsewhere."""
    is_own = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() and "\\" not in path
    return path if is_own and path.isascii() else "./"


def _caller(request: Request) -> str:
    return request.client.host if request.client else "unknown"
