"""The SQL page with script in a real browser: running, stopping, completing and keeping without leaving the page."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator

import dashboards_rows
import pytest
import uvicorn
from dashboards_rows import NOW, StoreReader
from fastapi import FastAPI
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dashboards import api, questions_api
from dashboards.security import Headed
from queries.sandbox import Sandbox, SqlLimits
from queries.store import Store

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
)
NAMES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")
PATIENT_MS = 30_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = Store(tmp_path_factory.mktemp("data"))
    dashboards_rows.fill(store)
    sandbox = Sandbox(store, SqlLimits(wall_s=60.0))
    app = FastAPI(docs_url=None, redoc_url=None)
    app.include_router(api.router(StoreReader(store), sandbox, lambda: NOW))
    app.include_router(questions_api.router(store, lambda: NOW))
    server = uvicorn.Server(uvicorn.Config(Headed(app), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()
    sandbox.close()
    store.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        said = f"no browser here; looked for {', '.join(NAMES)}"
        if os.environ.get("LEVERWATCH_REQUIRE_BROWSER") == "1":
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=ARGUMENTS.split())
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(PATIENT_MS)
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(f"{address}/sql")
    yield opened
    opened.close()
    assert said == []


def test_ctrl_enter_runs_and_the_address_is_the_question(page: Page) -> None:
    page.locator("#text").fill("select $n + 1 as answer")
    page.locator("#text").press("Control+Enter")
    expect(page.locator("#answer .headline")).to_contain_text("$n need a value", timeout=PATIENT_MS)
    page.locator("[name='p.n']").fill("41")
    page.locator("[name='p.n']").press("Enter")
    expect(page.locator("table.answer td")).to_have_text("42", timeout=PATIENT_MS)
    assert "p.n=41" in page.url
    assert "run=" not in page.url
    page.reload()
    expect(page.locator("table.answer td")).to_have_text("42")


def test_a_statement_shows_that_it_runs_and_esc_stops_it(page: Page) -> None:
    page.locator("#text").fill("select count(*) from range(10000000) a, range(10000000) b, range(10000000) c")
    page.locator("#run").click()
    expect(page.locator("#said")).to_contain_text("of at most 60 s", timeout=PATIENT_MS)
    expect(page.locator("#stop")).to_be_visible()
    page.locator("#text").press("Escape")
    expect(page.locator("#answer .headline")).to_contain_text("was cancelled", timeout=PATIENT_MS)
    expect(page.locator("#stop")).to_be_hidden()


def test_words_are_completed_by_keyboard(page: Page) -> None:
    page.locator("#text").fill("select * from requests where ttft")
    page.locator("#text").press("Control+Space")
    expect(page.locator("#offers li").first).to_contain_text("ttft_s", timeout=PATIENT_MS)
    page.locator("#text").press("Tab")
    expect(page.locator("#text")).to_have_value("select * from requests where ttft_s")
    expect(page.locator("#offers")).to_be_hidden()


def test_a_question_is_kept_under_a_name(page: Page, address: str) -> None:
    page.locator("#text").fill("select 7 as seven")
    page.locator("#keep summary").click()
    page.locator("#save [name='name']").fill("seven")
    page.locator("#save [name='title']").fill("Seven")
    page.locator("#save button").click()
    expect(page.locator("#saved")).to_have_text("Kept as seven, version 1.", timeout=PATIENT_MS)
    page.goto(f"{address}/sql?question=seven")
    expect(page.locator("table.answer td")).to_have_text("7")
