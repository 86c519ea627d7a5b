"""A misspelled mark of the deployment is said, with the nearest right one: silently it would drop requests from every comparison."""

from __future__ import annotations

import pytest
from collectors_bodies import attribute, body, span

from alerts.levers import LEVERS
from collectors import decode, dialects
from collectors.marks import odd_marks


def said(*bodies: bytes) -> list[tuple[int, str, int]]:
    return sorted(odd_marks(decode.scan(list(bodies)), dialects.deployment(), dialects.shipped()))


def marked(key: str, value: str) -> bytes:
    return body(span(1, attributes=[attribute(key, value)]), span(2, attributes=[attribute(key, value)]))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (
            "leverwatch.arm.speculation",
            "contol",
            "leverwatch.arm.speculation = 'contol' is no arm; did you mean 'control'? taken: treated, control",
        ),
        (
            "leverwatch.arm.speculaton",
            "control",
            "attribute 'leverwatch.arm.speculaton' is unknown; did you mean 'leverwatch.arm.speculation'?",
        ),
        (
            "leverwatch.dialect",
            "vlm",
            "leverwatch.dialect = 'vlm' is no dialect; did you mean 'vllm'? taken: ",
        ),
        ("leverwatch.modle", "x", "attribute 'leverwatch.modle' is unknown; did you mean 'leverwatch.model'?"),
    ],
)
def test_a_misspelled_mark_is_said_with_the_nearest_right_one(key: str, value: str, told: str) -> None:
    ((number, what, count),) = said(body(span(9)), marked(key, value))
    assert (number, count) == (1, 2)
    assert what.startswith(told)


def test_a_mark_on_the_resource_counts_once_a_body() -> None:
    ((number, what, count),) = said(body(span(1), span(2), **{"leverwatch.arm.speculation": "off"}))
    assert (number, count) == (0, 1)
    assert "is no arm" in what


@pytest.mark.parametrize(
    "key", ["leverwatch.model", "leverwatch.replica", "leverwatch.lever.speculation", "leverwatch.body.cached_tokens", "tenant"]
)
def test_a_right_mark_and_another_ones_attribute_are_not_odd(key: str) -> None:
    assert said(marked(key, "x")) == []


def test_the_levers_known_at_the_door_are_those_that_policies_may_name() -> None:
    assert dialects.deployment().marks.levers == LEVERS
