"""The table of what is read from each sender says what the dialect files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import dialects
from collectors.engine_matrix import COLUMNS, END, START, replaced, table

PAGE = Path(__file__).parents[1] / "README.md"


def test_the_table_of_the_first_page_is_the_one_that_the_files_make(update_golden: bool) -> None:
    made = replaced(PAGE.read_text(encoding="utf-8"), dialects.shipped())
    if update_golden:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "run `make golden`"


@pytest.mark.parametrize(
    ("title", "reads", "lacks"),
    [
        ("vLLM", {"tokens in, out", "first token", "queue"}, {"cached tokens", "drafts", "finish, outcome"}),
        ("Leverwatch response tap", {"cached tokens", "drafts"}, {"KV transfer"}),
        ("SGLang", {"cached tokens", "KV transfer"}, {"drafts"}),
        ("LMDeploy", set(), set(COLUMNS)),
    ],
)
def test_a_row_ticks_what_is_read_and_leaves_empty_what_is_not(title: str, reads: set[str], lacks: set[str]) -> None:
    (row,) = (line for line in table(dialects.shipped()).splitlines() if line.startswith(f"| {title} |"))
    ticked = {name for name, cell in zip(COLUMNS, row.removesuffix(" |").split(" | ")[1:], strict=True) if cell}
    assert reads <= ticked
    assert not lacks & ticked


def test_every_sender_has_a_row() -> None:
    assert len(table(dialects.shipped()).splitlines()) == 2 + len(dialects.shipped())


def test_every_column_is_of_signals_that_some_sender_has() -> None:
    known = {signal for dialect in dialects.shipped() for signal in (*dialect.signals, *(event.signal for event in dialect.events))}
    assert [name for name, signals in COLUMNS.items() if not known.issuperset(signals)] == []


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        replaced(f"{START} and no end", dialects.shipped())
    assert END not in START


def test_what_a_span_carries_only_where_somebody_adds_it_has_no_tick_and_what_comes_sometimes_has_one_in_brackets() -> None:
    rows = {row.split(" | ")[0].removeprefix("| "): row.removesuffix(" |").split(" | ") for row in table(dialects.shipped()).splitlines()}
    place = {name: number + 1 for number, name in enumerate(COLUMNS)}
    assert rows["vLLM"][place["model"]].strip() == ""
    assert rows["LiteLLM proxy"][place["first token"]] == "(✓)"
    assert rows["NVIDIA Dynamo"][place["first token"]] == "✓"
