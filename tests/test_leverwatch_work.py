"""`leverwatch work`: what it makes of a lake is what one process makes of the same bodies, whoever does it, and however often."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import lake_worlds as worlds
import polars as pl
import pytest
from lake_worlds import HOUR, MINUTE, NOW
from polars.testing import assert_frame_equal

from leverwatch import work_plan, work_tasks
from leverwatch.cli import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.lake_reading import LakeReading
from leverwatch.lake_room import LakeRoom
from leverwatch.observe.store_numbers import lake_families
from leverwatch.work_plan import Last
from leverwatch.work_pool import Cluster, Here, Outcome
from leverwatch.working import Working
from pipeline import lake_cells, lake_compare, settle
from pipeline.hour_spans import AROUND
from queries.lake import Lake
from queries.store import Store

CELL = [*lake_cells.SERIES, "metric"]
ONE_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Both:
    """The same bodies in a data folder of one process, and in a lake that was worked on; `rounds` is what that said."""

    alone: EngineRoom
    lake: Lake
    folder: Path
    rounds: list[str]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A fleet around an hour's edge: every fifth body is sent twice, and one body of spans comes last of all."""
    folder = tmp_path_factory.mktemp("both")
    said = worlds.fleet(14)
    late = next(place for place, one in enumerate(said) if one.signal == "traces" and one.received_at > HOUR)
    said = [*said[:late], *said[late + 1 :], *(worlds.Said(one.signal, one.content, NOW) for one in said[::5]), said[late]]
    alone = EngineRoom(folder / "alone", Config(), clock=lambda: NOW)
    worlds.received(alone, said)
    worlds.compared(alone)
    lake = worlds.collected(folder / "lake", said)
    rounds: list[str] = []
    Working(worlds.work(folder / "lake", folder / "kept"), Here(), lambda: NOW, rounds.append).once(is_last=True)
    yield Both(alone, lake, folder, rounds)
    alone.close()


def same(one: pl.DataFrame, other: pl.DataFrame, keys: list[str]) -> None:
    """Asserts that both hold the same rows: integers equal, reals to 1e-12 of their value."""
    one, other = (worlds.plain(some.select(one.columns)).sort(keys, nulls_last=True) for some in (one, other))
    assert_frame_equal(one, other, rel_tol=1e-12, abs_tol=0.0)


def test_requests_of_a_lake_are_those_of_one_process(both: Both) -> None:
    mine = both.alone.store.frame("select * from requests")
    assert len(mine.filter(pl.col("started_at") < HOUR)) > 200
    assert len(mine.filter(pl.col("started_at") >= HOUR)) > 200
    same(mine, pl.DataFrame(both.lake.read("requests")), ["started_at", "request_id"])


def test_a_request_that_crosses_an_hours_edge_is_whole_and_stands_in_the_hour_that_it_began_in(both: Both) -> None:
    asked = "select request_id from requests where started_at < $edge and ended_at > $edge and prefill_replica is not null"
    crossing = both.alone.store.frame(asked, {"edge": HOUR})["request_id"]
    assert len(crossing)
    found = pl.DataFrame(both.lake.read("requests", None, HOUR - ONE_HOUR, HOUR)).filter(pl.col("request_id").is_in(crossing.implode()))
    assert len(found) == len(crossing)
    assert found["decode_replica"].null_count() == 0


def test_cells_of_a_lake_are_those_of_one_process(both: Both) -> None:
    same(both.alone.store.frame("select * from lake_cells"), pl.DataFrame(both.lake.read("cells")), CELL)
    same(both.alone.store.frame("select * from lake_histograms"), pl.DataFrame(both.lake.read("cell_histograms")), CELL)


def test_effects_of_a_lake_are_those_of_one_process(both: Both) -> None:
    mine = both.alone.store.frame("select * from effects")
    assert len(mine) > 100
    same(mine, pl.DataFrame(both.lake.read("effects")), ["until", "lever", "segment", "metric"])


def test_what_comparing_keeps_is_the_same(both: Both) -> None:
    kept = lake_compare.states(both.lake, "speculation")
    for relation in lake_compare.STATES:
        mine = both.alone.store.frame(f"select * from {relation}")
        assert len(mine) == kept[relation].num_rows, relation
    numbers = [pl.DataFrame(rows).sort("segment", "family")["numbers"].to_list() for rows in (kept["detector_state"],)]
    assert numbers == [both.alone.store.frame("select * from detector_state order by segment, family")["numbers"].to_list()]


def test_a_round_says_what_it_did_and_the_next_has_nothing_to_do(both: Both) -> None:
    assert any(said.startswith("hour 2026-03-02T07: ") for said in both.rounds)
    assert "copies of rows gone" in both.rounds[-2]
    round_ = Working(worlds.work(both.folder / "lake", both.folder / "kept"), Here(), lambda: NOW).once(is_last=True)
    assert round_.is_nothing()
    assert work_plan.last(both.lake).mark is not None


def test_a_server_on_the_lake_reports_what_one_process_reports(both: Both) -> None:
    with_lake = LakeRoom(both.folder / "served", worlds.config_of(both.folder / "lake"), clock=lambda: NOW)
    try:
        while with_lake.reading.take(NOW):
            with_lake.reading.hurry()
        for asked in (
            {"by": ("model", "replica", "arm.speculation")},
            {"by": ("hour", "lever.speculation"), "metrics": ("all",), "source": "requests"},
            {"by": ("input_bucket",), "metrics": ("all",), "source": "cells"},
        ):
            assert_frame_equal(with_lake.report(**asked), both.alone.report(**asked), rel_tol=1e-12, abs_tol=0.0)
        same(both.alone.effects("speculation"), with_lake.effects("speculation"), ["segment", "metric"])
        counted = "select (select count(*) from spans) + (select count(*) from samples) as spans_and_samples"
        assert with_lake.sandbox.run(counted).rows() == both.alone.sandbox.run(counted).rows()
        assert with_lake.reading.problem == ""
        judged = "select policy, segment, verdict, reason from current_verdicts order by all"
        both.alone.drain()
        with_lake.work_once()
        assert with_lake.store.rows(judged) == both.alone.store.rows(judged)
    finally:
        with_lake.close()


def test_an_hour_that_is_made_again_is_the_same(both: Both) -> None:
    before = {table: pl.DataFrame(both.lake.read(table)) for table in ("requests", "cells", "cell_histograms")}
    work_tasks.hour(worlds.work(both.folder / "lake", both.folder / "kept"), HOUR, settle.NEVER)
    for table, rows in before.items():
        same(rows, pl.DataFrame(both.lake.read(table)), ["started_at", "request_id"] if table == "requests" else CELL)


def test_a_lever_that_was_compared_elsewhere_goes_on_from_what_the_lake_keeps(both: Both) -> None:
    effects, mark = both.lake.version("effects"), work_plan.last(both.lake).mark
    assert mark is not None
    done = work_tasks.lever(worlds.work(both.folder / "lake", both.folder / "elsewhere"), "speculation", mark)
    assert (done.effects, both.lake.version("effects")) == (0, effects)


def test_recordings_of_real_engines_become_the_same_requests(recordings: Path, tmp_path: Path) -> None:
    paths = sorted(recordings.glob("*/*/*.pb"))
    signals = {"traces", "metrics", "logs"}
    said = [worlds.Said(path.parent.name, path.read_bytes(), NOW) for path in paths if path.parent.name in signals]
    alone = EngineRoom(tmp_path / "alone", Config(), clock=lambda: NOW)
    try:
        worlds.received(alone, said)
        lake = worlds.collected(tmp_path / "lake", said)
        Working(worlds.work(tmp_path / "lake", tmp_path / "kept"), Here(), lambda: NOW).once(is_last=True)
        mine = alone.store.frame("select * from requests")
        assert len(mine) > 50
        same(mine, pl.DataFrame(lake.read("requests")), ["started_at", "request_id"])
        told = ["request_id", "trace_id", "started_at", "column", "reason"]
        same(alone.store.frame("select * from quarantine"), pl.DataFrame(lake.read("quarantine")), told)
    finally:
        alone.close()


@pytest.fixture(scope="module")
def ray() -> Iterator[Cluster]:
    """A Ray of two workers."""
    cluster = Cluster(None, 2)
    yield cluster
    cluster.close()


def test_a_worker_that_is_killed_half_way_changes_nothing_in_the_result(ray: Cluster, tmp_path: Path) -> None:
    lake = worlds.collected(tmp_path / "lake", worlds.fleet(4, 2 * MINUTE))
    there, mark = worlds.work(tmp_path / "lake", tmp_path / "kept"), tmp_path / "was-killed"

    def killed_once(work: work_tasks.Work, hour: datetime, cutoff: datetime) -> object:
        replace = Lake.replace

        def dying(lake: Lake, table: str, *rest: object, **more: object) -> int:
            version = replace(lake, table, *rest, **more)
            if hour == HOUR and table == "requests" and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return version

        Lake.replace = dying
        try:
            return work_tasks.hour(work, hour, cutoff)
        finally:
            Lake.replace = replace

    hours = [HOUR - ONE_HOUR, HOUR]
    outcomes = list(ray.run(killed_once, [(there, hour, settle.NEVER) for hour in hours]))
    assert mark.exists()
    assert [one.error for one in outcomes] == ["", ""]
    tables = {"requests": ["started_at", "request_id"], "cells": CELL, "cell_histograms": CELL}
    made = {table: pl.DataFrame(lake.read(table)) for table in tables}
    assert len(made["requests"].filter(pl.col("started_at") >= HOUR)) > 50
    for hour in hours:
        work_tasks.hour(there, hour, settle.NEVER)
    for table, keys in tables.items():
        same(pl.DataFrame(lake.read(table)), made[table], keys)


def test_a_task_that_fails_is_told_and_holds_up_no_other(ray: Cluster) -> None:
    def odd(number: int) -> int:
        if number == 1:
            msg = "one is odd"
            raise ValueError(msg)
        return number

    for pool in (ray, Here()):
        found = {one.task[0]: one for one in pool.run(odd, [(0,), (1,), (2,)])}
        assert {number: one.answer for number, one in found.items()} == {0: 0, 1: None, 2: 2}
        assert found[1].error == "ValueError: one is odd"


def test_a_running_worker_ends_when_it_is_told_to(tmp_path: Path) -> None:
    said: list[str] = []
    stop = threading.Event()
    working = Working(worlds.work(tmp_path / "lake", tmp_path), Here(), lambda: NOW, said.append)
    stop.set()
    working.forever(stop, 60.0)
    assert said == []


EARLY, LATE = HOUR - 3 * ONE_HOUR, HOUR


@pytest.mark.parametrize(
    ("changed", "before", "expected"),
    [
        (set(), Last(), {EARLY, HOUR - ONE_HOUR, HOUR}),
        ({HOUR}, Last(HOUR + 5 * MINUTE, HOUR + 3 * MINUTE), {HOUR - ONE_HOUR, HOUR}),
        ({HOUR}, Last(HOUR + AROUND, HOUR + AROUND - 2 * MINUTE), {HOUR}),
        ({HOUR - ONE_HOUR}, Last(HOUR + 20 * MINUTE, HOUR + 18 * MINUTE), {HOUR - ONE_HOUR, HOUR}),
        ({EARLY}, Last(HOUR + 20 * MINUTE, HOUR + 18 * MINUTE), {EARLY, HOUR}),
        (set(), Last(HOUR + 20 * MINUTE, HOUR + 18 * MINUTE, failed=frozenset({EARLY})), {EARLY, HOUR}),
    ],
    ids=[
        "the first round",
        "the last hour goes on",
        "the hour before is finished",
        "late to a neighbor",
        "late long after",
        "failed before",
    ],
)
def test_hours_are_made_anew_that_changed_or_were_not_finished(changed: set[datetime], before: Last, expected: set[datetime]) -> None:
    there = {EARLY, HOUR - ONE_HOUR, HOUR}
    assert work_plan.due(there, changed, before, HOUR + 19 * MINUTE) == expected


def test_nothing_is_due_where_nothing_came_and_no_time_passed() -> None:
    assert work_plan.due({HOUR}, set(), Last(HOUR + 5 * MINUTE, HOUR + 3 * MINUTE), HOUR + 3 * MINUTE) == set()


def test_the_watermark_is_that_of_the_senders_that_still_speak(tmp_path: Path) -> None:
    said = [one for one in worlds.fleet(4, 3 * MINUTE) if one.signal == "traces"]
    lake = worlds.collected(tmp_path / "lake", said)
    plan = work_plan.plan(lake, Last(), said[-1].received_at)
    ended = pl.DataFrame(lake.read("spans", ["ended_at"]))["ended_at"].max()
    assert plan.mark == ended
    assert plan.cutoff == ended - timedelta(seconds=120)
    assert work_plan.plan(lake, Last(), said[-1].received_at + timedelta(minutes=4)).cutoff == settle.NEVER


def test_a_server_says_where_nobody_works_on_its_lake_and_which_task_failed(tmp_path: Path) -> None:
    lake = worlds.collected(tmp_path / "lake", [one for one in worlds.fleet(1) if one.signal == "traces"])
    store = Store(tmp_path / "store")
    try:
        reading = LakeReading(store, worlds.config_of(tmp_path / "lake").store)
        reading.take(NOW)
        assert "no round of `leverwatch work`" in reading.problem
        failing = Working(worlds.work(tmp_path / "lake", tmp_path / "kept"), Failing(), lambda: NOW)
        assert failing.once(is_last=True).failed == {(HOUR - ONE_HOUR).isoformat(): "it cannot be"}
        told = failing.observer.work
        assert (told.failing.of(), told.tasks.of("hour", "failed"), told.rounds.of("incomplete"), told.succeeded.of()) == (1, 1, 1, None)
        reading.hurry()
        reading.take(NOW)
        assert "it cannot be" in reading.problem
        values = {family.name: [sample.value for sample in family.samples] for family in lake_families(store, NOW + ONE_HOUR)}
        assert values == {"leverwatch_lake_round_age_seconds": [3600.0], "leverwatch_lake_round_failed_tasks": [1.0]}
        assert work_plan.plan(lake, work_plan.last(lake), NOW).hours == (HOUR - ONE_HOUR,)
    finally:
        store.close()


class Failing(Here):
    """A pool in which every hour fails."""

    def run(self, function: object, tasks: Sequence[tuple[object, ...]]) -> Iterator[Outcome]:
        if function is work_tasks.hour:
            yield from (Outcome(task, error="it cannot be") for task in tasks)


def test_nothing_is_loaded_into_a_folder_that_follows_a_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "leverwatch.toml").write_text(f'[store]\nkind = "delta"\nuri = "{tmp_path / "lake"}"\n')
    body = tmp_path / "one.pb"
    body.write_bytes(next(one.content for one in worlds.fleet(2) if one.signal == "traces"))
    assert main.main(["load", "--data", str(tmp_path), str(body)]) == 2
    assert "follows the lake" in capsys.readouterr().err


def test_work_without_a_lake_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["work", "--data", str(tmp_path), "--once", "--workers", "0"]) == 2
    assert "kind = 'delta'" in capsys.readouterr().err
