"""Names that are too long are cut so that what tells them apart can still be read."""

from __future__ import annotations

import pytest

from dashboards.short_names import told_apart

LONG = [f"chat-70b · a100 · tp2 · {bucket} tokens in · temperature 0.3-0.8" for bucket in ("512-2047", "2048-8191")]


def test_names_that_fit_stay_as_they_are() -> None:
    assert told_apart(LONG, 80) == LONG


def test_what_all_share_is_left_out_first() -> None:
    assert told_apart(LONG, 40) == ["chat-70b · … · 512-2047 tokens in · …", "chat-70b · … · 2048-8191 tokens in · …"]
    assert told_apart(LONG, 30)[0] == "… · 512-2047 tokens in · …"
    assert told_apart(LONG, 60)[0] == "chat-70b · … · 512-2047 tokens in · temperature 0.3-0.8"


def test_of_parts_that_differ_those_that_are_not_needed_go_and_the_first_stays_longest() -> None:
    names = [*LONG, "code-13b · l40s · tp1 · 2048-8191 tokens in · temperature <0.3"]
    cut = ["chat-70b · … · 512-2047 tokens in · …", "chat-70b · … · 2048-8191 tokens in · …", "code-13b · … · 2048-8191 tokens in · …"]
    assert told_apart(names, 45) == cut
    assert told_apart([*names[:2], "standardized"], 45) == [*cut[:2], "standardized · …"]


def test_a_name_alone_keeps_its_beginning_and_its_end() -> None:
    (cut,) = told_apart(LONG[:1], 30)
    assert (len(cut), cut[:8], cut[-7:]) == (30, "chat-70b", "0.3-0.8")
    assert told_apart(LONG[:1] * 2, 30) == [cut, cut]


@pytest.mark.parametrize("most", [12, 20, 30])
def test_no_name_is_longer_than_asked_for(most: int) -> None:
    names = [*LONG, "x" * 90, "standardized"]
    assert max(map(len, told_apart(names, most))) <= most
    assert told_apart(["standardized"], most) == ["standardized"]


def test_no_names_are_none() -> None:
    assert told_apart([], 10) == []
