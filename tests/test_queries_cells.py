"""How a period is read from cells: nothing twice, what is summed up longest first, and outward to what is still there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline.metrics import METRICS, in_cells
from queries import cells_report
from queries.cells_plan import BLOCK, DAY, HOUR, WEEK, Held, Plan, plan

MONDAY = datetime(2026, 11, 23, tzinfo=UTC)
HOURS = [MONDAY + HOUR * n for n in range(10 * 24)]
HELD = Held(HOURS[:-1], HOURS[-1:], [MONDAY + DAY * n for n in range(9)], [MONDAY])
TIERS = ("weeks", "days", "hours", "blocks")


def lengths(found: Plan) -> list[timedelta]:
    return [sum((end - begin for begin, end in getattr(found, tier)), timedelta(0)) for tier in TIERS]


def test_without_ends_everything_is_read_from_what_is_summed_up_longest() -> None:
    assert lengths(plan(HELD, None, None)) == [WEEK, 2 * DAY, 23 * HOUR, HOUR]


def test_a_period_that_ends_inside_a_day_is_read_from_hours_and_blocks_at_its_ends() -> None:
    found = plan(HELD, MONDAY + HOUR - BLOCK, MONDAY + 2 * DAY + HOUR + BLOCK)
    assert lengths(found) == [timedelta(0), DAY, 24 * HOUR, 2 * BLOCK]
    assert found.since == MONDAY + HOUR - BLOCK


@pytest.mark.parametrize(("time", "expected"), [("hour", [0, 0, 239, 1]), ("day", [0, 216, 23, 1])])
def test_nothing_longer_than_the_time_that_is_told_apart_is_read(time: str, expected: list[int]) -> None:
    assert lengths(plan(HELD, None, None, time)) == [HOUR * hours for hours in expected]


def test_weeks_do_not_tell_replicas_apart() -> None:
    assert lengths(plan(HELD, None, None, by_replica=True)) == [timedelta(0), 9 * DAY, 23 * HOUR, HOUR]


def test_a_period_inside_a_block_is_rounded_outward_to_it() -> None:
    found = plan(HELD, MONDAY + timedelta(minutes=7), MONDAY + timedelta(minutes=8))
    assert (found.since, found.until) == (MONDAY + BLOCK, MONDAY + 2 * BLOCK)
    assert found.blocks == ((MONDAY + BLOCK, MONDAY + 2 * BLOCK),)


@pytest.mark.parametrize(
    ("gone", "begins"),
    [({"blocks_from": MONDAY + 4 * DAY}, MONDAY + 3 * HOUR), ({"blocks_from": MONDAY + 4 * DAY, "hours_from": MONDAY + 2 * DAY}, MONDAY)],
)
def test_where_blocks_are_gone_a_period_begins_with_an_hour_and_where_hours_are_with_a_day(
    gone: dict[str, datetime], begins: datetime
) -> None:
    old = Held(HELD.hours, HELD.open_hours, HELD.days, HELD.weeks, **gone)
    found = plan(old, MONDAY + 3 * HOUR + timedelta(minutes=20), MONDAY + 6 * DAY)
    assert found.since == begins
    assert found.blocks == ()


def test_an_hour_of_a_day_that_is_summed_up_without_it_is_read_from_its_blocks() -> None:
    late = Held([hour for hour in HOURS if hour != MONDAY + 5 * HOUR], [MONDAY + 5 * HOUR], [MONDAY], [])
    found = plan(late, MONDAY, MONDAY + DAY)
    assert found.days == ((MONDAY, MONDAY + DAY),)
    assert found.hours == ()
    assert found.blocks == ((MONDAY + 5 * HOUR, MONDAY + 6 * HOUR),)


def test_nothing_is_read_of_a_store_without_cells() -> None:
    assert lengths(plan(Held([], [], []), None, None)) == [timedelta(0)] * 4


def test_the_planner_does_not_look_through_a_row_of_many_metrics() -> None:
    """It took 20 s over all metrics by model, whatever the cells held."""
    held = [metric for metric in METRICS if in_cells(metric)]
    assert "wide as materialized" in cells_report.report(held, ["model"], plan(HELD, None, None)).sql
