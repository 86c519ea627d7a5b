"""`leverwatch switchback`: what it plans it can check, and it says why a schedule tells nothing."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leverwatch.cli import switchback
from pipeline import schedule_file
from pipeline.schedule_rows import ScheduleError

PLAN = ("plan", "--lever", "speculation", "--replica", "r0", "--replica", "r1", "--seed", "7")


def ran(*words: str) -> int:
    parser = argparse.ArgumentParser()
    switchback.add(parser.add_subparsers())
    args = parser.parse_args(["switchback", *words])
    status: int = args.run(args)
    return status


def test_what_is_planned_can_be_checked_and_told_to_the_registry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "switchback.csv"
    assert ran(*PLAN, "--from", "2026-11-30T08:00:00Z", "--out", str(file)) == 0
    periods = schedule_file.read(file)
    assert len(periods) == 2 * 96
    assert periods[0].since == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert ran("check", str(file), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == {"periods": 192, "objections": []}
    assert ran("registry", str(file)) == 0
    assert capsys.readouterr().out.count("arm.speculation") == 192


def test_a_plan_without_a_time_begins_on_a_block_in_an_hour(capsys: pytest.CaptureFixture[str]) -> None:
    before = datetime.now(UTC)
    assert ran(*PLAN, "--hours", "1") == 0
    first = schedule_file.parse(capsys.readouterr().out, "printed")[0]
    assert first.since.timestamp() % 300 == 0
    assert 3600 <= (first.since - before).total_seconds() < 3600 + 300 + 60


def test_a_schedule_whose_order_was_not_drawn_has_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "switchback.csv"
    ran(*PLAN[:5], "--seed", "1", "--from", "2026-11-30T08:00Z", "--hours", "6", "--out", str(file))
    lines = file.read_text().splitlines()
    arms = ("treated", "control")
    fixed = [",".join([*line.split(",")[:3], arms[place % 2], *line.split(",")[4:]]) for place, line in enumerate(lines[1:])]
    file.write_text("\n".join([lines[0], *fixed]))
    assert ran("check", str(file)) == 1
    assert "treated comes first in all 12 pairs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--from", "noon"), "--from 'noon': ISO 8601"),
        (("--hours", "0.2"), "--hours 0.2: that holds no pair of periods of 900 s"),
        (("--period-s", "0"), "period_s 0: a multiple of 300"),
        (("--from", "2026-11-30T08:01Z"), "on a whole 5 minutes"),
        (("--burn-in-s", "800"), "leave no whole block"),
        (("--hours", "nan"), "--hours nan: a number above 0"),
        (("--hours", "inf"), "--hours inf: a number above 0"),
        (("--hours", "1e7"), "up to 2000 is taken"),
        (("--seed", "-1"), "--seed -1: a whole number from 0 on"),
        (("--from", "9999-12-31T23:55"), "a year from 2000 to 2200"),
        (("--hours", "2000", "--period-s", "90000"), "a multiple of 300 up to 86400"),
        (("--replica", " "), "different names that are not empty"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(ScheduleError, match=told):
        ran(*PLAN, *words)
