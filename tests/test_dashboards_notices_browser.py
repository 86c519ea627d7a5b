"""The page of notices in a real browser: whole at two widths, light and dark, read by a checker of accessibility; what its buttons do."""

from __future__ import annotations

from collections.abc import Iterator

import browser_pages
import dashboards_rows
import notices_made
import pytest
from dashboards_rows import NOW
from house_made import MadeHouse
from playwright.sync_api import Browser, Page

from alerts import api
from alerts.receivers import Receiver
from dashboards.studio import Studio
from queries.sandbox import Sandbox
from queries.store import Store

PATHS = ("/notices?since=30d", "/notices?flip=f3")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    notices_made.add(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(store: Store, studio: Studio) -> Iterator[str]:
    oncall = Receiver(name="oncall", url="http://127.0.0.1:9/", secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    routes = api.router(store, lambda: NOW, receivers=[oncall])
    sandbox = Sandbox(store)
    with dashboards_rows.serving(sandbox, studio, MadeHouse(), [routes]) as served:
        yield served
    sandbox.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    yield opened
    opened.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_is_whole_at_both_widths_in_light_and_dark(browser: Browser, address: str, width: int) -> None:
    with browser_pages.whole(browser, address, PATHS, width, ("light", "dark")) as opened:
        assert opened.locator("#flips").count() == 1


def test_a_notice_is_sent_again_by_a_button_and_the_page_shows_that_it_waits(page: Page, address: str, store: Store) -> None:
    page.goto(f"{address}/notices?flip=f3")
    page.get_by_role("button", name="send again: the notice to oncall").first.focus()
    page.keyboard.press("Enter")
    assert _said(page) == "The notice to oncall waits to be sent again."
    page.locator('#flips [data-outcome="pending"] strong', has_text="oncall").wait_for()
    assert page.evaluate("document.activeElement.dataset.path") != "api/deliveries/e2/replay"  # another one stands at its place
    assert page.evaluate("document.activeElement.textContent") == "send now"
    assert store.rows("select count(*) as n from deliveries where webhook_id = 'w3' and outcome = 'pending'")[0]["n"] == 1


def test_a_stream_is_silenced_and_the_silence_ended(page: Page, address: str, store: Store) -> None:
    page.goto(f"{address}/notices?flip=f4")
    page.get_by_label("why", exact=True).fill("<b>new drafts</b>")
    page.get_by_label("who asks").fill("ops")
    page.get_by_role("button", name="Silence", exact=True).click()
    assert _said(page).startswith("The silence has begun.")
    page.get_by_text("Silenced until 20:00 UTC: <b>new drafts</b>").wait_for()
    row = store.rows("select * from silences where created_by = 'ops'")[0]
    assert (row["policy"], row["lever"], row["ended_at"]) == ("trial", "speculation", None)
    page.locator(f"[data-silence='{row['silence_id']}']").get_by_role("button").click()
    page.locator(f"[data-silence='{row['silence_id']}']").wait_for(state="detached")
    assert store.rows("select ended_at from silences where created_by = 'ops'")[0]["ended_at"] == NOW


def test_what_is_refused_says_why_and_the_form_keeps_its_words(page: Page, address: str) -> None:
    page.goto(f"{address}/notices")
    page.get_by_label("why", exact=True).fill("no matcher at all")
    page.get_by_role("button", name="Silence", exact=True).click()
    assert "Not done: a silence takes lever, policy, segment or receiver" in _said(page)
    assert page.get_by_label("why", exact=True).input_value() == "no matcher at all"


def test_without_script_there_is_no_dead_button_but_the_command(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    opened = context.new_page()
    opened.goto(f"{address}/notices?flip=f3")
    assert opened.get_by_role("button").count() == 0
    assert opened.get_by_text("leverwatch silence add --lever speculation").is_visible()
    assert opened.get_by_text("leverwatch deliveries --failed").is_visible()
    context.close()


def _said(page: Page) -> str:
    page.locator("#done:not(:empty)").wait_for()
    return page.locator("#done").inner_text()
