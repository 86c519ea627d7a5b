"""Switchback schedules: planned by chance, written, read back, and refused with the file and line where they cannot be used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from collectors import dialects, registry
from pipeline import schedule, schedule_file
from pipeline.schedule import Plan
from pipeline.schedule_rows import ScheduleError

SINCE = datetime(2026, 11, 29, 12, tzinfo=UTC)
HEAD = "lever,replica,pair,arm,from_time,until_time,burn_in_s,tail_s\n"
ON = "speculation,r0,1,treated,2026-11-29T12:00:00Z,2026-11-29T12:15:00Z,300,0\n"
OFF = "speculation,r0,1,control,2026-11-29T12:15:00Z,2026-11-29T12:30:00Z,300,0\n"


def test_what_is_planned_and_written_is_read_back() -> None:
    planned = schedule.planned("speculation", ["r0", "r,1"], SINCE, 24, Plan(900, 300, 60), seed=7)
    assert schedule_file.parse(schedule_file.text(planned), "here") == planned
    assert len(planned) == 2 * 24 * 2
    assert schedule.objections(planned) == []


def test_a_seed_draws_the_same_order_again_and_another_draws_another() -> None:
    first, again, other = (schedule.planned("speculation", ["r0", "r1"], SINCE, 24, Plan(), seed) for seed in (7, 7, 8))
    assert first == again
    assert [one.arm for one in first] != [one.arm for one in other]
    assert [one.arm for one in first[:48]] != [one.arm for one in first[48:]]


def test_replicas_switch_at_different_times_each_on_whole_blocks() -> None:
    planned = schedule.planned("speculation", ["r0", "r1", "r2", "r3"], SINCE, 2, Plan(900), seed=1)
    starts = [planned[4 * place].since - SINCE for place in range(4)]
    assert starts == [timedelta(0), timedelta(minutes=5), timedelta(minutes=10), timedelta(0)]


def test_in_half_of_the_pairs_the_lever_comes_first() -> None:
    planned = schedule.planned("speculation", ["r0"], SINCE, 400, Plan(), seed=3)
    firsts = [one.arm == "treated" for one in planned[::2]]
    assert 160 < sum(firsts) < 240
    assert all(first.arm != second.arm for first, second in zip(planned[::2], planned[1::2], strict=True))


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (Plan(700), "period_s 700: a multiple of 300 up to 86400 is taken"),
        (Plan(0), "period_s 0: a multiple of 300 up to 86400 is taken"),
        (Plan(300, 60), "burn_in_s 60 and tail_s 0 leave no whole block of 300 s of period_s 300"),
        (Plan(900, 301, 300), "leave no whole block"),
        (Plan(900, -1), "burn_in_s -1, tail_s 0: numbers from 0 on are taken"),
    ],
)
def test_a_plan_that_measures_nothing_is_refused(plan: Plan, told: str) -> None:
    with pytest.raises(ScheduleError, match=f"^schedule of speculation: .*{told}"):
        schedule.planned("speculation", ["r0"], SINCE, 4, plan, seed=1)


def test_a_plan_beside_the_blocks_or_without_replicas_is_refused() -> None:
    with pytest.raises(ScheduleError, match="on a whole 5 minutes"):
        schedule.planned("speculation", ["r0"], SINCE + timedelta(seconds=1), 4, Plan(), seed=1)
    with pytest.raises(ScheduleError, match="different names"):
        schedule.planned("speculation", ["r0", "r0"], SINCE, 4, Plan(), seed=1)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("", "f.csv: line 1: '': the header lever,replica,"),
        (HEAD.replace("pair", "par") + ON, "f.csv: line 1: 'lever,replica,par,"),
        (HEAD + "speculation,r0\n", "f.csv: line 2: 2 cells: 8 are taken"),
        (HEAD + ON + OFF.replace("speculation", "speculaton"), "f.csv: line 3: lever 'speculaton' is unknown; did you mean 'speculation'"),
        (HEAD + ON.replace("treated", "trated"), "f.csv: line 2: arm 'trated' is unknown; did you mean 'treated'"),
        (HEAD + ON.replace("r0", ""), "f.csv: line 2: replica is empty"),
        (HEAD + ON.replace(",1,", ",0,"), "f.csv: line 2: pair '0': a whole number from 1 on"),
        (HEAD + ON.replace(",300,", ",-300,"), "f.csv: line 2: burn_in_s '-300': a whole number from 0 on"),
        (HEAD + ON.replace("2026-11-29T12:00", "noon"), "f.csv: line 2: from_time 'noon:00Z': ISO 8601"),
        (HEAD + ON.replace("2026-11-29T12:00:00Z", "0001-01-01T00:00:00+14:00"), "f.csv: line 2: from_time"),
        (HEAD + ON.replace(",300,", ",900,"), "f.csv: line 2: from .* leaves nothing to measure"),
        (HEAD + ON.replace(",300,", ",999999999,"), "f.csv: line 2: from .* leaves nothing to measure"),
        (HEAD + ON, "f.csv: line 2: pair 1 of speculation on 'r0' has treated; a period of treated and one of another arm"),
        (HEAD + ON + OFF.replace("control", "treated"), "f.csv: line 2, 3: pair 1 .* has treated, treated"),
        (HEAD + ON + OFF.replace("12:30", "12:45"), "f.csv: line 2, 3: .*two periods of one length"),
        (HEAD + ON + OFF.replace("12:15", "12:10"), "f.csv: lines 2 and 3 both say speculation of 'r0' for the same time"),
        (HEAD + 'speculation,"r0', "f.csv: line 2: unexpected end of data"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(body: str, told: str) -> None:
    with pytest.raises(ScheduleError, match=f"^{told}"):
        schedule_file.parse(body, "f.csv")


def test_blank_lines_offsets_and_a_byte_order_mark_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "switchback.csv"
    file.write_text("\ufeff" + HEAD + "\n" + ON.replace("12:00:00Z", "14:00:00+02:00") + OFF, encoding="utf-8")
    first, _ = schedule_file.read(file)
    assert first.since == SINCE
    assert first.measured == (SINCE + timedelta(minutes=5), SINCE + timedelta(minutes=15))
    other = SINCE.astimezone(timezone(timedelta(hours=9)))
    assert schedule.planned("speculation", ["r0"], other, 1, Plan(), seed=1) == schedule.planned(
        "speculation", ["r0"], SINCE, 1, Plan(), seed=1
    )


def test_the_other_arm_may_be_the_lever_disabled_in_place() -> None:
    planned = schedule.planned("speculation", ["r0"], SINCE, 3, Plan(), seed=1, without="disabled_in_place")
    assert {one.arm for one in planned} == {"treated", "disabled_in_place"}
    assert schedule_file.parse(schedule_file.text(planned), "f.csv") == planned


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"nope\.csv: No such file or directory"):
        schedule_file.read(tmp_path / "nope.csv")


def test_an_order_that_was_not_drawn_is_objected_to() -> None:
    rows = [ON, OFF]
    same, turned = HEAD, HEAD
    for pair in range(8):
        day = f"2026-11-{10 + pair}"
        shifted = [row.replace("2026-11-29", day).replace(",1,", f",{pair + 1},") for row in rows]
        same += "".join(shifted)
        swapped = [row.replace("treated", "x").replace("control", "treated").replace("x", "control") for row in shifted]
        turned += "".join(shifted if pair % 2 else swapped)
    assert schedule.objections(schedule_file.parse(same, "f.csv")) == [
        "speculation on 'r0': treated comes first in all 8 pairs; the order has to be drawn"
    ]
    assert schedule.objections(schedule_file.parse(turned, "f.csv")) == [
        "speculation on 'r0': the order alternates through all 8 pairs; it has to be drawn"
    ]


def test_periods_without_a_whole_block_are_objected_to() -> None:
    late = HEAD + ON.replace(",300,", ",601,") + OFF
    assert schedule.objections(schedule_file.parse(late, "f.csv")) == ["1 of 2 periods measure no whole block of 300 s"]


def test_the_registry_hears_of_measured_times_alone() -> None:
    told = schedule_file.registry_text(schedule_file.parse(HEAD + ON + OFF, "f.csv")).splitlines()
    assert told == [
        "replica,from_time,until_time,key,value",
        "r0,2026-11-29T12:05:00Z,2026-11-29T12:15:00Z,arm.speculation,treated",
        "r0,2026-11-29T12:20:00Z,2026-11-29T12:30:00Z,arm.speculation,control",
    ]
    assert registry.parse("\n".join(told), dialects.deployment(), "levers.csv").keys == ["arm.speculation"]


def test_kernels_get_the_lever_and_the_replicas_that_were_asked_for() -> None:
    planned = schedule.planned("speculation", ["r0", "r1"], SINCE, 2, Plan(), seed=1)
    found = schedule.arrays(planned, "speculation", {"r1": 5})
    np.testing.assert_array_equal(found.replicas, [5, 5, 5, 5])
    np.testing.assert_array_equal(found.until_s - found.since_s, [600.0] * 4)
    assert len(schedule.arrays(planned, "prefix_caching", {"r1": 5}).pairs) == 0
