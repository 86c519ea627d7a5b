"""The pages in a real browser: two widths, light and dark, by keyboard, without script, and read by a checker of accessibility."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import browser_pages
import dashboards_rows
import pytest
from dashboards_rows import NOW, StoreReader
from house_made import MadeHouse
from playwright.sync_api import Browser, Page

from dashboards.segment_table import METRICS
from dashboards.studio import Studio
from pipeline.segments import JUDGING_KEYS
from queries.sandbox import Sandbox
from queries.store import Store

ADDRESSES = (
    "/lever?lever=speculation",
    "/compare",
    "/compare?lever=speculation&since=6h",
    "/",
    "/segment",
    "/segment?model=qwen3-32b&since=7d",
    "/?model=nothing",
    "/segment?since=wrong",
    "/docs",
    "/fleet",
    "/health",
    "/request?id=rllama5",
    "/sql?question=tenants&chart=bar&x=model&y=requests",
)


@pytest.fixture(scope="module")
def address(page_sandbox: Sandbox, studio: Studio) -> Iterator[str]:
    with dashboards_rows.serving(page_sandbox, studio, MadeHouse()) as served:
        yield served


@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_is_whole_at_both_widths_in_light_and_dark(
    browser: Browser, address: str, page_store: Store, tmp_path: Path, width: int
) -> None:
    with browser_pages.whole(browser, address, ADDRESSES, width, ("light", "dark")) as page:
        page.goto(address + "/segment")
        _assert_numbers(page, StoreReader(page_store))
        chart = page.locator("figure svg").first
        assert (chart.bounding_box() or {"width": 0})["width"] > 0.8 * min(width, 400)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            _assert_drawn(page.screenshot(path=tmp_path / "page.png"))
            _assert_drawn(chart.screenshot())


def test_on_a_phone_the_pages_fold_out_of_the_menu_without_script(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.goto(address + "/segment?since=6h")
    assert not page.get_by_role("link", name="Overview").first.is_visible()
    page.locator("#menu summary").focus()
    page.keyboard.press("Enter")
    page.locator("#menu").get_by_role("link", name="Overview").click()
    assert page.url == f"{address}/?since=6h"
    context.close()


def test_what_is_in_order_is_folded_on_a_phone_and_shown_where_there_is_room(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(address + "/fleet")
    table = page.locator("#even table")
    assert table.is_hidden()
    page.locator("#even summary").click()
    assert table.is_visible()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.reload()
    assert table.is_visible()
    assert page.locator("#even summary").is_hidden()
    page.close()


def test_a_form_without_script_narrows_the_page(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    page.get_by_label("model").select_option("mixtral-8x22b")
    page.get_by_role("button", name="Show").click()
    assert "Segments 1 to 1 of 1" in page.locator("#segments").inner_text()
    context.close()


def test_a_refresh_swaps_what_changed_and_keeps_focus_and_open_numbers(browser: Browser, address: str, page_store: Store) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.clock.install()
    page.goto(address + "/segment")
    page.locator("#numbers-gain summary").click()
    page.locator("#history #numbers-gain summary").focus()
    with page_store.write() as transaction:
        transaction.execute("update watermarks set ended_at = $at", {"at": NOW - timedelta(minutes=3)})
        transaction.execute("update effects set gain = gain - 0.01 where until = $at", {"at": NOW})
    page.clock.fast_forward(5000)
    page.locator("#metrics").get_by_text("2026-03-01 11:57 to 2026-03-02 11:57 UTC").wait_for(timeout=20_000)
    assert page.evaluate("document.getElementById('numbers-gain').open")
    assert page.evaluate("document.activeElement.closest('details').id") == "numbers-gain"
    page.close()


def test_a_refresh_keeps_what_is_typed_and_chosen_in_forms_and_the_cursor(browser: Browser, address: str, page_store: Store) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.clock.install()
    page.goto(address + "/compare")
    page.locator("#sets select[name='a.model']").select_option("mixtral-8x22b")
    where = page.locator("#sets input[name='a.where']")
    where.fill("prompt_tokens > 2000")
    page.evaluate("document.querySelector('[name=\"a.where\"]').setSelectionRange(3, 6)")
    page.evaluate("document.getElementById('sets').dataset.old = 'yes'")
    with page_store.write() as transaction:
        for place, arm in enumerate(("treated", "control")):
            row = {"id": 90_000 + place, "arm": arm}
            transaction.execute("insert into cell_series values ($id, 1, 'kv_quantization', $arm, null, null, false)", row)
    page.clock.fast_forward(5000)
    page.locator("#sets:not([data-old])").get_by_text("kv quantization: treated against control").wait_for(timeout=20_000)
    assert where.input_value() == "prompt_tokens > 2000"
    assert page.locator("#sets select[name='a.model']").input_value() == "mixtral-8x22b"
    assert page.evaluate("[document.activeElement.name, document.activeElement.selectionStart]") == ["a.where", 3]
    page.close()


def test_what_to_do_is_folded_out_by_a_click(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address + "/segment")
    page.locator("#why-chosen summary").click()
    assert page.get_by_text("Drain one replica.").first.is_visible()
    page.close()


def test_a_definition_opens_and_closes_by_keyboard(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address + "/segment")
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
    assert "Speculation stopped paying in 1 of 2 segments where it is judged" in page.locator("h1").inner_text()
    context.close()


def _assert_numbers(page: Page, reader: StoreReader) -> None:
    """What the browser shows is what the reader says."""
    report = reader.report(by=JUDGING_KEYS, metrics=METRICS, since=NOW - timedelta(hours=24), until=NOW)
    (row,) = report.filter(model="llama-3.3-70b", input_bucket="512-2047").iter_rows(named=True)
    told = [value for name in METRICS if (value := row.get(name, row.get(f"{name}_p50"))) is not None]
    shown = [float(value) for value in page.locator("table.by-arm data").evaluate_all("found => found.map(one => one.value)")]
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
