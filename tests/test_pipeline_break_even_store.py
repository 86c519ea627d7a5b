"""Where levers stop paying, through the store: what closed blocks teach, once each, over restarts, new edges and changes of the effect."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from break_even_cells import BLOCK, START, Gains, closed, put
from pipeline_requests import BEGAN, frame_of, stored

from pipeline import break_even_store
from pipeline.break_even_axes import BATCH, CONTEXT_TOKENS, INPUT_TOKENS
from pipeline.segments import Edges
from queries import files, retention
from queries.retention import Rule
from queries.sandbox import Sandbox
from queries.store import Store

EDGES = Edges(batch=(2, 4, 8, 16))
GAINS = {"<2": 0.4, "2-3": 0.25, "4-7": 0.1, "8-15": -0.1, ">=16": -0.3}
ALONE: dict[tuple[str, str | None], Gains] = {("m", None): GAINS}
M = '{"model":"m"}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def newest(store: Store, key: str = BATCH) -> list[dict[str, Any]]:
    rows = store.rows(files.question("break_even_newest"), {"lever": "speculation"})
    return [row for row in rows if row["key"] == key]


def held(store: Store, segment: str | None = None) -> str:
    """All that is held, as text: NaN, of lags that are not known yet, equals itself so."""
    rows = [row for table in ("break_even_kept", "break_even") for row in store.rows(f"select * from {table} order by all")]
    return repr([row for row in rows if segment in (None, row["segment"])])


def test_a_lever_that_gains_at_small_batches_and_loses_at_large_ones_is_told_with_band_and_point(store: Store) -> None:
    put(store, range(60), ALONE)
    assert closed(store, 60, EDGES) == 60
    [row] = newest(store)
    assert (row["segment"], row["metric"], row["basis"], row["state"]) == (M, "tpot_s", "control", "resolved")
    assert row["signs"] == ["pays", "pays", "pays", "loses", "loses"]
    assert (row["pays_edge"], row["loses_edge"]) == (7, 8)
    assert row["note"] == "pays up to 4-7, loses from 8-15 on"
    assert 5 < row["point"] < 11
    assert row["gains"] == pytest.approx(list(GAINS.values()), abs=0.03)
    assert (row["since"], row["until"]) == (START + BLOCK, START + BLOCK * 60)


def test_a_few_blocks_are_not_resolved_yet_and_the_row_says_so(store: Store) -> None:
    put(store, range(3), ALONE)
    closed(store, 3, EDGES)
    [row] = newest(store)
    assert (row["state"], row["note"]) == ("not resolved yet", "not resolved yet in any bucket")
    assert (row["pays_edge"], row["loses_edge"], row["point"]) == (None, None, None)


def test_a_restart_after_any_block_changes_nothing(tmp_path: Path) -> None:
    gains = {**ALONE, ("n", "<512"): GAINS, ("n", "512-2047"): {"<2": 0.1, "4-7": 0.2}}
    for name, steps in (("at once", [40]), ("in steps", [1, 2, 14, 39, 40])):
        for until in steps:
            opened = Store(tmp_path / name)
            if until == steps[0]:
                put(opened, range(40), gains)
            closed(opened, until, EDGES)
            opened.close()
    found = []
    for name in ("at once", "in steps"):
        opened = Store(tmp_path / name)
        found.append(held(opened))
        opened.close()
    assert "model" in found[0]
    assert found[0] == found[1]


def test_a_block_that_late_data_opens_again_teaches_only_the_segments_that_it_is_new_to(store: Store) -> None:
    put(store, range(8), ALONE)
    closed(store, 8, EDGES)
    before = held(store)
    put(store, range(2, 5), {("late", None): GAINS})
    assert closed(store, 8, EDGES) == 3
    assert held(store, M) == before
    [late] = [row for row in newest(store) if "late" in row["segment"]]
    assert (late["blocks"], late["until"]) == ([2] * 5, START + BLOCK * 5)


def test_input_lengths_are_compared_under_the_segment_without_them(store: Store) -> None:
    lengths = {"<512": 0.3, "512-2047": 0.2, ">=32768": -0.3}
    put(store, range(40), {("m", length): {"<2": gain} for length, gain in lengths.items()})
    closed(store, 40)
    [row] = newest(store, INPUT_TOKENS)
    assert row["segment"] == M
    assert (row["pays_edge"], row["loses_edge"]) == (2047, 32768)
    assert row["blocks"] == [39, 39, 0, 0, 39]
    assert row["gains"][2] is None


def test_a_gain_that_turns_makes_the_row_stale_and_begins_a_new_one(store: Store) -> None:
    turned = GAINS | {"<2": -0.3, "2-3": -0.3, "4-7": -0.3}
    put(store, range(70), ALONE)
    put(store, range(70, 100), {("m", None): turned})
    closed(store, 100, EDGES)
    now, before = newest(store)
    assert now["since"] == before["until"]
    assert START + BLOCK * 70 < now["since"] < START + BLOCK * 90
    assert (before["state"], before["pays_edge"], before["loses_edge"], before["point"]) == ("stale", None, None, None)
    assert before["note"].startswith("no longer pays in ")
    assert before["note"].endswith("; before: pays up to 4-7, loses from 8-15 on")
    assert before["signs"] == ["pays", "pays", "pays", "loses", "loses"]
    assert now["signs"][4] == "loses"
    assert "pays" not in now["signs"]


def test_what_pays_on_is_not_stale(store: Store) -> None:
    put(store, range(100), ALONE)
    closed(store, 100, EDGES)
    assert [row["state"] for row in newest(store)] == ["resolved"]


def test_other_edges_of_buckets_begin_anew_and_what_was_known_is_shown_as_ended(store: Store) -> None:
    put(store, range(30), ALONE)
    closed(store, 30, EDGES)
    put(store, range(30, 33), {("m", None): {"<4": 0.3, ">=4": -0.1}})
    closed(store, 33, Edges(batch=(4,)))
    now, before = newest(store)
    assert (now["buckets"], now["blocks"], now["since"]) == (["<4", ">=4"], [2, 2], START + BLOCK * 31)
    assert (before["state"], before["pays_edge"]) == ("stale", None)
    assert before["note"].startswith("ended; before: pays up to")
    assert store.rows("select count(*) as n from break_even_kept where segment = $m", {"m": M}) == [{"n": 1}]


def test_context_lengths_are_read_from_requests_and_only_described(store: Store) -> None:
    rows = [
        {"replica": "r", "model": "m", "arm": ("treated", "control")[n % 2], "after_s": n * 2, "outcome": "ok", "decode_s": 2.0 + n % 7,
         "output_tokens": 101, "prompt_tokens": (300, 3000)[n % 4 // 2]}
        for n in range(300)
    ]  # fmt: skip
    with store.write() as transaction:
        made = stored(frame_of(rows)).with_columns(pl.Series("arm", [row["arm"] for row in rows]))
        transaction.using(made, "insert into requests_hot by name select * exclude (arm), map {'speculation': arm} as arms from incoming")
    compared = pl.DataFrame({"lever": ["speculation"], "segment": ['{"input_bucket":"<512","model":"m"}']})
    ends = [BEGAN + BLOCK, BEGAN + BLOCK * 2]
    with store.write() as transaction:
        break_even_store.keep(transaction, break_even_store.learned(store, ends, compared, Edges()))
    [row] = newest(store, CONTEXT_TOKENS)
    assert (row["segment"], row["basis"]) == (M, "descriptive")
    assert row["blocks"] == [1, 0, 1, 0, 0]
    unknown = compared.with_columns(pl.lit('{"model":"n"}').alias("segment"))
    assert break_even_store.learned(store, ends, unknown, Edges()) == []


def test_blocks_that_lie_far_apart_are_not_read_with_what_lies_between() -> None:
    ends = [START + BLOCK * number for number in (0, 1, 23, 24, 500, 501)]
    groups = [[int((end - START) / BLOCK) for end in some] for some in break_even_store.near(ends)]
    assert groups == [[0, 1, 23], [24], [500, 501]]


def test_sql_sees_the_table_and_retention_drops_it_with_effects(store: Store) -> None:
    put(store, range(4), ALONE)
    closed(store, 4, EDGES)
    sandbox = Sandbox(store)
    assert sandbox.run("select state, count(*) as n from break_even group by all").rows() == [["not resolved yet", 1]]
    sandbox.close()
    with store.write() as transaction:
        columns = "$name as segment, since - $age as since, until - $age as until"
        for table in ("break_even", "break_even_kept"):
            old = f"insert into {table} by name select * replace ({columns}) from {table}"
            transaction.execute(old, {"name": "old", "age": timedelta(days=500)})
    while retention.drop_next(store, Rule("cells", timedelta(days=400)), START + BLOCK * 4):
        pass
    assert held(store, M) == held(store)
    assert {row["relation"] for row in store.rows("select relation from retention_log")} == {"break_even", "break_even_kept"}
