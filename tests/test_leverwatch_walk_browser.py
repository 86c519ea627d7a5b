"""A whole server in a real browser: links of every kind are followed, and what pages show is what the API gives for the same question."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import SplitResult, urlsplit

import dashboards_rows
import httpx
import pytest
from dashboards_rows import NOW
from elsewhere_rooms import application, room
from playwright.sync_api import Browser, Page

from dashboards.security import Headed
from dashboards.segment_table import METRICS
from pipeline.segments import JUDGING_KEYS

ALIKE = 4  # so many links to a page are followed, or to files of a kind
PAGES = {"/", "/segment", "/lever", "/compare", "/notices", "/fleet", "/health", "/request", "/sql", "/docs"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with room(tmp_path_factory.mktemp("data")) as opened, dashboards_rows.listening(Headed(application(opened))) as served:
        yield served


def test_every_link_leads_somewhere_and_no_page_complains_or_asks_another_host(browser: Browser, address: str) -> None:
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    page.on("request", lambda request: asked.append(request.url))
    followed = _walked(page, address)
    assert {urlsplit(url).path for url in followed} >= PAGES
    assert {url: status for url, status in followed.items() if status != 200} == {}
    assert said == []
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()


def test_the_numbers_of_a_segment_are_those_of_the_report(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/segment?model=llama-3.3-70b&input_bucket=512-2047")
    names = [name for name in METRICS if name != "net_itl_gain"]
    asked = {"by": ",".join(JUDGING_KEYS), "metrics": ",".join(names), "from": "cells", "since": "24h", "until": NOW.isoformat()}
    answer = httpx.get(f"{address}/api/report", params=asked)
    assert answer.status_code == 200, answer.text
    rows = answer.json()
    (row,) = [one for one in rows if (one["model"], one["input_bucket"]) == ("llama-3.3-70b", "512-2047")]
    told = [value for name in names if (value := row.get(name, row.get(f"{name}_p50"))) is not None]
    shown = _values(page, "table.by-arm data")
    assert len(told) > 5
    assert [value for value in told if not any(abs(value - other) <= 1e-9 * abs(value) for other in shown)] == []
    page.close()


def test_the_verdicts_of_the_first_page_are_those_of_the_api(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/")
    told = Counter(one["reason"] for one in httpx.get(f"{address}/api/verdicts").raise_for_status().json())
    assert len(told) > 1
    assert Counter(page.locator("a.badge").evaluate_all("found => found.map(one => one.title)")) == told
    page.close()


def _walked(page: Page, address: str) -> dict[str, int]:
    """The status of each link that was followed from the first page on, at most `ALIKE` of those of a kind."""
    waiting, known, alike = deque([f"{address}/"]), {f"{address}/"}, Counter[str]()
    found: dict[str, int] = {}
    while waiting:
        url = waiting.popleft()
        parts = urlsplit(url)
        alike[_kind(parts)] += 1
        if alike[_kind(parts)] > ALIKE:
            continue
        if parts.path not in PAGES:  # a file, or an answer of the API
            found[url] = page.request.get(url).status
            continue
        answer = page.goto(url)
        found[url] = answer.status if answer else 0
        for link in page.locator("a[href]").evaluate_all("links => links.map(link => link.href.split('#')[0])"):
            if link.startswith(address) and link not in known:
                known.add(link)
                waiting.append(link)
    return found


def _kind(parts: SplitResult) -> str:
    """What a link leads to: a page or route, or a file by its ending."""
    return PurePosixPath(parts.path).suffix or parts.path


def _values(page: Page, which: str) -> list[float]:
    return [float(value) for value in page.locator(which).evaluate_all("found => found.map(one => one.value)")]
