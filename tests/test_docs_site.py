"""The documents build into a site: no link leads nowhere, nothing of it comes from another host, and its search finds what is written."""

from __future__ import annotations

import functools
import http.server
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import browser_pages
import docs_blocks
import pytest
from docs_blocks import ROOT

from leverwatch.version import __version__

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LIMIT_S = 300.0
LOADED = re.compile(r"<(?:script|img|iframe|source|link|video|audio|object)\b[^>]*?\b(?:src|href|data)=\"([^\"]+)\"")
STYLED = re.compile(r"(?:url\(|@import )[\"']?([^\"')\s]+)")
LINK = re.compile(r"\]\((https?://[^)\s]*)\)|<(https?://[^>\s]*)>")


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` does, of a source folder."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-c", str(ROOT / "docs")]
    command += ["-d", str(target / "doctrees"), str(source), str(target / "site")]
    return subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=LIMIT_S, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("built")
    done = build(ROOT, target)
    assert done.returncode == 0, done.stderr
    return target / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_every_page_of_the_repository_is_on_the_site_and_in_its_navigation(site: Path) -> None:
    """A dead link, a dead anchor and a page that no list names fail the build itself."""
    shown = (site / "README.html").read_text(encoding="utf-8")
    for page in docs_blocks.pages():
        assert (site / page).with_suffix(".html").is_file(), page
        if not page.startswith(("docs/adr/", "README")):
            assert f'href="{page.removesuffix(".md")}.html"' in shown, page
    assert __version__ in shown
    assert "README.html" in (site / "index.html").read_text(encoding="utf-8")


def test_nothing_that_a_page_loads_comes_from_another_host(site: Path) -> None:
    loaded = {one for path in site.rglob("*.html") for one in LOADED.findall(path.read_text(encoding="utf-8"))}
    loaded |= {one for path in site.rglob("*.css") for one in STYLED.findall(path.read_text(encoding="utf-8"))}
    assert loaded
    assert sorted(one for one in loaded if urlsplit(one).netloc) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("[there](#there)", ""),
        ("[gone](gone.md)", "gone.md"),
        ("[gone](other.md#gone)", "gone"),
        ("[gone](#gone)", "gone"),
        ("![gone](images/gone.png)", "gone.png"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, wrong: str, told: str) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# First\n")
    (tmp_path / "docs/README.md").write_text("# List\n\n## Start\n\n- [One](one.md)\n- [Other](other.md)\n")
    (tmp_path / "docs/one.md").write_text(f"# One\n\n{wrong}\n\n## There\n")
    (tmp_path / "docs/other.md").write_text("# Other\n\n[one](one.md#there)\n")
    done = build(tmp_path, tmp_path / "built")
    assert (done.returncode != 0) == bool(told), done.stderr
    assert told in done.stderr


@pytest.mark.parametrize("page", docs_blocks.pages())
def test_links_to_other_hosts_are_well_formed(page: str) -> None:
    """Whether they answer is not asked: tests reach no network."""
    links = ["".join(found) for found in LINK.findall(docs_blocks.text_of(page))]
    assert [link for link in links if not re.fullmatch(r"[a-z0-9.-]+\.[a-z0-9]+(:\d+)?", urlsplit(link).netloc)] == []


@pytest.mark.parametrize("width", [1440, 390])
def test_the_site_is_sound_in_a_browser_light_and_dark(browser: Browser, address: str, width: int) -> None:
    with browser_pages.whole(browser, address, ("/README.html", "/docs/asking.html", "/docs/metrics.html"), width, ("light", "dark")):
        pass


def test_the_search_finds_a_page_without_another_host(browser: Browser, address: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/search.html?q=holdout")
    page.locator("#search-results a", has_text="Commands").first.wait_for()
    assert [url for url in asked if not url.startswith(address)] == []
    page.close()
