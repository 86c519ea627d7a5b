"""Which statements only read."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from queries import statements


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to 'a.csv'",
        "with x as (copy (select 1 as a) to 'a.csv') select * from x",
        "with x as (with y as (copy (select 1 as a) to 'a.csv') from y) from x",
        "select 1 union (with x as (copy (select 1 as a) to 'a.csv') select 1)",
        "with x as (insert into t values (1) returning a) from x",
        "with x as (update t set a = 1 returning a) from x",
        "with x as (delete from t returning a) from x",
        "attach 'a.duckdb'",
        "install httpfs",
        "load httpfs",
        "set threads = 8",
        "reset memory_limit",
        "pragma version",
        "call pragma_version()",
        "checkpoint",
        "use memory",
        "begin",
        "create table t (a int)",
        "select 1; select 2",
        "",
        "-- nothing",
        "explain copy (select 1) to 'a.csv'",
        "explain analyze copy (select 1) to 'a.csv'",
        "explain (analyze, format json) copy (select 1) to 'a.csv'",
        "/* a */ explain -- b\n analyze with x as (copy (select 1 as a) to 'a.csv') from x",
        "explain insert into t values (1)",
        "explain (format json) pragma version",
        "prepare q as select 1",
        "execute q",
        "export database 'a'",
        "pivot t on a",
    ],
)
def test_what_may_do_more_than_read_is_refused(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    with pytest.raises(statements.StatementError):
        statements.check(connection, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "select $x",
        "with x as (select 1) from x",
        "from range(3)",
        "values (1), (2)",
        "describe t",
        "summarize t",
        "show tables",
        "(select 1)",
        "unpivot t on a",
        "explain select 1",
        "explain (select 1)",
        "explain (select 1) union select ')'",
        "explain (analyze, format json) select 1",
        "-- why\nexplain /* how */ analyze from range(3)",
        "with recursive r as (select 1 as a union all select a + 1 from r where a < 5) from r;",
        "select 'copy; insert' -- attach",
    ],
)
def test_one_reading_statement_is_taken(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    statements.check(connection, sql)
    assert len(connection.extract_statements(sql)) == 1
