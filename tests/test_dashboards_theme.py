"""Stored units become display units in one place."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboards import theme

SPACE = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0312, "s/token", "31.2 ms/token"),
        (0.18, "s", "180 ms"),
        (2.345, "s", "2.35 s"),
        (0.153, "ratio", "15.3 %"),
        (0.612, "ratio", "61 %"),
        (28.57e9, "bytes/s", "28.6 GB/s"),
        (2.083, "tokens/step", "2.08 tokens/step"),
        (12345.0, "requests", "12,345 requests"),
        (None, "ratio", "no data"),
    ],
)
def test_values_are_shown_in_display_units(value: float | None, unit: str, text: str) -> None:
    assert theme.shown(value, unit).replace(SPACE, " ") == text


@pytest.mark.parametrize(("ratio", "text"), [(-0.15, "−15 %"), (0.2, "+20 %"), (0.034, "+3.4 %"), (0.0, "+0.0 %")])
def test_gains_carry_their_sign(ratio: float, text: str) -> None:
    assert theme.signed_percent(ratio).replace(SPACE, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-2, "0 s"), (4.4, "4 s"), (300, "5 min"), (7800, "2 h 10 min"), (7200, "2 h"), (259_200, "3 days")],
)
def test_ages_are_said_in_words(seconds: float, text: str) -> None:
    assert theme.age(seconds) == text


def test_a_time_of_another_day_carries_its_date() -> None:
    now = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
    assert theme.clock(datetime(2026, 3, 2, 7, 30, tzinfo=UTC), now) == "07:30 UTC"
    assert theme.clock(datetime(2026, 3, 1, 7, 30, tzinfo=UTC), now) == "2026-03-01 07:30 UTC"
