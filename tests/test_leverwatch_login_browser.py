"""Signing in with a real browser: the form, the session, and pages of other sites that get nothing."""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import Browser

from leverwatch.access import resolve
from leverwatch.access_settings import Access, Token
from leverwatch.guard import WebGuard
from leverwatch.refused import Refused

READ = "read-token-000001"
OTHER_SITE = """<form method="post" enctype="text/plain" action="{at}/api/sql"><input name='{{"sql": "select 1", "x": "' value='"}}'></form>
<script>
window.said = "nothing";
fetch("{at}/api/sql", {{method: "POST", headers: {{"content-type": "application/json"}}, body: "{{}}", credentials: "include"}})
  .then(() => window.said = "read", () => window.said = "kept out");
</script>"""


class Served:
    """An application behind its guard, and a page of another site, each on a port of its own."""

    def __init__(self, access: Access) -> None:
        self.asked: list[str] = []
        application, other = FastAPI(), FastAPI()

        @application.get("/{path:path}")
        def page(path: str) -> HTMLResponse:
            return HTMLResponse(f"<h1>numbers of {path or 'all'}</h1>")

        @application.post("/api/sql")
        def sql() -> str:
            self.asked.append("sql")
            return "rows"

        @other.get("/")
        def foreign() -> HTMLResponse:
            return HTMLResponse(OTHER_SITE.format(at=self.at))

        self.refused = Refused()
        self.at = self._serve(WebGuard(application, resolve(access, {}), self.refused))
        self.other = self._serve(other)

    def _serve(self, application: object) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))  # type: ignore[arg-type]
        threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True).start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_the_form_lets_a_reader_in_where_it_wanted_to_go(browser: Browser) -> None:
    served = Served(Access(read=(Token(token=READ),)))
    page = browser.new_context().new_page()
    page.goto(f"{served.at}/segment?by=model")
    page.fill("input[type=password]", "wrong-token-00000")
    page.click("button")
    assert "may not read" in page.inner_text("[role=alert]")
    page.fill("input[type=password]", READ)
    page.click("button")
    assert page.url == f"{served.at}/segment?by=model"
    assert page.inner_text("h1") == "numbers of segment"
    assert READ not in str(page.context.cookies())
    page.context.close()


def test_a_page_of_another_site_cannot_ask_even_an_open_server(browser: Browser) -> None:
    served = Served(Access())
    page = browser.new_context().new_page()
    page.goto(served.other)
    page.wait_for_function("window.said !== 'nothing'")
    assert page.evaluate("window.said") == "kept out"
    page.evaluate("document.forms[0].submit()")
    page.wait_for_url(f"{served.at}/**")
    assert '"foreign_origin"' in page.content()
    assert served.asked == []
    page.context.close()
