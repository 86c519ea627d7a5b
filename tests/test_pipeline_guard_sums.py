"""What requests say of their replicas adds up over batches, and so do the requests that fell into traps in cells."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from guard_rows import T0, WINDOW, requests, samples, series
from polars.testing import assert_frame_equal

from pipeline.guard import checked, record
from pipeline.guard_sums import SUMS, sums, together
from pipeline.impossible import quarantined
from pipeline.measure import cells
from queries import files
from queries.store import Store


def made_up(count: int, seed: int = 3) -> pl.DataFrame:
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for _ in range(count):
        row: dict[str, Any] = {"replica": rng.choice(["a", "b", "c"]), "prompt_tokens": rng.randrange(1, 3000), "kv_block_tokens": 784}
        row |= {"output_tokens": rng.randrange(1, 400), "e2e_s": rng.uniform(1, 9), "tpot_s": rng.choice([None, 0.01, 0.02])}
        row |= {"cached_tokens": rng.choice([None, 0, 16]), "draft_tokens": 40, "accepted_tokens": rng.randrange(40), "verify_steps": 10}
        row |= {"prefill_replica": rng.choice([None, "p"]), "link_peak_bytes_per_s": rng.choice([None, 50e9, 60e9])}
        rows.append(
            row
            | {
                "provenance": {"cached_tokens": rng.choice(["counter", "body"])},
                "arms": {"speculation": rng.choice(["treated", "control"])},
            }
        )
    return requests(rows)


@pytest.mark.parametrize("at", [1, 50, 119])
def test_sums_of_two_batches_are_the_sums_of_both_together(at: int) -> None:
    whole = made_up(120)
    apart = pl.concat([sums(whole[:at]), sums(whole[at:])])
    assert apart.schema == SUMS
    assert_frame_equal(together(apart).sort("replica"), together(sums(whole)).sort("replica"), check_exact=False)


def test_a_prefill_replica_is_known_by_its_link_and_by_what_it_read() -> None:
    row: dict[str, Any] = {"replica": "d", "prefill_replica": "p", "link_peak_bytes_per_s": 60e9}
    row |= {"prompt_tokens": 1000, "cached_tokens": 300, "tpot_s": 0.1}
    found = {row["replica"]: row for row in together(sums(requests([row] * 5))).to_dicts()}
    read, answered = found["p"], found["d"]
    assert (read["requests"], read["own_n"], read["own_share"], read["link_peak"], read["tpot_mean_s"]) == (0, 5, 0.3, 60e9, None)
    assert (answered["requests"], answered["taken_n"], answered["own_n"], answered["own_share"]) == (5, 5, 0, None)
    assert (answered["prompt_mean"], answered["tpot_mean_s"]) == (1000, pytest.approx(0.1))


def test_what_a_decode_leg_took_over_is_no_word_on_the_cache_of_who_read() -> None:
    row = {"replica": "d", "prefill_replica": "p", "prompt_tokens": 1025, "cached_tokens": 1024}
    assert together(sums(requests([row] * 5)))["own_n"].to_list() == [0]
    assert together(sums(requests([row | {"prefill_replica": replica} for replica in (None, "d")])))["own_n"].to_list() == [2]


def told(cached: float) -> pl.DataFrame:
    return samples([series("prompt_tokens_total", 1e5), series("cache_queried_tokens_total", 1e5), series("cached_tokens_total", cached)])


def test_a_replica_of_few_requests_a_batch_is_suspected_once_enough_batches_were_seen(tmp_path: Any) -> None:
    """Five requests a batch say that they hit, where the counter of hits stands still."""
    store, found = Store(tmp_path), []
    for _ in range(6):
        recent = store.frame(files.question("guard_recent"), {"since": T0 - WINDOW, "until": T0 + WINDOW})
        one = checked(requests([{"prompt_tokens": 1000, "cached_tokens": 500}] * 5), told(0), recent)
        with store.write() as transaction:
            record(transaction, one, T0)
        found.append(one.suspicions["trap"].to_list())
    store.close()
    assert found == [[], [], [], *[["hits_not_counted"]] * 3]


def test_what_was_said_is_forgotten_after_a_quarter_of_an_hour(tmp_path: Any) -> None:
    store = Store(tmp_path)
    one = checked(requests([{"prompt_tokens": 1000}]), told(0))
    for moment in (T0, T0 + 4 * WINDOW):
        with store.write() as transaction:
            record(transaction, one, moment)
    assert store.rows("select count(*) as n, min(noted_at) as oldest from replica_sums") == [{"n": 1, "oldest": T0 + 4 * WINDOW}]
    store.close()


def trap_cells(rows: pl.DataFrame) -> pl.DataFrame:
    long = cells(rows).long().filter(pl.col("metric").cast(pl.String).str.starts_with("trap:"))
    return long.with_columns(pl.col("metric").cast(pl.String)).select("segment", "lever", "arm", "replica", "metric", "known", "n", "num")


def test_trapped_requests_are_counted_in_the_cells_of_their_arm_and_of_all_and_add_up() -> None:
    rows, _ = quarantined(
        made_up(120).with_columns(pl.when(pl.int_range(pl.len()) % 4 == 0).then(-1.0).otherwise("tpot_s").alias("tpot_s"))
    )
    whole = trap_cells(rows)
    trapped = rows.filter(pl.col("flags").list.contains("trap:tpot_s_negative"))
    assert whole.filter(pl.col("metric") == "trap:tpot_s_negative").group_by("lever").agg(pl.col("n").sum()).sort("lever").rows() == [
        ("", len(trapped)), ("speculation", len(trapped)),
    ]  # fmt: skip
    parts = pl.concat([trap_cells(rows[:40]), trap_cells(rows[40:])]).group_by(whole.columns[:5]).agg(pl.col("known", "n", "num").sum())
    assert_frame_equal(parts.sort(pl.all()), whole.sort(pl.all()), check_row_order=False)


def test_cells_of_requests_without_traps_have_no_row_of_them() -> None:
    assert trap_cells(requests([{"prompt_tokens": 10, "arms": {"speculation": "treated"}}] * 3)).is_empty()
