"""A lake in a local folder: what is appended, replaced, rewritten and removed, by one process and by several at once."""

from __future__ import annotations

import errno
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from queries.lake import Lake, LakeError, StaleMarkError
from queries.lake_commits import AddedFile, Change, LakeLog
from queries.lake_errors import said
from queries.lake_files import table_place
from queries.lake_tables import TABLES, UnknownLakeTableError, columns

HOUR = datetime(2026, 3, 1, 10, tzinfo=UTC)


def minutes(count: int) -> timedelta:
    return timedelta(minutes=count)


def settings(*since: datetime) -> pa.Table:
    """Rows of a small table: settings of a lever, each since a moment."""
    count = len(since)
    return pa.table(
        {
            "replica": pa.array(["r0"] * count),
            "lever": pa.array(["speculation"] * count),
            "setting": pa.array([str(number) for number in range(count)]),
            "since": pa.array(since, pa.timestamp("us", "UTC")),
        }
    )


def read(lake: Lake, since: datetime | None = None, until: datetime | None = None) -> list[datetime]:
    return sorted(lake.read("lever_settings", ["since"], since, until)["since"].to_pylist())


def test_an_opened_lake_makes_nothing(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    assert (lake.version("spans"), lake.files("spans"), lake.read("spans").num_rows) == (-1, [], 0)
    assert lake.changed("spans", -1) == set()
    assert lake.mark("spans", "kafka") is None
    assert list(tmp_path.iterdir()) == []


def test_appended_rows_come_back_by_their_time_from_the_hours_they_lie_in(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR, HOUR + minutes(59), HOUR + minutes(61)))
    assert read(lake) == [HOUR, HOUR + minutes(59), HOUR + minutes(61)]
    assert read(lake, HOUR + minutes(1), HOUR + minutes(61)) == [HOUR + minutes(59)]
    assert [(file.hour, file.rows) for file in lake.files("lever_settings")] == [("2026-03-01T10", 2), ("2026-03-01T11", 1)]
    assert [file.hour for file in lake.files("lever_settings", HOUR, HOUR + minutes(60))] == ["2026-03-01T10"]
    assert lake.files("lever_settings", HOUR + minutes(59) + timedelta(seconds=1), HOUR + minutes(60)) == []
    assert all(Path(file.uri).stat().st_size == file.bytes for file in lake.files("lever_settings"))


def test_a_table_has_the_columns_of_the_embedded_one_and_what_rows_lack_is_null(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))
    rows = lake.read("lever_settings")
    assert rows.schema == columns("lever_settings")
    assert rows["arm"].to_pylist() == [None]


def test_nested_columns_and_slices_of_them_come_back_as_they_were(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), ["a", "b"])
    labels = pa.MapArray.from_arrays(pa.array([0, 1, 1, 3], pa.int32()), keys, pa.array(["x", None, "z"]))
    rows = pa.table(
        {
            "observed_at": pa.array([HOUR, HOUR, HOUR + minutes(90)], pa.timestamp("us", "UTC")),
            "replica": ["r", "r", "r"], "name": ["n", "m", "o"], "labels": labels, "kind": ["gauge"] * 3, "sender": ["s"] * 3,
            "bounds": pa.array([[1.5], None, []], pa.list_(pa.float64())),
            "received_at": pa.array([HOUR] * 3, pa.timestamp("us", "UTC")),
        }
    )  # fmt: skip
    lake.append("samples", rows.slice(1))
    found = lake.read("samples").sort_by("name")
    assert found["labels"].to_pylist() == [[], [("b", None), ("a", "z")]]
    assert found["bounds"].to_pylist() == [None, []]


def test_columns_of_structs_are_matched_by_name_also_where_a_row_has_fewer(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    shape = columns("spans")
    row = {
        "trace_id": "t",
        "span_id": "s",
        "name": "n",
        "kind": "server",
        "started_at": HOUR,
        "ended_at": HOUR,
        "status": "ok",
        "sender": "x",
    }
    plain = pa.table([pa.array([row.get(one.name)], one.type) for one in shape], schema=shape)
    said = pa.array([{"output_tokens": 7, "model": "m"}], pa.struct([("output_tokens", pa.int32()), ("model", pa.string())]))
    lake.append("spans", plain.set_column(shape.get_field_index("signals"), "signals", said))
    signals = lake.read("spans", ["signals"])["signals"].to_pylist()[0]
    assert {name: value for name, value in signals.items() if value is not None} == {"output_tokens": 7, "model": "m"}


def test_a_replaced_hour_holds_the_new_rows_alone_and_other_hours_stay(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR, HOUR + minutes(1), HOUR + minutes(70)))
    lake.append("lever_settings", settings(HOUR + minutes(2)))
    lake.replace("lever_settings", settings(HOUR + minutes(5)), [HOUR])
    assert read(lake) == [HOUR + minutes(5), HOUR + minutes(70)]
    lake.replace("lever_settings", settings(), [HOUR])
    assert read(lake) == [HOUR + minutes(70)]


def test_a_row_outside_the_hours_that_are_replaced_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))
    with pytest.raises(ValueError, match="rows of 2026-03-01T11 came to replace 2026-03-01T10"):
        lake.replace("lever_settings", settings(HOUR + minutes(60)), [HOUR])
    assert read(lake) == [HOUR]


def test_a_table_without_a_time_is_replaced_by_the_partition_that_the_caller_names(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    rows = pa.table({"segment": ["{}"], "lever": ["a"], "layout": pa.array([1], pa.int32())})
    lake.replace("detector_state", rows, ["a"])
    lake.replace("detector_state", rows.set_column(1, "lever", pa.array(["b"])), ["b"])
    lake.replace("detector_state", rows, ["a"])
    assert sorted(lake.read("detector_state", ["lever"])["lever"].to_pylist()) == ["a", "b"]


def test_changed_hours_are_those_of_later_commits_but_for_rewriting_and_retention(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    first = lake.append("lever_settings", settings(HOUR))
    second = lake.append("lever_settings", settings(HOUR + minutes(60), HOUR + minutes(130)))
    assert lake.changed("lever_settings", first) == {HOUR + minutes(60), HOUR + minutes(120)}
    lake.rewrite("lever_settings", lake.files("lever_settings", HOUR, HOUR + minutes(1)), [("2026-03-01T10", settings(HOUR))])
    assert lake.remove("lever_settings", HOUR + minutes(120)) == 2
    assert lake.changed("lever_settings", second) == set()
    assert read(lake) == [HOUR + minutes(130)]
    lake.replace("lever_settings", settings(), [HOUR + minutes(120)])
    assert lake.changed("lever_settings", second) == {HOUR + minutes(120)}


def test_where_the_log_does_not_reach_back_every_hour_counts_as_changed(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))
    lake.append("lever_settings", settings(HOUR + minutes(60)))
    (tmp_path / "lever_settings/_delta_log" / f"{1:020d}.json").unlink()
    assert lake.changed("lever_settings", 0) == {HOUR, HOUR + minutes(60)}
    assert lake.changed("lever_settings", 1) == {HOUR + minutes(60)}


def test_a_mark_moves_in_the_commit_of_its_rows_and_never_twice_to_the_same_place(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR), {"kafka traces 0": 41, "kafka traces 1": 7})
    lake.append("lever_settings", settings(), {"kafka traces 1": 8})
    assert (lake.mark("lever_settings", "kafka traces 0"), Lake.open(str(tmp_path)).mark("lever_settings", "kafka traces 1")) == (41, 8)
    with pytest.raises(StaleMarkError, match="mark 'kafka traces 0' stands at 41, what came is of 41"):
        lake.append("lever_settings", settings(HOUR), {"kafka traces 0": 41})
    assert read(lake) == [HOUR]


def test_of_many_writers_at_once_each_row_is_stored_once_also_where_each_would_make_the_table(tmp_path: Path) -> None:
    lakes = [Lake.open(str(tmp_path)) for _ in range(4)]
    versions: list[int] = []
    start = threading.Barrier(4)

    def write(lake: Lake, number: int) -> None:
        start.wait()
        versions.extend(lake.append("lever_settings", settings(HOUR + minutes(10 * number + step))) for step in range(5))

    threads = [threading.Thread(target=write, args=(lake, number)) for number, lake in enumerate(lakes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(versions)) == 20
    assert len(set(read(lakes[0]))) == len(read(lakes[0])) == 20


def test_of_two_that_replace_an_empty_hour_at_once_one_stands(tmp_path: Path) -> None:
    lakes = [Lake.open(str(tmp_path)) for _ in range(4)]
    start = threading.Barrier(4)

    def replace(lake: Lake, number: int) -> None:
        start.wait()
        lake.replace("lever_settings", settings(HOUR + minutes(number)), [HOUR])

    lakes[0].append("lever_settings", settings(HOUR + minutes(90)))
    threads = [threading.Thread(target=replace, args=(lake, number)) for number, lake in enumerate(lakes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read(lakes[0])) == 2


def test_rows_that_come_while_an_hour_is_rewritten_are_kept(tmp_path: Path) -> None:
    lake, other = Lake.open(str(tmp_path)), Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))
    files = lake.files("lever_settings")
    other.append("lever_settings", settings(HOUR + minutes(1)))
    lake.rewrite("lever_settings", files, [("2026-03-01T10", settings(HOUR))])
    assert read(lake) == [HOUR, HOUR + minutes(1)]
    with pytest.raises(LakeError, match="files that were to be rewritten were replaced meanwhile"):
        other.rewrite("lever_settings", files, [("2026-03-01T10", settings(HOUR))])
    assert read(other) == [HOUR, HOUR + minutes(1)]


def test_a_file_is_synced_before_a_commit_names_it_and_the_commit_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, synced, sync = Lake.open(str(tmp_path)), [], os.fsync

    def watched(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    lake.append("lever_settings", settings(HOUR))
    (file,) = lake.files("lever_settings")
    table, data = tmp_path / "lever_settings", Path(file.uri)
    log = table / "_delta_log"
    assert synced[:3] == [data, data.parent, table]
    assert {log, log / f"{0:020d}.json", log / f"{1:020d}.json"} <= set(synced[3:])


def test_a_commit_that_stood_although_its_answer_was_lost_may_be_made_again(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))
    (file,) = lake.files("lever_settings")
    change = Change([AddedFile(file.path, file.hour, file.bytes, "{}")])
    LakeLog(table_place(str(tmp_path), {}, "lever_settings"), "lever_settings").commit(lambda _: change)
    assert read(lake) == [HOUR]


def test_an_unknown_table_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownLakeTableError, match="lake table 'span' is unknown; known: cell_histograms, cells"):
        Lake.open(str(tmp_path)).version("span")


def test_a_lake_that_cannot_be_written_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="file/lever_settings: "):
        Lake.open(str(tmp_path / "file")).append("lever_settings", settings(HOUR))


def test_what_a_library_says_is_told_in_one_plain_line_with_what_helps() -> None:
    nested = OSError("Generic S3 error\n\x1b[31m\u21b3\x1b[0m 404\n\x1b[31m\u21b3\x1b[0m <Code>NoSuchBucket</Code>")
    helps = "make the bucket first, or name another in [store] uri"
    assert said("s3://b/spans", nested) == f"s3://b/spans: Generic S3 error: 404: <Code>NoSuchBucket</Code>; {helps}"
    framed = OSError("Json error: Truncated record\n   0: <unknown>\n   1: start_thread\n at ./nptl/pthread_create.c")
    assert said("lake", framed).startswith("lake: Json error: Truncated record; an entry of its _delta_log is cut off")


def test_a_file_that_the_disk_has_no_room_for_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("lever_settings", settings(HOUR))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = set(tmp_path.rglob("*.parquet"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LakeError, match="No space left on device"):
        lake.append("lever_settings", settings(HOUR))
    assert set(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_has_its_time_and_its_key_among_its_columns(name: str) -> None:
    table = TABLES[name]
    assert {*table.key, *filter(None, [table.time])} <= set(columns(name).names)
