"""The page about engines says what the dialect files say, and nothing of them is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import dialects
from collectors.dialect_parts import Dialect
from collectors.engine_docs import page

PAGE = Path(__file__).parents[1] / "docs/engines.md"


def section(dialect: Dialect) -> str:
    (found,) = (part for part in page(dialects.shipped(), dialects.deployment()).split("\n## ") if f"Dialect `{dialect.dialect}`" in part)
    return found


def test_the_page_is_the_one_that_the_files_make(update_golden: bool) -> None:
    made = page(dialects.shipped(), dialects.deployment())
    if update_golden:
        PAGE.write_text(made)
    assert PAGE.read_text() == made


@pytest.mark.parametrize("dialect", dialects.shipped(), ids=lambda dialect: dialect.dialect)
def test_a_section_names_every_key_every_missing_signal_and_who_sends_it(dialect: Dialect) -> None:
    told = section(dialect)
    assert told.startswith(dialect.title)
    assert dialect.title
    assert dialect.versions in told
    assert dialect.sampling in told
    for signal, sources in dialect.signals.items():
        assert all(f"| `{signal}` | " in told and f"`{source.key}`" in told for source in sources)
    assert all(f"| `{signal}` | {why} |" in told for signal, why in dialect.cannot.items())
    assert all(scope in told for scope in dialect.scopes if scope != "*")
