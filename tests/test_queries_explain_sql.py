"""What Compare says of two sets is what plain SQL says of the same rows, whatever they hold."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars as pl
import pytest

from pipeline.explain import ranked, sizes
from queries.explain import comparison
from queries.explain_shown import expression

START = datetime(2026, 3, 1, tzinfo=UTC)
TEXTS = (None, "m", "it's", 'a "b"', "", "null", "<b>", "模型", "x\ny", "a.b", "m ")
NUMBERS = (None, 0.0, -0.0, 1.0, -1.5, 1e-12, 3e9, 1e300, 0.2, 0.2001, -1e-9)
COLUMNS = {
    "request_id": "VARCHAR", "trace_id": "VARCHAR", "started_at": "TIMESTAMP WITH TIME ZONE", "model": "VARCHAR", "tenant": "VARCHAR",
    "ttft_s": "DOUBLE", "prompt_tokens": "BIGINT", "flags": "VARCHAR[]", "levers": "MAP(VARCHAR, VARCHAR)",
    "arms": "MAP(VARCHAR, VARCHAR)",
}  # fmt: skip
SETS = (("model = 'm'", None), ("ttft_s > 0.5", "ttft_s <= 0.5"), ("slow:ttft_s", None), ("treated:speculation", "control:speculation"))


def made(rng: random.Random, n: int) -> list[tuple[Any, ...]]:
    """Requests with odd texts and numbers, more of some values than of others."""
    texts, numbers = (rng.sample(values, rng.randint(1, len(values))) for values in (TEXTS, NUMBERS))
    rows = []
    for number in range(n):
        ttft_s = rng.choice(numbers) if rng.random() < 0.3 else rng.lognormvariate(-1.0, 1.0)
        flags = rng.choice((None, [], ["it's"], ["preempted", "a.b"]))
        levers = rng.choice((None, {}, {"speculation": "on"}, {"speculation": "off"}, {"speculation": "k'3"}))
        arms = rng.choice((None, {"speculation": "control"}, {"speculation": "treated"}))
        model, tenant = (rng.choice(texts) if rng.random() < share else "m" for share in (0.8, 0.4))
        tokens = rng.choice((None, 0, rng.randint(1, 9000)))
        at = START + timedelta(seconds=rng.uniform(0, 90_000))
        rows.append((f"r{number}", f"t{number}", at, model, tenant, ttft_s, tokens, flags, levers, arms))
    return rows


@pytest.fixture(scope="module")
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.execute(f"create table requests ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})")
        yield connection


@pytest.mark.parametrize("seed", range(8))
def test_every_share_count_and_percentile_of_a_comparison_is_plain_sql_s(opened: duckdb.DuckDBPyConnection, seed: int) -> None:
    rng = random.Random(seed)
    opened.execute("delete from requests")
    opened.executemany(f"insert into requests values ({', '.join('?' * len(COLUMNS))})", made(rng, rng.choice((5, 60, 300))))
    a, b = SETS[seed % len(SETS)]
    since, until = START + timedelta(hours=1), START + timedelta(hours=rng.choice((2, 24)))
    asked = comparison(a, b, COLUMNS, (), since, until)
    counted = pl.DataFrame(opened.sql(asked.sql, params=asked.params))
    opened.execute(f"create or replace temp table sets as with {asked.sets} select * from sets", asked.params)
    of = sizes(counted)
    assert (
        (of.a, of.b)
        == (of.looked_a, of.looked_b)
        == one(opened, "select count(*) filter (where in_a), count(*) filter (where in_b) from sets")
    )
    if not (of.a and of.b):
        return
    for row in ranked(counted, asked.defining).iter_rows(named=True):
        for name in ("a", "b"):
            check(opened, row, name)
        if row["median_a"] is None and row["median_b"] is None:
            assert row["distance"] == pytest.approx(variation(opened, row["key"]), abs=1e-12), row["key"]


def check(opened: duckdb.DuckDBPyConnection, row: dict[str, Any], name: str) -> None:
    """One set of one key: how many know it, the share of the condition, and the percentiles to 1 %."""
    of, is_number = expression(row["key"]), row["median_a"] is not None or row["median_b"] is not None
    holds = row["condition"]
    among = f"in_{name} and {of} is not null" if f"{row['key']} > " in holds else f"in_{name}"
    asked = f"select count(*) filter (where {holds}) / count(*) from sets where {among}"
    assert one(opened, asked) == (pytest.approx(row[f"share_{name}"], abs=1e-12),), (row["key"], holds)
    if not is_number:
        return
    percentiles = f"quantile_disc({of}, 0.5)::double, quantile_disc({of}, 0.95)::double"
    known, *exact = one(opened, f"select count({of}), {percentiles} from sets where in_{name}")
    assert row[f"n_{name}"] == known
    for value, of_key in zip(exact, ("median", "p95"), strict=True):
        assert close(row[f"{of_key}_{name}"], value), (row["key"], of_key, row[f"{of_key}_{name}"], value)


def close(told: float | None, exact: float | None) -> bool:
    return told == exact if told is None or exact is None else math.isclose(told, exact, rel_tol=0.0102)


def variation(opened: duckdb.DuckDBPyConnection, key: str) -> float:
    """The total variation over all values of a key, null among them."""
    of = f"({expression(key)})::varchar"
    shares = ", ".join(f"count(*) filter (where in_{name}) / (select count(*) from sets where in_{name}) as {name}" for name in "ab")
    return float(one(opened, f"select sum(abs(a - b)) / 2 from (select {of} as value, {shares} from sets group by value)")[0])


def one(opened: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    [row] = opened.sql(sql).fetchall()
    return tuple(row)
