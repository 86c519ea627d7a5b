"""Upkeep of a lake: few files an hour, each row once, nothing lost that readers or writers are at."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from queries import lake_commits, lake_upkeep
from queries.lake import Lake
from queries.lake_tables import columns
from queries.lake_upkeep import Tidied, due, tidy

HOUR = datetime(2026, 3, 1, 10, tzinfo=UTC)
OVER = HOUR + timedelta(hours=1)


def spans(*numbers: int, received_s: int = 0, name: str = "n", start: datetime = HOUR) -> pa.Table:
    """Spans whose numbers make their ids and their starts."""
    shape, received = columns("spans"), HOUR + timedelta(seconds=received_s)
    fixed = {"trace_id": "t", "name": name, "kind": "server", "status": "ok", "sender": "s", "received_at": received, "ended_at": received}
    rows = [{**fixed, "span_id": f"{one}", "started_at": start + timedelta(seconds=one)} for one in numbers]
    return pa.table([pa.array([row.get(one.name) for row in rows], one.type) for one in shape], schema=shape)


def held(lake: Lake) -> list[tuple[str, str]]:
    """Ids and names of all spans."""
    rows = lake.read("spans", ["span_id", "name"]).to_pylist()
    return sorted((row["span_id"], row["name"]) for row in rows)


def test_of_copies_the_one_that_was_received_first_stays_whatever_file_it_lies_in(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("spans", spans(1, 2, received_s=9, name="again"))
    lake.append("spans", spans(2, 3, received_s=1, name="first"))
    lake.append("spans", spans(4, 4, received_s=1, name="first"))
    assert tidy(lake, "spans", HOUR) == Tidied(merged=3, into=1, copies=2)
    assert held(lake) == [("1", "again"), ("2", "first"), ("3", "first"), ("4", "first")]
    assert len(lake.files("spans")) == 1
    assert lake.read("spans", ["started_at"])["started_at"].to_pylist() == [HOUR + timedelta(seconds=one) for one in (1, 2, 3, 4)]


def test_a_copy_that_was_counted_as_stored_counts_as_a_duplicate_once_it_is_gone(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("spans", spans(1, 2))
    lake.append("spans", spans(2, received_s=61))
    tidy(lake, "spans", HOUR)
    (row,) = lake.read("ingest_entries").to_pylist()
    assert (row["sender"], row["signal"], row["minute"]) == ("s", "traces", HOUR + timedelta(minutes=1))
    assert (row["received"], row["stored"], row["duplicate"], row["reasons"]) == (0, -1, 1, [])


def test_what_is_tidy_is_left_alone_until_something_comes(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("spans", spans(1))
    assert due(lake, "spans", HOUR) == []
    assert due(lake, "spans", OVER) == [HOUR]
    tidy(lake, "spans", HOUR)
    version = lake.version("spans")
    assert (due(lake, "spans", OVER), tidy(lake, "spans", HOUR), lake.version("spans")) == ([], Tidied(), version)
    lake.append("spans", spans(1, 2, received_s=60))
    assert due(lake, "spans", OVER) == [HOUR]
    assert tidy(lake, "spans", HOUR) == Tidied(merged=2, into=1, copies=1)


def test_an_hour_that_is_not_over_is_merged_once_it_has_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_upkeep, "MOST_FILES", 4)
    lake = Lake.open(str(tmp_path))
    for number in range(4):
        assert due(lake, "spans", HOUR) == []
        lake.append("spans", spans(number))
    assert due(lake, "spans", HOUR) == [HOUR]
    assert tidy(lake, "spans", HOUR).into == 1


def test_a_table_whose_rows_may_be_equal_keeps_them_all_and_its_lone_file_as_it_is(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    row = {"sender": ["s"], "signal": ["traces"], "minute": pa.array([HOUR], pa.timestamp("us", "UTC")), "received": [1]}
    lake.append("ingest_entries", pa.table(row))
    assert due(lake, "ingest_entries", OVER) == []
    lake.append("ingest_entries", pa.table(row))
    assert due(lake, "ingest_entries", OVER) == [HOUR]
    assert tidy(lake, "ingest_entries", HOUR) == Tidied(merged=2, into=1, copies=0)
    assert lake.read("ingest_entries")["received"].to_pylist() == [1, 1]


def test_what_collectors_write_while_an_hour_is_tidied_stays(tmp_path: Path) -> None:
    lakes = [Lake.open(str(tmp_path)) for _ in range(3)]
    lakes[0].append("spans", spans(0))

    def write(lake: Lake, first: int) -> None:
        for number in range(first, first + 6):
            lake.append("spans", spans(number))

    threads = [threading.Thread(target=write, args=(lake, 100 * number)) for number, lake in enumerate(lakes[1:], 1)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tidy(lakes[0], "spans", HOUR)
    tidy(lakes[0], "spans", HOUR)
    assert held(lakes[0]) == sorted((str(one), "n") for one in (0, *range(100, 106), *range(200, 206)))
    assert len(lakes[0].files("spans")) == 1


def test_vacuum_deletes_what_was_taken_away_long_ago_and_nothing_that_is_on_its_way(tmp_path: Path) -> None:
    lake = Lake.open(str(tmp_path))
    lake.append("spans", spans(1))
    lake.append("spans", spans(2))
    old = [Path(file.uri) for file in lake.files("spans")]
    stray, fresh = old[0].parent / "stray.zstd.parquet", old[0].parent / "fresh.zstd.parquet"
    stray.write_bytes(old[0].read_bytes())
    fresh.write_bytes(old[0].read_bytes())
    long_ago = time.time() - 3 * 3600
    os.utime(stray, (long_ago, long_ago))
    tidy(lake, "spans", HOUR)
    assert lake.vacuum("spans", timedelta(hours=2)) == 1
    assert ([path.exists() for path in old], stray.exists(), fresh.exists()) == ([True, True], False, True)
    with pytest.raises(ValueError, match="an hour at least is taken"):
        lake.vacuum("spans", timedelta(minutes=59))
    assert held(lake) == [("1", "n"), ("2", "n")]
    assert lake.vacuum("samples", timedelta(hours=1)) == 0


def test_a_long_log_is_summed_up_so_that_a_newcomer_reads_little_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_commits, "CHECKPOINT_EVERY", 5)
    lake = Lake.open(str(tmp_path))
    row = pa.table({"replica": ["r"], "lever": ["l"], "setting": ["s"], "since": pa.array([HOUR], pa.timestamp("us", "UTC"))})
    for _ in range(6):
        lake.append("lever_settings", row)
    log = tmp_path / "lever_settings/_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    for number in range(5):
        (log / f"{number:020d}.json").unlink()
    assert Lake.open(str(tmp_path)).read("lever_settings").num_rows == 6
