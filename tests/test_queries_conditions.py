"""A stranger's condition stays inside the brackets that a report puts around it."""

from __future__ import annotations

import pytest

from queries import conditions


@pytest.mark.parametrize(
    "text",
    [
        "model = 'm'",
        "(a or b) and (c)",
        "model = ')'",
        '"odd)" > 1',
        "a /* ) */ > 1",
        "a > 1 -- )",
        "x = $$)$$",
        "x = $t$)$t$",
        "x = ')'')'",
        "'x'",
    ],
)
def test_one_condition_is_taken(text: str) -> None:
    assert not conditions.fault(text)


@pytest.mark.parametrize("text", ["true) or (true", "a) or (b", "(a", "a)", "a in (1", "", " ", "-- all", "/* all */"])
def test_what_leaves_its_brackets_or_says_nothing_is_refused(text: str) -> None:
    assert conditions.fault(text)
