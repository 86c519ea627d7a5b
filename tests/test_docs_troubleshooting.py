"""What docs/troubleshooting.md quotes stands in the program as it is quoted, and what leads to its parts finds them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/troubleshooting.md"
ROOMS = ("alerts", "collectors", "dashboards", "leverwatch", "pipeline", "queries")
FROM_ELSEWHERE = ("ConnectError: All connection attempts failed",)  # of the HTTP client
QUOTED_WORDS, FRAGMENT_WORDS = 4, 3


def quoted() -> list[str]:
    """The messages of the page: what stands in backticks, has some words, and is no command."""
    text = re.sub(r"^ *```.*?^ *```$", "", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    found = [" ".join(one.split()) for one in re.findall(r"`([^`]+)`", text)]
    return [one for one in found if len(one.split()) >= QUOTED_WORDS and not one.startswith(("leverwatch ", "curl ", "OTEL_"))]


def anchors() -> set[str]:
    """The anchors of the page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", PAGE.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_each_quoted_message_is_one_that_the_program_says() -> None:
    sources = "\n".join(path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    fragments = [part.strip() for one in quoted() for part in one.split("...")]
    asked = [part for part in fragments if len(part.split()) >= FRAGMENT_WORDS and not any(known in part for known in FROM_ELSEWHERE)]
    assert len(asked) > 20
    assert [part for part in asked if part not in sources] == []


def test_links_to_parts_of_the_page_find_them() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.y*ml"), ROOT / "README.md"]
    asked = {(page.name, found) for page in pages for found in re.findall(r"troubleshooting\.md#([\w-]+)", page.read_text())}
    asked |= {(PAGE.name, found) for found in re.findall(r"\]\(#([\w-]+)\)", PAGE.read_text())}
    assert asked
    assert [one for one in asked if one[1] not in anchors()] == []
