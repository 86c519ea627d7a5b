"""The page about SQL says what the investigations' headers say."""

from __future__ import annotations

from pathlib import Path

from queries.question_docs import page

PAGE = Path(__file__).parents[1] / "docs/sql.md"


def test_the_page_is_the_one_that_the_headers_make(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
