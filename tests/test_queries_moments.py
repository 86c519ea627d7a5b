"""Times that questions take: ISO 8601 or an age, with room for a day before and a block after."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from queries.report import ReportError, moment

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59:59Z", "0001-06-01T00:00:00+09:00", "999999999999d", "800000d"])
def test_a_time_at_the_ends_of_the_calendar_is_refused_with_what_is_taken(text: str) -> None:
    with pytest.raises(ReportError, match="ISO 8601 or an age such as 90m, 24h, 7d is taken, from year 2 to 9998 in UTC"):
        moment(text, NOW)


@pytest.mark.parametrize(("text", "year"), [("0002-01-01", 2), ("9998-12-31T23:59:59Z", 9998), ("24h", 2026)])
def test_a_time_within_them_is_taken(text: str, year: int) -> None:
    assert moment(text, NOW).year == year
