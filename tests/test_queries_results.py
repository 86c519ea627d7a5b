"""What DuckDB's types become in JSON, CSV, Parquet, Arrow and text."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leverwatch import mcp_answers
from queries.results import SqlResult
from queries.sandbox import Sandbox
from queries.store import Store

VALUES = {
    "9223372036854775807::bigint": 9223372036854775807,
    "18446744073709551615::ubigint": 18446744073709551615,
    "sum(9223372036854775806::bigint)": 9223372036854775806,
    "170141183460469231731687303715884105727::hugeint": "170141183460469231731687303715884105727",
    "1.25::decimal(18, 2)": 1.25,
    "0.12345678901234567891::decimal(38, 20)": "0.12345678901234567891",
    "'nan'::double": "NaN",
    "'-inf'::double": "-Infinity",
    "1.5::float": 1.5,
    "true": True,
    "null": None,
    "timestamptz '2026-01-02 03:04:05.5+02'": "2026-01-02T01:04:05.500000Z",
    "timestamp '2026-01-02 03:04:05'": "2026-01-02T03:04:05",
    "timestamp_ns '2026-01-02 03:04:05.123456789'": "2026-01-02T03:04:05.123456789",
    "'infinity'::timestamptz": "infinity",
    "'0044-03-15 (BC)'::timestamp": "-0043-03-15T00:00:00.000000",
    "date '2026-01-02'": "2026-01-02",
    "time '03:04:05'": "03:04:05",
    "time '24:00:00'": "24:00:00",
    "time '03:04:05.000006'": "03:04:05.000006",
    "'340282366920938463463374607431768211455'::uhugeint": "340282366920938463463374607431768211455",
    "interval 3 day": "3 days",
    "'0101'::bit": "0101",
    "'\\xAA'::blob": "qg==",
    "'a'::enum('a', 'b')": "a",
    "'{\"a\": 1}'::json": '{"a": 1}',
    "map {'speculation': 'on'}": {"speculation": "on"},
    "map {1: map {'a': 2.5}}": {"1": {"a": 2.5}},
    "{'a': [1, null], 'b': timestamptz '2026-01-02'}": {"a": [1, None], "b": "2026-01-02T00:00:00Z"},
    "[{'a': 1}, null]": [{"a": 1}, None],
    "[1, 2]::int[2]": [1, 2],
    "null::int[]": None,
    "union_value(a := 1)": "1",
}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    store = Store(tmp_path_factory.mktemp("data"))
    opened = Sandbox(store)
    yield opened
    opened.close()
    store.close()


@pytest.fixture(scope="module")
def everything(sandbox: Sandbox) -> SqlResult:
    listed = ", ".join(f"{text} as c{n}" for n, text in enumerate(VALUES))
    return sandbox.run(f"select {listed}")


def test_every_type_becomes_what_json_can_hold(everything: SqlResult) -> None:
    assert dict(zip(VALUES, everything.rows()[0], strict=True)) == VALUES


def test_one_value_of_every_type_of_duckdb_leaves_in_every_format(sandbox: Sandbox) -> None:
    answer = sandbox.run("from test_all_types()")
    assert answer.row_count == len(answer.rows()) == 3
    assert json.loads(json.dumps(answer.json_able(), allow_nan=False))["row_count"] == 3
    assert answer.csv().count("\n") >= 4
    assert "(3 rows)" in answer.text()
    assert pq.read_table(io.BytesIO(answer.parquet())).num_rows == 3
    assert SqlResult.from_arrow(answer.arrow()).rows() == answer.rows()
    assert answer.frame().height == 3


def test_a_frame_never_makes_24_o_clock_a_null(sandbox: Sandbox) -> None:
    assert sandbox.run("from (values (time '24:00:00'), (null)) as t(time_of_day)").frame()["time_of_day"].to_list() == ["24:00:00", None]


def test_the_json_text_is_strict_and_names_duckdb_types(everything: SqlResult) -> None:
    text = json.dumps(everything.json_able(), allow_nan=False)
    kinds = [column["type"] for column in json.loads(text)["columns"]]
    assert kinds[:5] == ["BIGINT", "UBIGINT", "HUGEINT", "HUGEINT", "DECIMAL(18,2)"]


def test_json_and_csv_keep_every_digit_of_whole_numbers_and_decimals(sandbox: Sandbox) -> None:
    rng = random.Random(5)
    whole = [2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64 + 1, -(2**127) + 1, *(rng.randrange(-(2**126), 2**126) for _ in range(20))]
    exact = [Decimal(number).scaleb(-2) for number in (*whole[:5], 10**16 + 1, 5, *(rng.randrange(10**37) for _ in range(20)))]
    asked = {f"n{n}": str(number) for n, number in enumerate((*whole, *exact))}
    listed = [f"${name}::varchar::{'hugeint' if '.' not in text else 'decimal(38, 2)'} as {name}" for name, text in asked.items()]
    answer = sandbox.run(f"select {', '.join(listed)}", asked)
    [row] = json.loads(answer.json_text(), parse_float=Decimal)["rows"]
    [line] = list(csv.reader(answer.csv().splitlines()))[1:]
    bounded = mcp_answers.of_result(answer)["rows"][0]
    given = [Decimal(text) for text in asked.values()]
    assert [Decimal(value) for value in row] == given
    assert [Decimal(value) for value in line] == given
    assert all(isinstance(value, int) == (abs(number) < 2**63) for value, number in zip(row, whole, strict=False))
    assert json.loads(json.dumps(bounded), parse_float=Decimal) == row


def test_slices_of_nested_columns_keep_their_rows() -> None:
    table = pa.table(
        {"m": pa.array([[("a", 1)], [("b", 2)], None], pa.map_(pa.string(), pa.int64())), "s": [{"x": [1]}, {"x": [2, 3]}, None]}
    )
    answer = SqlResult([("m", "MAP"), ("s", "STRUCT")], table.slice(1), truncated=False, elapsed_s=0.0)
    assert answer.rows() == [[{"b": 2}, {"x": [2, 3]}], [None, None]]


def test_parquet_arrow_and_polars_give_the_rows_back_with_unique_names(sandbox: Sandbox, tmp_path: Path) -> None:
    answer = sandbox.run("select 1 as a, 'x' as a, map {'k': 'v'} as m")
    assert answer.frame().columns == ["a", "a_1", "m"]
    assert pq.read_table(io.BytesIO(answer.parquet())).num_rows == 1
    (tmp_path / "a.arrow").write_bytes(answer.arrow())
    assert pa.ipc.open_stream((tmp_path / "a.arrow").read_bytes()).read_all().equals(answer.table)


def test_csv_has_empty_nulls_and_nested_values_as_json(sandbox: Sandbox) -> None:
    assert sandbox.run("""select 1 as a, null as b, 'x,"y' as c, map {'k': 1} as d""").csv() == 'a,b,c,d\n1,,"x,""y","{""k"": 1}"\n'


def test_the_text_table_is_aligned_and_says_when_it_was_cut(sandbox: Sandbox) -> None:
    text = sandbox.run("from (values ('a', 1), ('long', 22)) as t(name, n)", limit_rows=1).text()
    assert text.splitlines() == ["name  n", "----  -", "a     1", "(1 row, truncated)"]
