"""A switchback schedule of the configuration: beside its file, read again when it changes; a broken one keeps the old in force."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leverwatch.config import read
from leverwatch.switchback_settings import ScheduleFile
from pipeline import schedule, schedule_file
from pipeline.schedule import Plan
from pipeline.schedule_rows import ScheduleError

SINCE = datetime(2026, 11, 30, 8, tzinfo=UTC)


def write(path: Path, pairs: int) -> None:
    periods = schedule.planned("speculation", ("r0",), SINCE, pairs, Plan(), seed=1)
    path.write_text(schedule_file.text(periods), encoding="utf-8")


def test_the_file_lies_beside_the_configuration_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "leverwatch.toml").write_text('[switchback]\nfile = "switchback.csv"\n', encoding="utf-8")
    assert read(None, tmp_path, {}).switchback.file == str(tmp_path / "switchback.csv")
    assert ScheduleFile(None).current() == ()


def test_a_changed_schedule_is_read_again_and_a_broken_one_is_said_and_leaves_the_old_in_force(tmp_path: Path) -> None:
    path = tmp_path / "switchback.csv"
    write(path, 2)
    held = ScheduleFile(path)
    assert len(held.current()) == 4
    write(path, 3)
    assert len(held.current()) == 6
    path.write_text("lever\n", encoding="utf-8")
    assert len(held.current()) == 6
    assert held.problem.startswith(f"{path}: line 1: 'lever'")
    assert held.problem.endswith("the version before stays in force")
    write(path, 4)
    os.utime(path, (1, 1))
    assert (len(held.current()), held.problem) == (8, "")


def test_a_schedule_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"nothing\.csv: No such file"):
        ScheduleFile(tmp_path / "nothing.csv")
