"""Five bugs of upstream metrics, each made again the way it came about, and each named by the guard."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from guard_rows import T0, WINDOW, requests, samples, series

from pipeline.guard import SUSPICIONS, Checked, checked

PROMPT, REQUESTS, BLOCK = 1024, 1000, 16
NO_SAMPLES = samples([])


def suspected(found: Checked) -> dict[tuple[str, str], dict[str, Any]]:
    """What was suspected, by replica and column."""
    return {(row["replica"], row["column"]): row for row in found.suspicions.to_dicts()}


def preempting(readmitted: int, *, counts_again: bool) -> pl.DataFrame:
    """vLLM with random prompts: a request that was preempted is looked up again, with what it had made, and finds its own blocks."""
    so_far = PROMPT + 475
    again = readmitted if counts_again else 0
    own_blocks = (so_far - 1) // BLOCK * BLOCK
    return samples([
        series("requests_total", REQUESTS),
        series("prompt_tokens_total", REQUESTS * PROMPT),
        series("cache_queried_tokens_total", REQUESTS * PROMPT + again * so_far),
        series("cached_tokens_total", 2000 + again * own_blocks),
        series("preemptions_total", readmitted),
    ])  # fmt: skip


def by_counter(share: float) -> list[dict[str, Any]]:
    """Requests whose cached tokens are their part of what a counter counted."""
    row = {"prompt_tokens": PROMPT, "cached_tokens": round(share * PROMPT), "output_tokens": 1024}
    return [row | {"provenance": {"cached_tokens": "counter"}} for _ in range(100)]


def test_hits_of_preempted_requests_are_named_and_what_was_shared_out_of_them_is_set_aside() -> None:
    """vllm#25780: 32.2 % of random prompts' tokens "hit"."""
    found = checked(requests(by_counter(0.322)), preempting(328, counts_again=True))
    row = suspected(found)["r1", "cached_tokens"]
    assert (row["trap"], row["upstream"], row["severity"], row["n"]) == ("hits_of_preempted", "vllm#25780", "quarantined", 100)
    assert row["seen"].startswith("32.3 % of 1515672 looked-up tokens hit, but only 1024000 prompt tokens came and 328 requests")
    assert (row["since"], row["until"]) == (T0, T0 + WINDOW)
    assert found.requests["cached_tokens"].null_count() == 100
    assert found.requests["flags"].to_list()[0] == ["quarantined", "trap:hits_of_preempted"]
    assert found.quarantine.select("column", "value", "trap", "upstream", "replica").unique().rows() == [
        ("cached_tokens", "330", "hits_of_preempted", "vllm#25780", "r1")
    ]


def test_what_a_request_said_itself_stays_when_its_replicas_counter_is_suspect() -> None:
    rows = [row | {"provenance": {"cached_tokens": "body"}, "cached_tokens": 0} for row in by_counter(0.0)]
    found = checked(requests(rows), preempting(328, counts_again=True))
    assert suspected(found)["r1", "cached_tokens"]["upstream"] == "vllm#25780"
    assert found.requests["cached_tokens"].to_list() == [0] * 100
    assert found.quarantine.is_empty()


def test_preemptions_alone_are_no_ground() -> None:
    """Since vllm PR 25787 a preempted request is not counted again."""
    found = checked(requests(by_counter(0.002)), preempting(328, counts_again=False))
    assert found.suspicions.is_empty()
    assert found.requests["cached_tokens"].null_count() == 0


def test_retries_of_waiting_requests_are_another_trap() -> None:
    again = [series("prompt_tokens_total", 1e6), series("cache_queried_tokens_total", 3e6), series("cached_tokens_total", 1.5e6)]
    found = checked(requests(by_counter(0.5)), samples([*again, series("preemptions_total", 0)]))
    assert suspected(found)["r1", "cached_tokens"]["upstream"] == "vllm#43736"


SHARED, WHOLE = 240, 487  # a system prompt of 240 tokens before 247 of each request's own


def coarse_and_fine(coarse_block: int = 784, fine_block: int = 16) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same traffic on two engines: a prefix is reused up to the last whole block of it."""
    rows, told = [], []
    for replica, engine, block in (("coarse", "vllm", coarse_block), ("fine", "sglang", fine_block)):
        cached = SHARED // block * block
        row = {"replica": replica, "engine": engine, "prompt_tokens": WHOLE, "cached_tokens": cached, "kv_block_tokens": block}
        rows += [row | {"provenance": {"cached_tokens": "span", "kv_block_tokens": "sample"}}] * 150
        hits = [series("prompt_tokens_total", 150 * WHOLE), series("cached_tokens_total", 150 * cached)]
        asked = [series("cache_queried_tokens_total", 150 * WHOLE)] if engine == "vllm" else []
        told.append(samples([*hits, *asked], replica, engine))
    return requests(rows), pl.concat(told)


def test_a_hit_rate_of_nothing_that_only_the_block_size_makes_is_named_beside_the_replica_that_hits() -> None:
    """vllm#54607: 0 % against 49.3 % on the same traffic."""
    found = checked(*coarse_and_fine())
    row = suspected(found)["coarse", "cached_tokens"]
    assert (row["trap"], row["upstream"], row["severity"]) == ("block_hides_hits", "vllm#54607", "suspect")
    assert row["seen"] == "0 of 73050 tokens hit with KV blocks of 784 tokens, where fine skips 49.3 % of the same model's prompts"
    assert len(found.suspicions) == 1
    flags = dict(found.requests.select("replica", "flags").unique("replica").rows())
    assert flags == {"coarse": ["suspect", "trap:block_hides_hits"], "fine": []}
    assert found.requests["cached_tokens"].null_count() == 0, "both numbers are right: they do not compare"


def test_no_hit_at_all_is_the_traffics_where_both_have_the_same_blocks() -> None:
    rows, told = coarse_and_fine(784, 784)
    rows = rows.with_columns(pl.when(pl.col("replica") == "fine").then(240).otherwise("cached_tokens").alias("cached_tokens"))
    assert "block_hides_hits" not in checked(rows, told).suspicions["trap"].to_list()


def test_no_prompt_that_fills_a_block_is_named_without_another_replica() -> None:
    rows, told = coarse_and_fine()
    alone = checked(rows.filter(pl.col("replica") == "coarse"), told.filter(pl.col("replica") == "coarse"))
    assert [(row["trap"], row["upstream"]) for row in alone.suspicions.to_dicts()] == [("block_above_prompts", "vllm#54607")]


LINK, CHUNKS, CHUNK_BYTES = 50e9, 4, 2_000_000_000
CHUNK_S = CHUNK_BYTES / 40e9  # a chunk over the wire at 40 GB/s


def moved(latency_s: float, **said: Any) -> dict[str, Any]:
    return {
        "kv_transfer_bytes": CHUNKS * CHUNK_BYTES,
        "kv_transfer_s": latency_s,
        "link_peak_bytes_per_s": LINK,
        "engine": "sglang",
        **said,
    }


def test_all_chunks_bytes_over_the_last_chunks_time_is_named_at_the_request() -> None:
    """sglang#31877: total bytes of a chunked prefill over the time that the last chunk was in the queue."""
    found = checked(requests([moved(CHUNK_S), moved(CHUNKS * CHUNK_S)]), NO_SAMPLES)
    assert found.requests["kv_transfer_s"].to_list() == [None, CHUNKS * CHUNK_S]
    assert found.quarantine.select("column", "trap", "upstream").rows() == [
        ("kv_transfer_bytes", "transfer_above_link", "sglang#31877"),
        ("kv_transfer_s", "transfer_above_link", "sglang#31877"),
    ]


@pytest.mark.parametrize("speaks", ["speed", "bytes and time"])
def test_a_speed_above_the_link_is_named_of_the_replica_whose_series_say_it(speaks: str) -> None:
    speed = [series("kv_transfer_bytes_per_s", 200 * CHUNKS * CHUNK_BYTES / CHUNK_S, 200)]
    parts = [series("kv_transfer_bytes", 200 * CHUNKS * CHUNK_BYTES, 200), series("kv_transfer_s", 200 * CHUNK_S, 200)]
    row = {"replica": "decode", "prefill_replica": "prefill", "link_peak_bytes_per_s": LINK, "kv_transfer_bytes": 10, "kv_transfer_s": 1.0}
    rows = requests([row | {"provenance": {"kv_transfer_bytes": "counter", "kv_transfer_s": "span"}}] * 30)
    found = checked(rows, samples(speed if speaks == "speed" else parts, "prefill", "sglang"))
    told = suspected(found)["prefill", "kv_transfer_bytes"]
    assert (told["upstream"], told["seen"]) == ("sglang#31877", "160.0 GB/s over a link of 50.0 GB/s")
    assert found.requests.select(pl.col("kv_transfer_bytes", "kv_transfer_s").null_count()).row(0) == (30, 0)


def test_a_replica_that_moved_nothing_meanwhile_is_above_no_link() -> None:
    """0 bytes over 0 s is no speed: NaN would be above every limit."""
    still = [series(name, 0, 0) for name in ("kv_transfer_bytes_per_s", "kv_transfer_bytes", "kv_transfer_s")]
    row = {"replica": "decode", "prefill_replica": "prefill", "link_peak_bytes_per_s": LINK, "kv_transfer_bytes": 10, "kv_transfer_s": 1.0}
    found = checked(requests([row] * 30), samples(still, "prefill", "sglang"))
    assert found.suspicions.is_empty()


OUTPUT, STEP_S, LENGTH = 511, 8.72e-3, 2.55
STEPS = round((OUTPUT - 1) / LENGTH)
DECODE_S = STEPS * STEP_S


def speculating(**said: Any) -> dict[str, Any]:
    """511 tokens of which each verify step gave 2.55: 8.72 ms a step, 3.42 ms a token."""
    return {
        "prompt_tokens": 100, "output_tokens": OUTPUT, "ttft_s": 0.2, "e2e_s": 0.2 + DECODE_S, "decode_s": DECODE_S,
        "draft_tokens": 4 * STEPS, "accepted_tokens": OUTPUT - 1 - STEPS, "verify_steps": STEPS, **said,
    }  # fmt: skip


def test_a_step_called_a_token_is_named_at_the_request_and_its_decode_time_stays() -> None:
    """sglang#12064: an ITL of 8.72 ms where 292 tokens came in a second."""
    found = checked(requests([speculating(tpot_s=STEP_S), speculating(tpot_s=DECODE_S / (OUTPUT - 1))]), NO_SAMPLES)
    assert found.quarantine.select("column", "value", "trap", "upstream").rows() == [
        ("tpot_s", "0.00872", "tpot_is_a_step", "sglang#12064")
    ]
    assert found.requests["decode_s"].to_list() == [DECODE_S, DECODE_S]
    assert found.requests["tpot_s"].to_list() == [None, pytest.approx(3.42e-3, rel=0.01)]


def test_a_histogram_of_steps_under_a_tokens_name_is_told_and_nothing_of_ours_is_touched() -> None:
    rows = requests([speculating(tpot_s=DECODE_S / (OUTPUT - 1))] * 50)
    found = checked(rows, samples([series("tpot_s", 50 * STEPS * STEP_S, 50 * STEPS)]))
    row = suspected(found)["r1", "tpot_s"]
    assert (row["trap"], row["upstream"], row["severity"]) == ("series_tpot_is_a_step", "sglang#12064", "noted")
    assert row["seen"] == "8.72 ms a token by its histogram, 3.42 ms by 50 requests, which take 2.55 tokens a step"
    assert found.requests.equals(rows)


def plain(**said: Any) -> dict[str, Any]:
    return {"prompt_tokens": 100, "output_tokens": 101, "ttft_s": 1.0, "e2e_s": 3.0, "decode_s": 2.0, **said}


def test_a_time_per_token_with_the_first_token_in_it_is_named_at_the_request() -> None:
    """guidellm#1144: (last token - request start) / output tokens."""
    found = checked(requests([plain(tpot_s=3.0 / 101), plain(tpot_s=2.0 / 100)]), NO_SAMPLES)
    assert found.quarantine.select("column", "trap", "upstream").rows() == [("tpot_s", "tpot_with_first_token", "guidellm#1144")]
    assert found.requests["tpot_s"].to_list() == [None, 0.02]


def test_a_histogram_with_the_first_token_in_it_is_told() -> None:
    found = checked(requests([plain(tpot_s=0.02)] * 50), samples([series("tpot_s", 50 * 3.0 / 101, 50)]))
    row = suspected(found)["r1", "tpot_s"]
    assert (row["upstream"], row["severity"]) == ("guidellm#1144", "noted")


def test_an_honest_fleet_is_suspected_of_nothing() -> None:
    rows = requests([speculating(tpot_s=DECODE_S / (OUTPUT - 1), cached_tokens=48)] * 100)
    honest = [
        series("prompt_tokens_total", 10_000), series("cache_queried_tokens_total", 10_000), series("cached_tokens_total", 4800),
        series("preemptions_total", 3), series("draft_tokens_total", 400 * STEPS),
        series("accepted_tokens_total", 100 * (OUTPUT - 1 - STEPS)), series("tpot_s", 100 * DECODE_S / (OUTPUT - 1), 100),
    ]  # fmt: skip
    found = checked(rows, samples(honest))
    assert found.suspicions.to_dicts() == []
    assert found.quarantine.is_empty()
    assert found.requests.equals(rows)


def test_a_counter_that_began_anew_is_counted_on() -> None:
    """A restart in the middle: 60 % of what is asked for comes before, and the series never shows it as growth below 0."""
    told = preempting(328, counts_again=False)
    half = pl.col("observed_at") > T0 + WINDOW / 2
    began = told.with_columns(pl.when(half).then(pl.col("value") - 1_200_000).otherwise(pl.col("value")).clip(0).alias("value"))
    assert checked(requests(by_counter(0.002)), began).suspicions.is_empty()


def test_without_samples_or_requests_nothing_is_suspected() -> None:
    for rows, told in ((requests(by_counter(0.3)), NO_SAMPLES), (requests([]), preempting(328, counts_again=True))):
        found = checked(rows, told)
        assert (found.suspicions.schema, len(found.suspicions), len(found.quarantine)) == (SUSPICIONS, 0, 0)
