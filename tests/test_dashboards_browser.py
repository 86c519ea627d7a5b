"""The segment page in a real browser: two widths, light and dark."""

from __future__ import annotations

import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import dashboards_rows
import pytest
from dashboards_rows import NOW, StoreReader
from playwright.sync_api import Browser, Page, sync_playwright

from dashboards.choice import KEYS
from dashboards.segment_table import METRICS
from queries.store import Store

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
)
NAMES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    dashboards_rows.fill(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def address(store: Store) -> Iterator[str]:
    with dashboards_rows.serving(store) as served:
        yield served


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_is_whole_at_both_widths_in_light_and_dark(
    browser: Browser, address: str, store: Store, tmp_path: Path, width: int, scheme: str
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for path in ("/docs", ""):
        page.goto(address + path)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    assert [url for url in asked if not url.startswith(address)] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    _assert_numbers(page, StoreReader(store))
    _assert_drawn(page.screenshot(path=tmp_path / "page.png"))
    chart = page.locator("figure svg").first
    assert (chart.bounding_box() or {"width": 0})["width"] > 0.8 * min(width, 400)
    _assert_drawn(chart.screenshot())
    page.close()


def test_a_refresh_swaps_what_changed_and_keeps_focus_and_open_numbers(browser: Browser, address: str, store: Store) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.clock.install()
    page.goto(address)
    page.locator("#numbers-gain summary").click()
    page.locator("#chosen #numbers-gain summary").focus()
    with store.write() as transaction:
        transaction.execute("update watermarks set ended_at = $at", {"at": NOW - timedelta(minutes=3)})
        transaction.execute("update effects set gain = gain - 0.01 where until = $at", {"at": NOW})
    page.clock.fast_forward(5000)
    page.get_by_text("behind: the newest span ended at 11:57 UTC").wait_for(timeout=5000)
    assert page.evaluate("document.getElementById('numbers-gain').open")
    assert page.evaluate("document.activeElement.closest('details').id") == "numbers-gain"
    page.close()


def test_what_to_do_is_folded_out_by_a_click(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.locator("#why-chosen summary").click()
    assert page.get_by_text("Drain one replica.").first.is_visible()
    page.close()


def test_a_definition_opens_and_closes_by_keyboard(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.get_by_role("button", name="Draft acceptance").first.focus()
    page.keyboard.press("Enter")
    about = page.locator("#about-draft_acceptance")
    assert about.is_visible()
    assert "sum(accepted_tokens) / sum(draft_tokens)" in about.inner_text()
    page.keyboard.press("Escape")
    assert about.is_hidden()
    page.close()


def test_without_scripts_the_page_says_the_same(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert "Speculation stopped paying in 1 of 2 judged segments" in page.locator("h1").inner_text()
    context.close()


def _assert_numbers(page: Page, reader: StoreReader) -> None:
    """What the browser shows is what the reader says."""
    report = reader.report(by=KEYS, metrics=METRICS, since=NOW - timedelta(hours=24), until=NOW)
    told = [value for row in report.iter_rows(named=True) for value in (row[name] for name in METRICS) if value is not None]
    shown = [float(value) for value in page.locator("table.segments data").evaluate_all("found => found.map(one => one.value)")]
    assert [value for value in told if not any(abs(value - other) <= 1e-9 * abs(value) for other in shown)] == []


def _assert_drawn(png: bytes) -> None:
    """A picture with many different bytes in its pixels is not blank."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        packed += png[at + 8 : at + 8 + length] if png[at + 4 : at + 8] == b"IDAT" else b""
        at += 12 + length
    assert len(set(zlib.decompress(packed))) > 50
