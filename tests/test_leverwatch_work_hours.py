"""An hour made in parts: the same rows as by one task, whatever its traces, and nothing of it where one part fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import lake_worlds as worlds
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lake_worlds import HOUR, NOW
from polars.testing import assert_frame_equal

from leverwatch import work_hours, work_tasks
from leverwatch.work_hours import Hours
from leverwatch.work_pool import Here, Outcome
from leverwatch.work_tasks import Work
from leverwatch.working import Working
from pipeline import lake_cells, settle
from pipeline.hour_job import MADE, Told
from queries.lake import Lake

ONE_HOUR = timedelta(hours=1)
BOTH = (HOUR - ONE_HOUR, HOUR)
CELL = [*lake_cells.SERIES, "metric"]
KEYS = {
    "requests": ["started_at", "request_id"],
    "quarantine": ["request_id", "trace_id", "started_at", "column", "reason"],
    "suspicions": ["replica", "trap", "column", "suspected_at"],
    "sampling": ["replica", "window_started_at"],
    "cells": CELL,
    "cell_histograms": CELL,
}


@dataclass(frozen=True, slots=True)
class Made:
    """A lake, and its tables as tasks of an hour each made them."""

    lake: Lake
    folder: Path
    work: Work
    whole: dict[str, pl.DataFrame]


def tables(lake: Lake) -> dict[str, pl.DataFrame]:
    return {table: pl.DataFrame(lake.read(table)) for table in MADE}


def made_of(folder: Path, said: Sequence[worlds.Said]) -> Made:
    lake, work = worlds.collected(folder / "lake", said), worlds.work(folder / "lake", folder / "kept")
    Working(work, Here(), lambda: NOW).once(is_last=True)
    return Made(lake, folder, work, tables(lake))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A fleet around an hour's edge, with copies of bodies."""
    said = worlds.fleet(12)
    return made_of(tmp_path_factory.mktemp("made"), [*said, *(worlds.Said(one.signal, one.content, NOW) for one in said[::5])])


def in_parts(one: Made, spans: int, hours: Sequence[datetime], pool: Here | None = None) -> tuple[list[Told], dict[str, str]]:
    failed: dict[str, str] = {}
    work = dataclasses.replace(one.work, part_spans=spans)
    hours_ = Hours(work, pool or Here(), settle.NEVER, failed.__setitem__, lambda _: None)
    return [*hours_.made(hours)], failed


def same(one: pl.DataFrame, other: pl.DataFrame, keys: list[str]) -> None:
    """Asserts that both hold the same rows: integers equal, reals to 1e-12 of their value."""
    one, other = (worlds.plain(some.select(one.columns)).sort(keys, nulls_last=True) for some in (one, other))
    assert_frame_equal(one, other, rel_tol=1e-12, abs_tol=0.0)


def staged(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in (folder / "lake" / "requests").glob("hour=*/*")}


@pytest.mark.parametrize("spans", [400, 120], ids=["few parts", "many parts"])
def test_an_hour_made_in_parts_is_the_hour_made_by_one_task(made: Made, spans: int) -> None:
    assert work_hours.parts_of(made.lake, [HOUR], spans)[HOUR] > 2
    told, failed = in_parts(made, spans, BOTH)
    assert failed == {}
    assert sum(one.requests for one in told) == len(made.whole["requests"]) > 400
    assert len(made.whole["cells"]) > 100
    for table, rows in tables(made.lake).items():
        same(made.whole[table], rows, KEYS[table])


def test_what_parts_left_for_each_other_is_gone_afterwards(made: Made) -> None:
    in_parts(made, 600, BOTH)
    before = staged(made.folder)
    in_parts(made, 600, [HOUR])
    new = staged(made.folder) - before
    assert {f"lake/requests/{file.path}" for file in made.lake.files("requests", HOUR, HOUR + ONE_HOUR)} == new


class Broken(Here):
    """A pool in which the second of some tasks fails."""

    def __init__(self, function: object) -> None:
        self._function = function

    def run(self, function: object, tasks: Sequence[tuple[object, ...]]) -> Iterator[Outcome]:
        for number, outcome in enumerate(super().run(function, tasks)):
            yield Outcome(outcome.task, error="it cannot be") if function is self._function and number == 1 else outcome


@pytest.mark.parametrize("step", [work_tasks.link, work_tasks.sort, work_tasks.read, work_tasks.settle, work_tasks.add])
def test_an_hour_of_which_a_part_fails_is_left_as_it_was_and_the_others_are_made(made: Made, step: object) -> None:
    hours = (
        [HOUR] if step in (work_tasks.sort, work_tasks.read, work_tasks.settle) else [*BOTH]
    )  # each has several of these tasks, and one of the others
    versions = {table: made.lake.version(table) for table in MADE}
    told, failed = in_parts(made, 600, hours, Broken(step))
    assert failed == {HOUR.isoformat(): "it cannot be"}
    assert [one.hour for one in told] == hours[:-1]
    if hours == [HOUR]:
        assert versions == {table: made.lake.version(table) for table in MADE}


def aged(path: Path) -> None:
    """Leaves a file of spans as a version wrote it that did not know some of their columns."""
    rows = pq.read_table(path, partitioning=None).drop_columns(["joins_by_request_id"])
    signals = rows["signals"].combine_chunks()
    fields = [field for field in signals.type if field.name not in {"samples_n", "pool", "phase"}]
    older = pa.StructArray.from_arrays([signals.field(field.name) for field in fields], fields=fields)
    pq.write_table(rows.set_column(rows.schema.get_field_index("signals"), "signals", older), path)


def test_files_of_an_older_version_that_lack_a_column_are_made_in_parts_as_well(tmp_path: Path) -> None:
    lake = worlds.collected(tmp_path / "lake", worlds.fleet(4, 2 * worlds.MINUTE))
    for path in (tmp_path / "lake" / "spans").glob("hour=*/*.parquet"):
        aged(path)
    one = Made(lake, tmp_path, worlds.work(tmp_path / "lake", tmp_path / "kept"), {})
    assert in_parts(one, 1_000_000, [HOUR])[1] == {}
    whole = tables(lake)
    assert in_parts(one, 150, [HOUR])[1] == {}
    for table, rows in tables(lake).items():
        same(whole[table], rows, KEYS[table])


def test_recordings_of_real_engines_become_the_same_requests_in_parts(recordings: Path, tmp_path: Path) -> None:
    paths = [path for path in sorted(recordings.glob("*/*/*.pb")) if path.parent.name in {"traces", "metrics", "logs"}]
    one = made_of(tmp_path, [worlds.Said(path.parent.name, path.read_bytes(), NOW) for path in paths])
    assert len(one.whole["requests"]) > 50
    hours = sorted({file.hour for file in one.lake.files("spans")})
    told, failed = in_parts(one, 150, [datetime.fromisoformat(f"{hour}:00:00+00:00") for hour in hours])
    assert failed == {}
    assert sum(each.requests for each in told) == len(one.whole["requests"])
    for table, rows in tables(one.lake).items():
        same(one.whole[table], rows, KEYS[table])
