"""What time series cannot have counted: each trap beyond the five upstream bugs, just past its bound and just short of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from guard_rows import T0, requests, samples, series

from pipeline.guard import checked
from pipeline.guard_counters import SERIES_TRAPS
from pipeline.guard_series import grown


def rows(count: int = 60, by: str = "span", **said: Any) -> pl.DataFrame:
    usual = {
        "prompt_tokens": 1000,
        "output_tokens": 100,
        "cached_tokens": 300,
        "draft_tokens": 100,
        "accepted_tokens": 50,
        "verify_steps": 25,
    }
    row = usual | said
    return requests([row | {"provenance": dict.fromkeys(("cached_tokens", "draft_tokens", "accepted_tokens", "verify_steps"), by)}] * count)


def cache(cached: float, looked_up: float = 60_000) -> list[dict[str, Any]]:
    return [
        series("prompt_tokens_total", 60_000), series("cache_queried_tokens_total", looked_up), series("cached_tokens_total", cached),
        series("preemptions_total", 0),
    ]  # fmt: skip


def drafts(accepted: float, drafted: float = 6000) -> list[dict[str, Any]]:
    return [series("draft_tokens_total", drafted), series("accepted_tokens_total", accepted)]


# A trap, series that show it, and the same as they may be.
CASES = [
    ("hits_not_counted", cache(0), cache(18_000)),
    ("hits_contradict", cache(25_000), cache(23_900)),
    ("hits_of_retries", cache(18_000, 75_000), cache(18_000, 73_000)),
    ("drafts_above_drafted", drafts(6001), drafts(6000, 12_000)),
    ("drafts_contradict", drafts(3700), drafts(3500)),
]


@pytest.mark.parametrize(("name", "past", "short"), CASES, ids=[case[0] for case in CASES])
def test_series_that_cannot_be_right_are_named_just_past_the_bound(name: str, past: list[Any], short: list[Any]) -> None:
    assert checked(rows(), samples(past)).suspicions["trap"].unique().to_list() == [name]
    assert checked(rows(), samples(short)).suspicions.is_empty()


def test_every_series_trap_has_a_test() -> None:
    told = {"hits_of_preempted", "block_hides_hits", "block_above_prompts", "speed_above_link"}
    told |= {"series_tpot_is_a_step", "series_tpot_with_first_token"}
    assert {trap.name for trap in SERIES_TRAPS} == told | {name for name, _, _ in CASES}


def test_shares_of_a_counter_that_requests_contradict_stay_and_are_flagged_where_they_were_shared_out() -> None:
    own, shared = rows(40), rows(20, by="counter").with_columns(pl.col("request_id") + "-shared")
    found = checked(pl.concat([own, shared]), samples(cache(25_000)))
    assert found.requests["cached_tokens"].null_count() == 0
    flags = found.requests["flags"].to_list()
    assert flags == [[]] * 40 + [["suspect", "trap:hits_contradict"]] * 20


def test_accepted_above_drafted_takes_what_was_shared_out_and_leaves_what_was_said() -> None:
    own, shared = rows(40), rows(20, by="counter").with_columns(pl.col("request_id") + "-shared")
    found = checked(pl.concat([own, shared]), samples(drafts(7000)))
    assert [found.requests[name].null_count() for name in ("accepted_tokens", "draft_tokens", "verify_steps")] == [20, 20, 20]
    assert set(found.quarantine["upstream"]) == {"sglang#11572"}


def shipped(count: int = 60) -> pl.DataFrame:
    """Requests that `p` read and `d` answered, of which `p` had three tenths."""
    return rows(count, replica="d", prefill_replica="p", decode_replica="d")


def of_workers(read: list[dict[str, Any]], answered: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.concat([samples(read, replica="p"), samples(answered, replica="d")])


def test_a_decode_worker_has_none_of_the_prompts_that_another_read_and_that_is_right() -> None:
    assert checked(shipped(), of_workers(cache(18_000), cache(0))).suspicions.is_empty()


def test_requests_are_held_against_the_counter_of_the_replica_that_read_them() -> None:
    stands = checked(shipped(), of_workers(cache(0), cache(0))).suspicions
    assert stands.select("trap", "replica", "n").rows() == [("hits_not_counted", "p", 60)]
    differs = checked(shipped(), of_workers(cache(25_000), cache(0))).suspicions
    assert differs.select("trap", "replica", "n").rows() == [("hits_contradict", "p", 60)]


def test_a_worker_that_also_reads_prompts_itself_is_held_against_these_alone() -> None:
    both = pl.concat([shipped(20), rows(40, replica="d").with_columns(pl.col("request_id") + "-local")])
    assert checked(both, of_workers(cache(6000, 20_000), cache(9000))).suspicions.is_empty()  # 15 % of all that it looked up
    stands = checked(both, of_workers(cache(6000, 20_000), cache(0))).suspicions
    assert stands.select("trap", "replica").rows() == [("hits_not_counted", "d")]


def test_a_block_does_not_hide_the_hits_of_prompts_that_came_over_a_link() -> None:
    unified = rows(40, replica="u").with_columns(pl.col("request_id") + "-unified")
    series = pl.concat([of_workers(cache(18_000), cache(0)), samples(cache(12_000, 40_000), replica="u")])
    assert checked(pl.concat([shipped(), unified]), series).suspicions.is_empty()


def test_too_little_says_nothing() -> None:
    few = [series("prompt_tokens_total", 1000), series("cache_queried_tokens_total", 4900), series("cached_tokens_total", 4000)]
    assert checked(rows(10), samples(few)).suspicions.is_empty()
    assert checked(rows(19), samples(cache(25_000))).suspicions.is_empty()


def test_another_replicas_requests_are_left_alone() -> None:
    both = pl.concat([rows(30, by="counter"), rows(30, by="counter", replica="r2").with_columns(pl.col("request_id") + "-2")])
    found = checked(both, samples(cache(18_000, 90_000)))
    assert dict(found.requests.group_by("replica").agg(pl.col("cached_tokens").null_count()).rows()) == {"r1": 30, "r2": 0}


def test_growth_is_summed_over_series_and_counted_on_after_a_restart_and_a_delta_is_taken_as_it_is() -> None:
    two = samples([series("prompt_tokens_total", 100, engine="0"), series("prompt_tokens_total", 50, engine="1")])
    assert grown(two)["prompt_tokens_total"].to_list() == [pytest.approx(150)]
    restarted = samples([series("prompt_tokens_total", 100)]).with_columns(
        pl.when(pl.col("observed_at") > T0).then(pl.col("value") - 1e6).otherwise("value").alias("value")
    )
    assert grown(restarted)["prompt_tokens_total"].to_list() == [pytest.approx(100)]
    delta = samples([series("prompt_tokens_total", 0, **{"leverwatch.temporality": "delta"})], steps=1).with_columns(
        pl.lit(7.0).alias("value")
    )
    assert grown(delta)["prompt_tokens_total"].to_list() == [14.0]


def test_a_histogram_grows_by_its_sum_and_its_number_and_what_is_not_there_is_null() -> None:
    (row,) = grown(samples([series("tpot_s", 2.0, 100)])).to_dicts()
    assert (row["tpot_s"], row["tpot_s_n"]) == (pytest.approx(2.0), 100)
    assert (row["prompt_tokens_total"], row["kv_transfer_s"], row["kv_transfer_s_n"]) == (None, None, None)


def test_the_samples_of_a_gateway_do_not_count_twice_what_its_engine_counts() -> None:
    engine = samples([series("tpot_s", 2.0, 100)])
    gateway = samples([series("tpot_s", 9.0, 100)], engine="genai")
    assert grown(pl.concat([gateway, engine]))["tpot_s"].to_list() == [pytest.approx(2.0)]
