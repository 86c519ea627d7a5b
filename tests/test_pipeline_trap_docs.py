"""The page about traps says what the rows say, and each upstream issue that is named can be followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.guard_counters import SERIES_TRAPS
from pipeline.impossible import TRAPS
from pipeline.trap_docs import page
from pipeline.traps import SeriesTrap, Trap, link

PAGE = Path(__file__).parents[1] / "docs/traps.md"
ALL = (*TRAPS, *SERIES_TRAPS)


def test_the_page_is_the_one_that_the_rows_make(update_golden: bool) -> None:
    if update_golden:
        PAGE.write_text(page())
    assert PAGE.read_text() == page()


def test_no_two_traps_have_one_name() -> None:
    names = [trap.name for trap in ALL]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("trap", ALL, ids=lambda trap: trap.name)
def test_a_trap_says_what_is_wrong_and_names_an_issue_that_can_be_followed(trap: Trap | SeriesTrap) -> None:
    assert trap.columns
    assert len(trap.reason) > 20
    assert trap.upstream == "MLPerf LoadGen" or bool(trap.upstream) == bool(link(trap.upstream))


@pytest.mark.parametrize("issue", ["vllm#25780", "vllm#54607", "sglang#31877", "sglang#12064", "guidellm#1144"])
def test_each_of_the_five_upstream_bugs_is_on_the_page_with_its_address(issue: str) -> None:
    assert f"[{issue}]({link(issue)})" in page()
