"""The SQL page with script in a real browser: running, stopping, completing and keeping without leaving the page."""

from __future__ import annotations

from collections.abc import Iterator

import dashboards_rows
import pytest
from dashboards_rows import NOW
from playwright.sync_api import Browser, Page, expect

from dashboards import questions_api
from dashboards.studio import Studio
from queries.sandbox import Sandbox, SqlLimits
from queries.store import Store

PATIENT_MS = 30_000


@pytest.fixture(scope="module")
def address(page_store: Store, studio: Studio) -> Iterator[str]:
    sandbox = Sandbox(page_store, SqlLimits(wall_s=60.0))
    with dashboards_rows.serving(sandbox, studio, more=[questions_api.router(page_store, lambda: NOW)]) as served:
        yield served
    sandbox.close()


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
    expect(page.locator("#saved")).to_have_text("Saved as seven, version 1.", timeout=PATIENT_MS)
    page.goto(f"{address}/sql?question=seven")
    expect(page.locator("table.answer td")).to_have_text("7")
