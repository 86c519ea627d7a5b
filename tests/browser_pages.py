"""A real browser for page tests: where it is, how it is started, and what holds of every page in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync"
)
NAMES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "google-chrome")


@contextmanager
def opened() -> Iterator[Browser]:
    """The browser, without a window. Skips, or fails where one is demanded, on a machine that has none."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        said = f"no browser here; looked for {', '.join(NAMES)}"
        if os.environ.get("LEVERWATCH_REQUIRE_BROWSER") == "1":
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS.split())
        yield browser
        browser.close()


@contextmanager
def whole(browser: Browser, address: str, paths: Sequence[str], width: int, schemes: Sequence[str]) -> Iterator[Page]:
    """A page of a width on which every path was looked at: none is wider, none has a serious fault by axe in any of the color schemes.

    Once the block ends, nothing was complained of and no other host was asked.
    """
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for path in paths:
        page.goto(address + path)
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, scheme)
            assert _faults(page) == [], (path, scheme)
    yield page
    assert [text for text in said if "400 (Bad Request)" not in text] == []
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()


def _faults(page: Page) -> list[tuple[str, list[str]]]:
    """The serious things that axe finds, each with the elements that it is about."""
    found = Axe().run(page).response["violations"]
    return [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found if one["impact"] in ("serious", "critical")]
