"""A stranger's SQL against a real store, in real child processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from queries.hot_copies import HotCopies
from queries.results import SqlResult
from queries.sandbox import Sandbox, SqlError, SqlLimits
from queries.store import Store

Make = Callable[[SqlLimits], Sandbox]
QUARTER_HOUR = datetime(2026, 3, 1, 12, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = Store(tmp_path_factory.mktemp("data"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def sandbox(store: Store) -> Iterator[Sandbox]:
    opened = Sandbox(store, SqlLimits(wall_s=8.0))
    yield opened
    opened.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[SqlLimits], Sandbox]]:
    """Sandboxes with limits of their own, each over a store of its own."""
    stores: list[Store] = []

    def new(limits: SqlLimits) -> Sandbox:
        stores.append(Store(tmp_path / str(len(stores))))
        return Sandbox(stores[-1], limits)

    yield new
    for opened in stores:
        opened.close()


def _watermark(store: Store, sender: str) -> None:
    with store.write() as transaction:
        transaction.insert("watermarks", pl.DataFrame({"sender": [sender], "ended_at": [QUARTER_HOUR], "seen_at": [QUARTER_HOUR]}))


def _children() -> set[int]:
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def _error(sandbox: Sandbox, sql: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        sandbox.run(sql)
    return caught.value


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/proc/self/environ')",
        "select * from '/etc/fstab.csv'",
        "select * from glob('/*')",
        "copy (select 1) to '{parts}/a.csv'",
        "with x as (copy (select 1 as a) to '{parts}/a.csv') select * from x",
        "explain analyze copy (select 1) to '{parts}/a.csv'",
        "attach '{parts}/a.duckdb'",
        "set threads = 8",
        "pragma version",
        "select 1; select 2",
    ],
)
def test_what_does_more_than_read_is_refused_and_writes_nothing(store: Store, sandbox: Sandbox, sql: str) -> None:
    error = _error(sandbox, sql.format(parts=store.parts))
    assert error.code == "refused", error.message
    assert not list(store.parts.glob("a.*"))


def test_the_environment_is_out_of_reach(sandbox: Sandbox) -> None:
    assert "getenv does not exist" in _error(sandbox, "select getenv('PATH')").message


def test_the_paths_that_introspection_tells_open_nothing_but_what_was_named(store: Store, sandbox: Sandbox) -> None:
    [told] = sandbox.run("select value from duckdb_settings() where name = 'allowed_paths' -- of requests").rows()[0]
    assert str(store.parts) in told, "DuckDB resolves the paths that it allows, and tells them"
    assert sandbox.run(f"select count(*) from read_parquet('{told.strip('[]')}')").rows() == [[0]]
    for path in (store.folder / "live.duckdb", f"{store.parts}/hot/*"):
        assert _error(sandbox, f"from read_blob('{path}') -- of requests").code == "refused"


def test_internal_tables_are_hidden_and_the_others_shown(sandbox: Sandbox) -> None:
    names = {row[0] for row in sandbox.run("show tables").rows()}
    assert {"requests", "spans", "effects", "flips"} <= names
    assert not {"requests_hot", "spool_position", "dirty_blocks", "schema_version"} & names
    assert _error(sandbox, "from spool_position").code == "invalid"


def test_a_table_read_without_its_name_in_the_text_is_an_error_never_an_empty_answer(sandbox: Sandbox) -> None:
    assert "flips is not loaded" in _error(sandbox, "from query_table('fl' || 'ips')").message


def test_a_scalar_that_takes_more_than_the_memory_limit_is_an_error_at_once(store: Store, sandbox: Sandbox) -> None:
    started_s = time.monotonic()
    error = _error(sandbox, "select length(repeat('x', 4000000000))")
    assert error.code == "memory_limit"
    assert time.monotonic() - started_s < 5
    assert store.rows("select 1 as alive") == [{"alive": 1}]


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c",
        "with recursive r as (select 1 as a union all select a + 1 from r) select max(a) from r",
    ],
)
def test_what_never_ends_is_stopped_at_the_time_limit_and_the_child_is_gone(make: Make, sql: str) -> None:
    before = _children()
    started_s = time.monotonic()
    error = _error(make(SqlLimits(wall_s=1.0)), sql)
    assert error.code == "time_limit"
    assert time.monotonic() - started_s < 4
    assert _children() == before


def test_an_answer_that_is_too_wide_is_an_error(make: Make) -> None:
    narrow = make(SqlLimits(output_bytes=1_000_000))
    assert _error(narrow, "select repeat('x', 1000000) from range(10)").code == "too_large"


@pytest.mark.parametrize(
    "sql",
    [
        "select " + ", ".join(["range % 2 = 0"] * 150) + " from range(1000000)",
        "select " + ", ".join(["null"] * 150) + " from range(1000000)",
        "select [null for x in range(1000)] from range(1000000)",
        "select repeat(chr(1), 100000) from range(1000)",
        f"select 'a'::enum('a', '{'b' * 50000}'), (case when range > 0 then '{'b' * 20000}' end)::enum('{'b' * 20000}') from range(20000)",
        f"select {{'{'k' * 50000}': range}} from range(10000)",
    ],
    ids=["booleans", "nulls", "nested nulls", "escapes", "enum", "field names"],
)
def test_what_is_small_in_arrow_and_large_in_json_is_too_large_before_it_reaches_the_owner(make: Make, sql: str) -> None:
    patient = make(SqlLimits(wall_s=60.0))  # the size is what ends it, also where other work takes the cores
    with pytest.raises(SqlError) as caught:
        patient.run(sql, limit_rows=1_000_000)
    assert caught.value.code == "too_large", caught.value.message
    assert caught.value.hint


def test_a_million_rows_of_two_columns_are_an_answer(sandbox: Sandbox) -> None:
    assert sandbox.run("select range, null from range(999999)", limit_rows=1_000_000).row_count == 999_999


@pytest.mark.parametrize("depth", [900, 3_000, 100_000])
def test_a_parameter_that_is_nested_deeply_is_invalid_or_a_value(sandbox: Sandbox, depth: int) -> None:
    nested: list[object] = []
    for _ in range(depth):
        nested = [nested]
    with pytest.raises(SqlError) as caught:
        sandbox.run("select $a::varchar", {"a": nested})
    assert caught.value.code == "invalid", caught.value.message


def test_rows_over_the_limit_are_cut_and_said(sandbox: Sandbox) -> None:
    cut, whole = sandbox.run("from range(100)", limit_rows=10), sandbox.run("from range(10)", limit_rows=10)
    assert (cut.row_count, cut.truncated) == (10, True)
    assert (whole.row_count, whole.truncated) == (10, False)


def test_a_limit_out_of_bounds_is_invalid(sandbox: Sandbox) -> None:
    with pytest.raises(SqlError, match="limit 0: 1 to 1,000,000 rows are taken"):
        sandbox.run("select 1", limit_rows=0)


def test_named_parameters_are_values(sandbox: Sandbox) -> None:
    answer = sandbox.run(
        "select $n + 1 as n, $text as text, $at::timestamptz as at_time", {"n": 2**62, "text": "'; drop", "at": QUARTER_HOUR}
    )
    assert answer.rows() == [[2**62 + 1, "'; drop", "2026-03-01T12:15:00Z"]]


def test_a_surplus_parameter_is_said(sandbox: Sandbox) -> None:
    with pytest.raises(SqlError, match="excess parameters: b"):
        sandbox.run("select $a", {"a": 1, "b": 2})


def test_rows_just_written_are_seen_and_unchanged_ones_are_not_copied_again(store: Store, sandbox: Sandbox) -> None:
    question = "select count(*) from watermarks where sender = 'just-now'"
    assert sandbox.run(question).rows() == [[0]]
    _watermark(store, "just-now")
    assert sandbox.run(question).rows() == [[1]]
    files = sorted((store.parts / "hot").glob("watermarks-*"))
    assert sandbox.run(question).rows() == [[1]]
    assert sorted((store.parts / "hot").glob("watermarks-*")) == files
    assert len(files) == 1


def test_the_ledger_is_a_view_and_still_never_stale(store: Store, sandbox: Sandbox) -> None:
    added = "insert into ingest_entries values ('s', 'traces', now(), 1, 1, 0, 0, 0, 0, 0, map {})"
    for expected in (1, 2):
        with store.write() as transaction:
            transaction.execute(added)
        assert sandbox.run("select sum(stored)::int from ingest_ledger").rows() == [[expected]]


def test_the_owner_writes_while_a_stranger_reads(store: Store, sandbox: Sandbox) -> None:
    def read() -> None:
        answers.append(sandbox.run("select count(*) from watermarks, range(1000000000)"))

    answers: list[SqlResult] = []
    slow = threading.Thread(target=read)
    slow.start()
    for number in range(20):
        _watermark(store, f"meanwhile-{number}")
    assert slow.is_alive()
    slow.join()
    assert answers
    assert sandbox.run("select count(*) from watermarks where sender like 'meanwhile-%'").rows() == [[20]]


def test_a_file_in_use_outlives_the_rows_it_was_made_of(tmp_path: Path) -> None:
    store = Store(tmp_path)
    copies = HotCopies(store)
    with copies.lease(["watermarks"]) as first:
        _watermark(store, "newer")
        with copies.lease(["watermarks"]) as second:
            assert first["watermarks"] != second["watermarks"]
            assert first["watermarks"][0].exists()
    assert not first["watermarks"][0].exists()
    assert second["watermarks"][0].exists()
    copies.close()
    store.close()
    assert not second["watermarks"][0].exists()


class _Gate:
    """Holds back the copy of one relation until it is opened."""

    def __init__(self, copies: HotCopies, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self.opened, self.made = threading.Event(), threading.Event(), 0
        make = copies._made

        def made(name: str) -> object:
            if name == relation:
                self.made += 1
                self.entered.set()
                assert self.opened.wait(20)
            return make(name)

        monkeypatch.setattr(copies, "_made", made)


def test_a_relation_is_answered_while_another_is_copied(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = make(SqlLimits(at_once=1, wait_s=0.05))
    gate = _Gate(sandbox._copies, "spans", monkeypatch)
    slow = threading.Thread(target=lambda: sandbox.run("select count(*) from spans"))
    slow.start()
    assert gate.entered.wait(10)
    assert sandbox.run("select count(*) from policies").row_count == 1
    gate.opened.set()
    slow.join()


def test_a_copy_begun_after_a_reader_asked_serves_it_though_rows_arrived_since(tmp_path: Path) -> None:
    store = Store(tmp_path)
    copies = HotCopies(store)
    asked_s = time.monotonic()
    with copies.lease(["watermarks"]) as first:
        _watermark(store, "after the copy began")
        waited = copies._take("watermarks", asked_s)
        assert [waited.path] == first["watermarks"]
        assert copies._take("watermarks", time.monotonic()).path != waited.path
    assert waited.path.exists()
    copies.close()
    store.close()


def test_a_costly_copy_is_given_again_while_young_and_a_cheap_one_is_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    copies = HotCopies(store, behind_s=60.0)
    for took_s, same in ((0.0, False), (100.0, True)):
        with copies.lease(["watermarks"]) as first:
            copies._copies["watermarks"].took_s = took_s
        _watermark(store, f"newer than a copy of {took_s} s")
        with copies.lease(["watermarks"]) as second:
            assert (first == second) is same
    copies.close()
    store.close()


def test_rows_that_cannot_be_copied_are_said_and_leave_no_file(make: Make) -> None:
    sandbox = make(SqlLimits())
    sandbox._copies._sources["flips"] = "nowhere"
    sandbox._copies._store._changed["nowhere"] = 1
    assert "flips cannot be copied" in _error(sandbox, "from flips").message
    assert not list(sandbox._copies._folder.iterdir())


def test_a_child_that_dies_gives_a_clear_error(make: Make) -> None:
    before = _children()

    def kill() -> None:
        deadline_s = time.monotonic() + 5
        while not (started := _children() - before) and time.monotonic() < deadline_s:
            time.sleep(0.01)
        for pid in started:
            os.kill(pid, signal.SIGSEGV)

    killer = threading.Thread(target=kill)
    killer.start()
    error = _error(make(SqlLimits()), "select count(*) from range(1000000) a, range(1000000) b")
    killer.join()
    assert error.code == "crashed"
    assert "SIGSEGV" in error.message


def test_more_statements_than_places_are_told_to_wait(make: Make) -> None:
    full = make(SqlLimits(at_once=1, wait_s=0.05, wall_s=1.5))
    first = threading.Thread(target=lambda: _error(full, "select count(*) from range(1000000) a, range(1000000) b"))
    first.start()
    while full._places._value:
        time.sleep(0.01)
    assert _error(full, "select 1").code == "busy"
    first.join()
