"""`leverwatch migrate`: what a data folder holds is in a lake, and back in a data folder, as it was; nothing is taken away unseen."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import lake_worlds as worlds
import polars as pl
import pyarrow as pa
import pytest
from lake_worlds import HOUR, MINUTE, NOW
from polars.testing import assert_frame_equal

from leverwatch import work_plan
from leverwatch.cli.main import main
from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from leverwatch.lake_room import LakeRoom
from queries import lake_moving
from queries.lake import Lake
from queries.lake_moving import Contents, MovedError
from queries.lake_tables import columns

METRICS = ("skipped_token_ratio", "draft_acceptance", "net_itl_s", "interconnect_efficiency", "ttft_s", "kv_usage")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with what a small fleet said around an hour's edge, compared as far as it goes."""
    folder = tmp_path_factory.mktemp("moving") / "alone"
    room = EngineRoom(folder, Config(), clock=lambda: NOW)
    worlds.received(room, worlds.fleet(12, 6 * MINUTE))
    worlds.compared(room)
    room.close()
    return folder


@pytest.fixture(scope="module")
def lake(alone: Path) -> Path:
    """The same in a lake."""
    assert main(["migrate", "--from", str(alone), "--to", str(alone.parent / "lake")]) == 0
    return alone.parent / "lake"


@contextmanager
def opened(folder: Path) -> Iterator[EngineRoom]:
    room = EngineRoom(folder, Config(), clock=lambda: NOW)
    try:
        yield room
    finally:
        room.close()


def reported(room: EngineRoom) -> pl.DataFrame:
    """A report, in an order of its own."""
    return worlds.plain(room.report(by=("replica", "lever.speculation"), metrics=METRICS)).sort(pl.all())


def test_every_table_is_in_the_lake_as_it_was(alone: Path, lake: Path) -> None:
    there = Lake.open(str(lake))
    with opened(alone) as room, Contents() as contents:
        for table in lake_moving.TABLES:
            hours = lake_moving.hours_of(room.store, table)
            mine = [contents.of(table, lake_moving.of_hour(room.store, table, hour)) for hour in hours]
            came = contents.of(table, there.read(table))
            assert (sum(one.rows for one in mine), sum(one.whole for one in mine)) == (came.rows, came.whole)
            assert came.digest in (None, sum(one.digest or 0 for one in mine))
        effects = room.store.rows("select count(*) as n from effects")[0]["n"]
    assert there.read("requests").num_rows > 200
    assert there.read("cells").num_rows > 0
    assert there.read("effects").num_rows == effects


def test_moving_again_moves_nothing_twice(alone: Path, lake: Path) -> None:
    before = {table: Lake.open(str(lake)).version(table) for table in lake_moving.TABLES}
    assert main(["migrate", "--from", str(alone), "--to", str(lake)]) == 0
    assert {table: Lake.open(str(lake)).version(table) for table in lake_moving.TABLES} == before


def lake_hours(lake: Lake) -> list[datetime]:
    return sorted({datetime.fromisoformat(f"{file.hour}:00+00:00") for file in lake.files("spans")})


def test_a_worker_makes_no_hour_anew_that_was_finished(lake: Path) -> None:
    there = Lake.open(str(lake))
    before = work_plan.last(there)
    assert before.versions == {table: there.version(table) for table in work_plan.RAW}
    assert before.mark is not None
    later = NOW + timedelta(days=1)  # nothing came: what is open is made once more, what was finished by the watermark is not
    hours = work_plan.plan(there, before, later).hours
    assert hours == tuple(hour for hour in lake_hours(there) if hour + timedelta(hours=1, minutes=15) > before.mark)


def test_a_lake_in_a_new_data_folder_reports_what_the_first_reported(alone: Path, lake: Path, tmp_path: Path) -> None:
    assert main(["migrate", "--from", str(lake), "--to", str(tmp_path / "back")]) == 0
    with opened(alone) as first, opened(tmp_path / "back") as back:
        assert_frame_equal(reported(first), reported(back), rel_tol=1e-12, abs_tol=0.0)
        for relation in ("requests", "stored_spans", "samples", "effects", "detector_state", "closed_blocks"):
            asked = f"select count(*) as n from {relation}"
            assert back.store.rows(asked) == first.store.rows(asked)


def test_a_folder_that_is_switched_serves_the_lake_and_can_be_moved_back(alone: Path, tmp_path: Path) -> None:
    folder, lake = tmp_path / "data", tmp_path / "lake"
    shutil.copytree(alone, folder)
    with opened(folder) as room:
        expected = reported(room)
    assert main(["migrate", "--from", str(folder), "--to", str(lake), "--switch"]) == 0
    serving = LakeRoom(folder, worlds.config_of(lake), clock=lambda: NOW)
    serving.reading.take(NOW)
    found = reported(serving)
    serving.close()
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=0.0)
    assert main(["migrate", "--from", str(lake), "--to", str(folder)]) == 0
    with opened(folder) as room:
        assert_frame_equal(reported(room), expected, rel_tol=1e-12, abs_tol=0.0)


def test_a_lake_with_other_rows_of_the_same_hours_is_left_alone(alone: Path, tmp_path: Path) -> None:
    other = Lake.open(str(tmp_path / "other"))
    with opened(alone) as room, Contents() as contents:
        hour = lake_moving.hours_of(room.store, "spans")[0]
        other.append("spans", lake_moving.of_hour(room.store, "spans", hour).slice(0, 1))
        with pytest.raises(MovedError, match=r"has rows of .* that came otherwise"):
            lake_moving.to_lake(room.store, other, "spans", contents)


def test_a_folder_with_rows_of_its_own_is_not_served_from_a_lake(alone: Path, tmp_path: Path) -> None:
    with pytest.raises(MovedError, match=r"has spans and requests of its own; `leverwatch migrate --from .* --switch`"):
        LakeRoom(alone, worlds.config_of(tmp_path / "lake"), clock=lambda: NOW)
    with opened(alone) as room:
        assert room.store.rows("select count(*) as n from requests")[0]["n"]


def test_what_came_changed_is_told_by_counts_and_sums() -> None:
    shape = columns("requests")
    row = {"request_id": "a", "trace_id": "t", "started_at": HOUR, "ended_at": HOUR, "outcome": "ok", "output_tokens": 7}
    rows = [{**row, "output_tokens": tokens} for tokens in (7, 8)]
    other = [rows[0], {**rows[1], "request_id": "b"}]
    with Contents() as contents:
        sent, turned, fewer, changed = (
            contents.of("requests", pa.Table.from_pylist(some, shape)) for some in (rows, rows[::-1], rows[:1], other)
        )
    assert sent == turned
    assert (fewer.rows, fewer.whole) == (1, 7)
    assert (changed.whole, changed.digest == sent.digest) == (15, False)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "{nothing}", "--to", "{other}"], "a data folder and a lake are taken, in either order"),
        (["--from", "{lake}", "--to", "{lake}"], "a data folder and a lake are taken, in either order"),
        (["--from", "{lake}", "--to", "{other}", "--switch"], "--switch is of a move into a lake"),
        (["--from", "{lake}", "--to", "{alone}"], "has spans and requests of its own"),
    ],
)
def test_a_move_that_cannot_be_is_refused(
    alone: Path, lake: Path, tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"nothing": tmp_path / "nothing", "other": tmp_path / "other", "lake": lake, "alone": alone}
    assert main(["migrate", *(word.format(**places) for word in words)]) == 2
    assert told in capsys.readouterr().err
