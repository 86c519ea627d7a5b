"""A web application in, the same out, with its answers counted, timed, and told as spans by route: never by what was asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leverwatch.observe.observer import Observer

Asgi = Callable[..., Any]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
QUIET = ("/healthz", "/readyz", "/metrics", "/assets")  # asked every few seconds by a machine, or with every page
NO_ROUTE = "none"
BROKEN = 500


@dataclass(frozen=True, slots=True)
class Watched:
    """An application whose every call an observer hears of."""

    application: Asgi
    observer: Observer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        began_s, status = time.perf_counter(), BROKEN
        method = scope["method"] if scope["method"] in METHODS else "other"

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self.observer.tracing.span(method, "server", {"http.request.method": method}) as mark:
            try:
                await self.application(scope, receive, sending)
            finally:
                route = route_of(scope)
                self.observer.pages.note(route, method, status, time.perf_counter() - began_s)
                mark.rename(f"{method} {route}")
                mark.state({"http.route": route, "http.response.status_code": status})
                if status >= BROKEN:
                    mark.fail(str(status))
                elif route.startswith(QUIET):
                    mark.pass_over()


def route_of(scope: Any) -> str:
    """The route's template that answered, such as `/api/sql/{run_id}`; of what no route answered `none`."""
    route = scope.get("route")
    if route is not None:
        return str(route.path)
    path = str(scope["path"])
    return "/assets" if path.startswith("/assets/") else NO_ROUTE
