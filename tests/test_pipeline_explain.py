"""What tells two sets of requests apart ranks first, what differs by chance last, and two sets of the same traffic differ in nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.explain import BY_CHANCE, DEFINES, SCHEMA, condition_of, ranked, sizes
from pipeline.mechanisms import MECHANISMS
from pipeline.segments import LEVERS
from queries.store import Store

Counts = Mapping[str | float, tuple[int, int]]
KINDS = {"key": pl.String, "kind": pl.String, "value": pl.String, "upper": pl.Float64, "count_a": pl.Int64, "count_b": pl.Int64}


def counted(a: int, b: int, **keys: Counts) -> pl.DataFrame:
    """Counts as the statement gives them: values of a key by text, bins of a number by their largest."""
    rows: list[dict[str, Any]] = [
        {"key": name, "kind": "sets", "count_a": of_a, "count_b": of_b}
        for name, of_a, of_b in (("size", a, b), ("looked_at", a, b), ("left", 0, 7))
    ]
    for key, values in keys.items():
        for value, (of_a, of_b) in values.items():
            said = {"kind": "value", "value": value} if isinstance(value, str) else {"kind": "bin", "upper": value}
            rows.append({"key": key, "count_a": of_a, "count_b": of_b} | said)
    return pl.DataFrame(rows, schema=KINDS)


def row(frame: pl.DataFrame, key: str) -> dict[str, Any]:
    return frame.filter(pl.col("key") == key).row(0, named=True)


def test_the_value_that_differs_most_is_named_with_its_shares() -> None:
    frame = ranked(counted(1000, 4000, model={"x": (800, 400), "y": (150, 1600), "z": (50, 2000)}))
    found = row(frame, "model")
    assert (found["condition"], found["share_a"], found["share_b"]) == ("model = 'x'", 0.8, 0.1)
    assert found["distance"] == pytest.approx(0.7)
    assert 0.5 < found["difference"] < 0.7
    assert (found["n_a"], found["coverage_a"], found["requests_b"], found["note"]) == (1000, 1.0, 4000, None)


def test_the_threshold_that_separates_best_is_named_with_median_and_p95() -> None:
    frame = ranked(counted(1000, 1000, e2e_s={0.0: (0, 100), 0.5: (100, 800), 2.25: (900, 100)}))
    found = row(frame, "e2e_s")
    assert (found["condition"], found["share_a"]) == ("e2e_s > 0.5", pytest.approx(0.9))
    assert found["distance"] == pytest.approx(0.8)
    assert (found["median_a"], found["median_b"], found["p95_b"]) == (2.25, 0.5, 2.25)


def test_whether_a_number_is_known_at_all_may_be_what_differs() -> None:
    found = row(ranked(counted(1000, 1000, ttft_s={1.0: (100, 990)})), "ttft_s")
    assert (found["condition"], found["share_a"], found["share_b"]) == ("ttft_s is not null", 0.1, 0.99)
    assert (found["n_a"], found["coverage_b"]) == (100, 0.99)


def test_a_missing_text_is_a_value_of_its_own() -> None:
    found = row(ranked(counted(1000, 1000, gateway={"envoy": (500, 100), "litellm": (400, 100)})), "gateway")
    assert (found["condition"], found["share_a"], found["share_b"]) == ("gateway is null", 0.1, 0.8)


def test_a_number_that_only_one_set_knows_has_no_median_in_the_other() -> None:
    found = row(ranked(counted(500, 500, cached_tokens={64.0: (0, 400)})), "cached_tokens")
    assert (found["median_a"], found["median_b"], found["condition"]) == (None, 64.0, "cached_tokens is not null")


def test_keys_that_define_the_sets_rank_below_those_that_were_found_and_chance_ranks_last() -> None:
    keys = {
        "outcome": {"ok": (0, 1000), "error": (1000, 0)},
        "replica": {"r1": (700, 100), "r2": (300, 900)},
        "tenant": {"t1": (505, 498), "t2": (495, 502)},
        "model": {"m": (900, 100), "n": (100, 900)},
    }
    frame = ranked(counted(1000, 1000, **keys), {"outcome"})
    assert frame.select("key", "note").rows() == [("model", None), ("replica", None), ("outcome", DEFINES), ("tenant", BY_CHANCE)]
    assert row(frame, "tenant")["difference"] == 0.0


def test_a_condition_that_reads_every_flag_defines_them_all() -> None:
    frame = ranked(counted(100, 100, **{"flag.preempted": {"true": (90, 1)}}), {"flag."})
    assert row(frame, "flag.preempted")["note"] == DEFINES


def test_many_rare_values_do_not_outrank_one_real_difference() -> None:
    generator = np.random.default_rng(4)
    a, b = (np.bincount(generator.integers(0, 150, 300), minlength=150) for _ in "ab")
    tenants = {f"t{place}": (int(a[place]), int(b[place])) for place in range(150)}
    frame = ranked(counted(300, 300, tenant=tenants, model={"x": (190, 110), "y": (110, 190)}))
    assert row(frame, "tenant")["distance"] > row(frame, "model")["distance"] * 0.9
    assert frame["key"].to_list() == ["model", "tenant"]
    assert row(frame, "tenant")["note"] == BY_CHANCE


@pytest.mark.parametrize(("size_a", "size_b"), [(30, 30), (40, 5000), (600, 700), (5000, 90_000)])
def test_two_samples_of_the_same_traffic_seldom_differ_in_any_key(size_a: int, size_b: int) -> None:
    """One comparison of a hundred may: of 150, six would be more than chance (p < 0.004)."""
    generator = np.random.default_rng(size_a)
    shares = [np.array(weights) / sum(weights) for weights in ([1, 1], [999, 1], [50, 3, 1, 1], [1.0 / n for n in range(1, 60)], [1] * 300)]
    alarms = 0
    for _ in range(150):
        keys: dict[str, Counts] = {}
        for place, share in enumerate(shares * 3):
            a, b = generator.multinomial(size_a, share), generator.multinomial(size_b, share)
            as_number = place % 2
            keys[f"k{place}"] = {(float(n) if as_number else str(n)): (int(a[n]), int(b[n])) for n in range(len(share))}
        alarms += ranked(counted(size_a, size_b, **keys))["note"].null_count() > 0
    assert alarms < 6


@pytest.mark.parametrize(("shift", "n"), [(0.05, 4000), (0.02, 30_000)])
def test_a_small_difference_is_found_with_enough_requests(shift: float, n: int) -> None:
    hits = round(n * (0.1 + shift))
    frame = ranked(counted(n, n, **{"flag.preempted": {"true": (hits, n // 10)}}))
    assert row(frame, "flag.preempted")["note"] is None


def test_nothing_known_gives_no_rows_with_the_same_columns() -> None:
    frame = ranked(counted(5, 5))
    assert frame.is_empty()
    assert frame.columns == list(SCHEMA)
    assert sizes(counted(5, 5)).neither == 7


@pytest.mark.parametrize(
    ("key", "value", "condition"),
    [
        ("model", "it's", "model = 'it''s'"),
        ("lever.speculation", "eagle", "levers['speculation'] = 'eagle'"),
        ("arm.speculation", None, "arms['speculation'] is null"),
        ("flag.preempted", "true", "list_contains(flags, 'preempted')"),
        ("flag.preempted", None, "not coalesce(list_contains(flags, 'preempted'), false)"),
        ("hour", "2026-11-29 10:00:00+00", "date_trunc('hour', started_at) = '2026-11-29 10:00:00+00'"),
    ],
)
def test_what_differs_is_said_as_a_condition_for_where(key: str, value: str | None, condition: str) -> None:
    assert condition_of(key, value) == condition


def test_what_a_lever_does_by_itself_stands_after_what_differs_and_says_so() -> None:
    keys: dict[str, Counts] = {name: {1.0: (1000, 0), 2.0: (0, 1000)} for name in ("draft_tokens", "ttft_s", "cached_tokens")}
    frame = ranked(counted(1000, 1000, **keys), {"arm.speculation", "lever.speculation"})
    assert frame["key"].to_list() == ["cached_tokens", "ttft_s", "draft_tokens"]
    assert row(frame, "draft_tokens")["note"] == "what speculation does by itself"
    assert row(ranked(counted(1000, 1000, **keys)), "draft_tokens")["note"] is None


def test_every_lever_says_which_columns_are_its_own_and_they_are_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    columns = set(store.frame("select column_name from duckdb_columns() where table_name = 'requests'")["column_name"])
    store.close()
    assert tuple(MECHANISMS) == LEVERS
    assert {name for names in MECHANISMS.values() for name in names} <= columns
