"""The store: transactions, the lockdown, the schema, and every question bound against it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest

from queries import files
from queries.migrating import SchemaError
from queries.store import Store, StoreError

pytestmark = pytest.mark.usefixtures("_whole_schema")


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store that nothing is written to: what a question is bound to is rolled back, and to make one a question takes half a minute."""
    opened = Store(tmp_path_factory.mktemp("schema"))
    yield opened
    opened.close()


def test_a_transaction_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as transaction:
        transaction.execute("insert into dirty_blocks values (now())")
        raise ZeroDivisionError
    assert store.rows("select count(*) as n from dirty_blocks") == [{"n": 0}]


def test_times_come_back_in_the_zone_utc(store: Store) -> None:
    frame = store.frame("select timestamptz '2026-11-29 12:00:00+02' as t")
    assert frame.schema["t"] == pl.Datetime("us", "UTC")
    assert frame["t"].dt.hour().item() == 10


@pytest.mark.parametrize(
    "sql", ["select * from read_csv('/etc/passwd')", "copy (select 1) to '/tmp/x.parquet'", "attach '/tmp/y.duckdb'", "set threads = 1"]
)
def test_even_our_own_statements_reach_nothing_outside_parts(store: Store, sql: str) -> None:
    with pytest.raises(duckdb.Error):
        store.frame(sql)


@pytest.mark.usefixtures("store")
def test_a_folder_is_held_by_one_process_and_the_error_names_it(tmp_path: Path) -> None:
    code = f"from pathlib import Path; from queries.store import Store; Store(Path({str(tmp_path)!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert other.returncode == 1
    assert "StoreError" in other.stderr
    assert str(tmp_path) in other.stderr


def test_the_first_error_of_a_statement_that_reads_a_frame_is_the_one_shown(store: Store) -> None:
    with pytest.raises(duckdb.ConversionException, match="not-a-time"), store.write() as transaction:
        transaction.using(pl.DataFrame({"moment": ["not-a-time"]}), "insert into dirty_blocks select moment::timestamptz from incoming")
    with store.write() as transaction:
        assert (
            transaction.using(pl.DataFrame({"moment": ["2026-01-01"]}), "insert into dirty_blocks select moment::timestamptz from incoming")
            == 1
        )


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('Cannot open file "live.duckdb": Permission denied', "this user may not write there"),
        ('Cannot open file "live.duckdb": Read-only file system', "this user may not write there"),
        ('Could not set lock on file "live.duckdb": Conflicting lock is held in python (PID 7)', "another process holds it"),
    ],
)
def test_what_keeps_a_folder_from_opening_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str) -> None:
    def refuse(*_: object) -> None:
        raise duckdb.IOException(said)

    monkeypatch.setattr(duckdb, "connect", refuse)
    with pytest.raises(StoreError, match=told):
        Store(tmp_path)


CRASH = """
import os, sys, duckdb
found = duckdb.connect(sys.argv[1])
found.execute("create table more as select range as n from range(100000)")
found.execute("insert into more values (1)")
os._exit(0)
"""


def test_a_damaged_database_or_log_is_one_sentence_with_what_to_do(tmp_path: Path) -> None:
    Store(tmp_path).close()
    file, log = tmp_path / "live.duckdb", tmp_path / "live.duckdb.wal"
    subprocess.run([sys.executable, "-c", CRASH, str(file)], check=True, timeout=60)
    logged, whole = log.read_bytes(), file.read_bytes()
    log.write_bytes(logged[:2000] + bytes(200) + logged[2200:])
    with pytest.raises(StoreError, match=r"live.duckdb: cannot be opened; its log is damaged: .* move .*live.duckdb.wal away"):
        Store(tmp_path)
    log.unlink()
    for damaged in (whole[:4096] + bytes(8192) + whole[12288:], whole[: len(whole) // 4], b"x" * len(whole), b""):
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"live.duckdb: cannot be opened; it is damaged: put it back from a snapshot"):
            Store(tmp_path)
    file.write_bytes(whole)
    Store(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="Not a directory"):
        Store(tmp_path / "file" / "data")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    first = Store(tmp_path)
    with first.write() as transaction:
        transaction.execute("insert into schema_version values (999)")
    first.close()
    with pytest.raises(SchemaError, match="schema 999 is newer"):
        Store(tmp_path)


def test_snapshots_see_one_moment(store: Store) -> None:
    with store.snapshot() as seen:
        before = seen.frame("select count(*) as n from dirty_blocks").item()
        with store.write() as transaction:
            transaction.execute("insert into dirty_blocks values (now())")
        assert seen.frame("select count(*) as n from dirty_blocks").item() == before == 0


STAGES = {
    "load_kinds": "staged", "load_spans": "staged", "load_staged_dirty": "staged", "load_stage": "incoming", "load_dirty": "incoming",
    "load_watermarks": "incoming", "load_lever_settings": "incoming", "assemble_take_fresh": "touched",
    "assemble_requests": "incoming", "assemble_spans": "working_traces",
    "assemble_set_aside": "working_traces",
    "assemble_forget": "working_traces", "assemble_forget_quarantine": "working_traces",
    "compare_reopen": "working_blocks", "compare_ends": "working_blocks", "compare_insert": "incoming",
    "settle_correct": "blocks",
    "load_samples_stage": "incoming_samples", "load_samples_kinds": "staged_samples", "load_samples": "staged_samples",
    "load_evaluations_stage": "incoming_evaluations", "load_evaluations_kinds": "staged_evaluations",
    "load_evaluations": "staged_evaluations",
    "load_imported_stage": "incoming_imported", "load_imported_kinds": "staged_imported", "load_imported": "staged_imported",
    "import_requests": "incoming_pairs",
    "guard_prolong": "suspicions", "guard_record": "suspicions", "guard_remember": "replica_sums",
    "assemble_partners": "keys", "assemble_awaited": "keys", "sampling_spans": "sampling_windows",
    "cell_admit": "working_cells", "cell_admit_other": "working_cells", "cell_place": "working_cells",
    "cell_series": "placed_cells", "cell_numbers": "placed_cells", "cell_metrics": "named_metrics",
    "natural_off_steps": "marked", "natural_cold_workers": "marked", "natural_rollouts": "marked", "natural_spill": "marked",
    "natural_before_after": "marked",
    "natural_sums": "sided", "break_even_contexts": "marked", "break_even_outdate": "bands", "debt_cells": "stands",
}  # fmt: skip
SHAPES = {
    "working_cells": "create temp table working_cells as select 0::uinteger as cell, g.* exclude (segment_id), s.* exclude "
    "(series_id, segment_id), now() as block_started_at from cell_segments g, cell_series s",
    "placed_cells": "create temp table placed_cells as select 0::uinteger as cell, * exclude (series_id) from cell_series",
    "named_metrics": "create temp table incoming as select 0 as place, '' as metric",
    "staged": "create temp table staged as select *, 0::bigint as arrival, true as is_new, false as differs from spans_hot",
    "incoming": "create temp table incoming as select *, 0::bigint as arrival from {}",
    "incoming_samples": "create temp table incoming as select *, 0::bigint as arrival from samples_hot",
    "staged_samples": "create temp table staged_samples as select *, 0::bigint as arrival, true as is_new from samples_hot",
    "incoming_evaluations": "create temp table incoming as select *, 0::bigint as arrival from evaluations",
    "incoming_imported": "create temp table incoming as select * exclude (is_taken), 0::bigint as arrival from imported_requests",
    "staged_imported": "create temp table staged_imported as "
    "select * exclude (is_taken), 0::bigint as arrival, true as is_new from imported_requests",
    "incoming_pairs": "create temp table incoming as "
    "select * exclude (provenance, is_settled), [{{'key': '', 'value': ''}}] as provenance from requests_hot",
    "working_imports": "create temp table working_imports as select * from imported_requests",
    "staged_evaluations": "create temp table staged_evaluations as select *, 0::bigint as arrival, true as is_new from evaluations",
    "touched": "create temp table incoming as select '' as trace_id, now() as since, now() as until",
    "keys": "create temp table incoming as select '' as join_key, '' as trace_id, now() as since, now() as until, true as seeks, "
    "now() as near_since, now() as near_until",
    "sampling_windows": "create temp table sampling_windows as select '' as replica, now() as window_started_at, now() as since, "
    "now() as until, 1 as counted",
    "working_traces": "create temp table working_traces as select '' as trace_id, now() as since, now() as until, "
    "now() as replaced_since, now() as replaced_until",
    "blocks": "create temp table incoming as select now() as block_started_at, now() as corrected_at, 1 as added, 0 as removed",
    "suspicions": "create temp table incoming as select * exclude (suspected_at) from suspicions",
    "replica_sums": "create temp table incoming as select * exclude (noted_at) from replica_sums",
    "working_blocks": "create temp table working_blocks as select now() as block_started_at",
    "marked": "create temp table marked as select *, '' as arm, '' as setting from requests",
    "bands": "create temp table incoming as select * from break_even",
    "stands": "create temp table incoming_stands as select 0 as place, '' as lever, '' as segment, now() as since, now() as until",
    "sided": "create temp table sided as select *, '' as arm, '' as side, '' as experiment from requests",
}


@pytest.mark.parametrize("name", files.question_names())
def test_every_question_binds_against_the_schema(schema: Store, name: str) -> None:
    text = files.question(name)
    assert text.startswith("-- ")
    stage = STAGES.get(name)
    with schema.snapshot() as transaction:
        transaction.execute("create temp view near_spans as select * from spans")
        if name in ("assemble_requests", "assemble_partners"):
            transaction.execute(SHAPES["working_traces"])
        if name == "compare_insert":
            transaction.execute("create temp table incoming as select * from effects")
        elif stage:
            source = (
                "(select * exclude (provenance, is_settled), [{'key': '', 'value': ''}] as provenance from requests_hot)"
                if name == "assemble_requests"
                else "spans_hot"
            )
            shape = SHAPES[stage].format(source)
            transaction.execute(shape if name != "assemble_requests" else shape.replace(", 0::bigint as arrival", ""))
        statement = re.sub(r"^create or replace temp table \w+ as", "", re.sub(r"^--.*$", "", text, flags=re.M).strip())
        transaction.execute(f"prepare bound as {statement}")


def test_an_unknown_question_is_refused_with_the_known_ones() -> None:
    with pytest.raises(files.UnknownQuestionError, match=r"question 'nope' is unknown; known: .*watermark"):
        files.question("nope")


def test_rows_that_are_asked_often_are_read_again_once_their_relation_changed(store: Store) -> None:
    asked = ("dirty_blocks", "select count(*) as n from dirty_blocks", {})
    assert store.unchanged_rows(*asked) == [{"n": 0}]
    assert store.unchanged_rows(*asked) is store.unchanged_rows(*asked)
    with store.write() as transaction:
        transaction.execute("insert into dirty_blocks values (now())")
    assert store.unchanged_rows(*asked) == [{"n": 1}]
