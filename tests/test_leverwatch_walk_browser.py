"""A whole server in a real browser: every link is followed, and what pages show is what the API gives for the same question."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import SplitResult, parse_qsl, urlsplit

import dashboards_rows
import httpx
import pytest
from dashboards_rows import NOW
from elsewhere_rooms import application, room
from playwright.sync_api import Browser, Page

from dashboards.security import Headed
from dashboards.segment_table import METRICS
from pipeline.segments import JUDGING_KEYS

ALIKE = 2  # of links that differ in values alone so many are followed; of files of one kind, and of questions, all are alike
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
    asked = {"by": ",".join(JUDGING_KEYS), "metrics": ",".join(names), "source": "cells", "since": "24h", "until": NOW.isoformat()}
    rows = httpx.get(f"{address}/api/report", params=asked).raise_for_status().json()
    (row,) = [one for one in rows if (one["model"], one["input_bucket"]) == ("llama-3.3-70b", "512-2047")]
    told = [value for name in names if (value := row.get(name, row.get(f"{name}_p50"))) is not None]
    shown = _values(page, "table.by-arm data")
    assert len(told) > 5
    assert [value for value in told if not any(abs(value - other) <= 1e-9 * abs(value) for other in shown)] == []
    page.close()


def test_the_verdicts_of_the_first_page_are_those_of_the_api(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/")
    verdicts = httpx.get(f"{address}/api/verdicts").raise_for_status().json()
    counted = Counter(one["verdict"] for one in verdicts)
    cells = Counter(page.locator("[data-verdict]").evaluate_all("found => found.map(one => one.dataset.verdict)"))
    assert counted
    assert cells == counted
    page.close()


def _walked(page: Page, address: str) -> dict[str, int]:
    """The status of each link that was followed from the first page on, at most `ALIKE` of those that differ in values alone."""
    waiting, known, alike = deque([f"{address}/"]), {f"{address}/"}, Counter[tuple[str, ...]]()
    found: dict[str, int] = {}
    while waiting:
        url = waiting.popleft()
        parts = urlsplit(url)
        alike[_shape(parts)] += 1
        if alike[_shape(parts)] > ALIKE:
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


def _shape(parts: SplitResult) -> tuple[str, ...]:
    """What links have in common that differ in values alone."""
    path = PurePosixPath(parts.path)
    names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True) if not name.startswith("p.")}
    return (path.suffix,) if path.suffix else (parts.path, *sorted(names))


def _values(page: Page, which: str) -> list[float]:
    return [float(value) for value in page.locator(which).evaluate_all("found => found.map(one => one.value)")]
