"""A data folder of an older schema opens under this one with every row it had; what fails leaves the rows, and a copy lies beside."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from queries import files, migrating, sealing
from queries.migrating import SchemaError
from queries.store import Store

pytestmark = pytest.mark.usefixtures("_whole_schema")

STEPS = files.schema()
NEWEST = STEPS[-1][0]
HOUR = datetime(2026, 11, 29, 10, tzinfo=UTC)
VALUES = {
    "VARCHAR": "'x'",
    "BIGINT": "7",
    "INTEGER": "7",
    "SMALLINT": "7",
    "UBIGINT": "7",
    "DOUBLE": "0.5",
    "BLOB": "'x'::blob",
    "BOOLEAN": "true",
    "TIMESTAMP WITH TIME ZONE": "timestamptz '2026-11-29 10:30:00+00'",
    "MAP(VARCHAR, VARCHAR)": "map {'k': 'v'}",
    "MAP(VARCHAR, BIGINT)": "map {'k': 7}",
}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the steps that the program knows."""

    def known(*steps: tuple[int, str]) -> None:
        monkeypatch.setattr(files, "schema", lambda: list(steps))

    return known


def fill(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Puts a row into every table that is kept over a start, and gives the rows of each."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in tables(store):
        columns = store.rows(f"select column_name, data_type from duckdb_columns() where table_name = '{name}' order by column_index")
        values = ", ".join(f"{VALUES.get(c['data_type'], '[]' if c['data_type'].endswith('[]') else 'null')}" for c in columns)
        with store.write() as transaction:
            transaction.execute(f'insert into "{name}" values ({values})')
        rows[name] = store.rows(f'select * from "{name}"')
    return rows


def tables(store: Store) -> list[str]:
    left_out = "('schema_version', 'parts', 'replaced_parts', 'dirty_blocks')"
    found = store.rows(f"select table_name from duckdb_tables() where table_name not in {left_out} order by all")
    return [str(row["table_name"]) for row in found]


def kept_copies(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.schema-*"))


@pytest.mark.parametrize("number", [number for number, _ in STEPS[:-1]])
def test_a_folder_of_an_older_schema_keeps_every_row_of_every_table(tmp_path: Path, at: Any, number: int) -> None:
    at(*[step for step in STEPS if step[0] <= number])
    old = Store(tmp_path)
    rows = fill(old)
    old.close()
    at(*STEPS)
    store = Store(tmp_path)
    sealing.restore(store)
    for name, before in rows.items():
        after = store.rows(f'select * from "{name}"')
        assert len(after) == len(before)
        assert before[0].items() <= after[0].items()
    for view in store.rows("select view_name from duckdb_views() where not internal"):
        store.rows(f'select * from "{view["view_name"]}"')
    assert store.rows("select max(number) as number from schema_version") == [{"number": NEWEST}]
    assert kept_copies(tmp_path) == [f"live.schema-{number}.duckdb"]
    store.close()


def test_sealed_parts_of_an_older_schema_are_read_with_the_new_columns_null(tmp_path: Path, at: Any) -> None:
    old = Store(tmp_path)
    sealing.restore(old)
    with old.write() as transaction:
        transaction.execute(
            "insert into requests_hot (request_id, trace_id, started_at, ended_at, outcome) values ('a', 'a', $t, $t, 'ok')", {"t": HOUR}
        )
    assert sealing.seal_next(old, HOUR.replace(hour=15)) == 1
    old.close()
    at(*STEPS, (NEWEST + 1, "alter table requests_hot add column extra bigint;\ncreate view extras as select extra from requests;"))
    store = Store(tmp_path)
    sealing.restore(store)
    assert store.rows("select trace_id, extra from requests") == [{"trace_id": "a", "extra": None}]
    assert store.rows("select extra from extras") == [{"extra": None}]
    store.close()


def test_the_views_of_a_moved_folder_do_not_stop_a_migration(tmp_path: Path, at: Any) -> None:
    old = Store(tmp_path / "here")
    sealing.restore(old)
    with old.write() as transaction:
        transaction.execute(
            "insert into requests_hot (request_id, trace_id, started_at, ended_at, outcome) values ('a', 'a', $t, $t, 'ok')", {"t": HOUR}
        )
    sealing.seal_next(old, HOUR.replace(hour=15))
    old.close()
    (tmp_path / "here").rename(tmp_path / "there")
    at(*STEPS, (NEWEST + 1, "create view firsts as select min(started_at) as first from requests;"))
    store = Store(tmp_path / "there")
    sealing.restore(store)
    assert store.rows("select first from firsts") == [{"first": HOUR}]
    store.close()


def test_a_step_that_fails_says_which_and_leaves_the_rows_and_a_copy(tmp_path: Path, at: Any) -> None:
    old = Store(tmp_path)
    rows = fill(old)
    old.close()
    at(*STEPS, (NEWEST + 1, "alter table effects add column extra bigint;\nalter table nowhere add column extra bigint;"))
    with pytest.raises(SchemaError, match=rf"live.duckdb: step {NEWEST + 1} of the schema fails.*nowhere.*live.schema-{NEWEST}.duckdb"):
        Store(tmp_path)
    at(*STEPS)
    again = Store(tmp_path)
    assert {name: again.rows(f'select * from "{name}"') for name in rows} == rows
    again.close()
    with duckdb.connect(str(tmp_path / f"live.schema-{NEWEST}.duckdb")) as copy:
        assert copy.execute("select count(*) from effects").fetchone() == (1,)


def test_one_copy_is_kept_and_a_folder_of_this_schema_gets_none(tmp_path: Path, at: Any) -> None:
    Store(tmp_path).close()
    Store(tmp_path).close()
    assert kept_copies(tmp_path) == []
    for number in (NEWEST + 1, NEWEST + 2):
        at(*STEPS, *((later, f"create table t{later} (a bigint)") for later in range(NEWEST + 1, number + 1)))
        Store(tmp_path).close()
    assert kept_copies(tmp_path) == [f"live.schema-{NEWEST + 1}.duckdb"]


def test_without_a_copy_nothing_is_migrated(tmp_path: Path, at: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Store(tmp_path).close()
    at(*STEPS, (NEWEST + 1, "drop table effects"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(migrating.shutil, "copyfile", full)
    with pytest.raises(SchemaError, match=f"schema {NEWEST} is not migrated.*No space left on device"):
        Store(tmp_path)
    at(*STEPS)
    store = Store(tmp_path)
    assert store.rows("select count(*) as n from effects") == [{"n": 0}]
    store.close()


def put_span(store: Store, trace: str, prompt_tokens: int, hours: int) -> None:
    """One span that says how many tokens its prompt had, sealed."""
    kind = store.rows("select data_type from duckdb_columns() where table_name = 'spans_hot' and column_name = 'signals'")[0]["data_type"]
    signals = f"cast({{'prompt_tokens': {prompt_tokens}}} as {kind})"
    nothing = "map {}, map {}, [], []"
    columns = "trace_id, span_id, name, kind, started_at, ended_at, start_unix_nano, duration_s, status, sender, received_at, signals"
    with store.write() as transaction:
        transaction.execute(
            f"insert into spans_hot ({columns}, resource, attributes, events, links) "
            f"values ('{trace}', 's', 'n', 'server', $t, $t, 1, 0.1, 'ok', 'x', $t, {signals}, {nothing})",
            {"t": HOUR.replace(hour=hours)},
        )
    assert sealing.seal_next(store, HOUR.replace(hour=hours + 5)) == 1


def test_signals_that_older_parts_lack_are_null_beside_parts_that_have_them(tmp_path: Path, at: Any) -> None:
    at(*(step for step in STEPS if step[0] not in (8,)))  # before spans could state the time in the model
    old = Store(tmp_path)
    sealing.restore(old)
    put_span(old, "old", 5, hours=1)
    old.close()
    at(*STEPS, (NEWEST + 1, dict(STEPS)[8].split("create table open_keys")[0]))
    store = Store(tmp_path)
    sealing.restore(store)
    put_span(store, "new", 7, hours=2)
    rows = store.rows("select trace_id, signals.prompt_tokens as tokens, signals.inference_s as inference_s from spans order by tokens")
    assert rows == [{"trace_id": "old", "tokens": 5, "inference_s": None}, {"trace_id": "new", "tokens": 7, "inference_s": None}]
    store.close()
