"""vLLM's page is the recorded one: names, types, labels, edges; and its numbers are the worker's."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from demo_told import deployment, look, moved, plain, request
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from demo.engines.vllm_page import Page
from demo.records import Reading, Request

TOKENS_BEYOND = {"5000.0", "10000.0", "20000.0", "50000.0", "100000.0"}
"""Edges of a model with a longer context than the recorded one."""


def families(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text) if family.name.startswith("vllm:")}


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Value by name and what is said beside the engine and the model."""
    found = {}
    for family in families(text).values():
        for sample in family.samples:
            more = [value for label, value in sample.labels.items() if label not in ("engine", "model_name")]
            found[sample.name, *more] = sample.value
    return found


def page(*requests: Request, reading: Reading) -> str:
    made = Page(reading.of)
    for one in requests:
        made.observe(one)
    return made.text(reading)


def lines(family: Metric) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """The lines of a family, without their values and the edges of a longer context."""
    told = ((sample.name, sample.labels) for sample in family.samples if sample.labels.get("le") not in TOKENS_BEYOND)
    changed = ("model_name", "block_size", "effective_attention_block_size", "num_gpu_blocks", "kv_cache_size_tokens")
    changed += ("kv_cache_max_concurrency", "kv_cache_memory_bytes")
    return {(name, tuple((key, "*" if key in changed else value) for key, value in sorted(labels.items()))) for name, labels in told}


@pytest.mark.parametrize(("name", "drafts"), [("vllm", None), ("vllm-spec", 4)])
def test_the_page_is_the_recorded_one(recordings: Path, name: str, drafts: int | None) -> None:
    text = (recordings / name / "metrics-18200.prom").read_text()
    real = {family: found for family, found in families(text).items() if not family.startswith("vllm:kv_block_")}
    worker = deployment("vllm", drafts=drafts)
    ours = families(page(request(worker), reading=look(worker)))
    assert ours.keys() == real.keys()
    for family, found in real.items():
        assert (ours[family].type, lines(ours[family])) == (found.type, lines(found)), family


def test_lines_stand_as_the_client_library_prints_them(recordings: Path) -> None:
    worker = deployment("vllm")
    text = page(request(worker), reading=look(worker)).replace('model_name="m-70b"', 'model_name="tiny"')
    ours = {line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    real = (recordings / "vllm-spec" / "metrics-18200.prom").read_text().splitlines()
    heads = {line.rpartition(" ")[0] for line in real if line.startswith("vllm:") and not line.startswith(("vllm:kv_block", "vllm:cache_"))}
    assert heads <= ours


def test_counts_are_those_of_the_look() -> None:
    worker = deployment("vllm")
    told = samples(page(reading=look(worker, 2)))
    assert told["vllm:prompt_tokens_total",] == told["vllm:prefix_cache_queries_total",] == 120_000
    assert told["vllm:prefix_cache_hits_total",] == told["vllm:prompt_tokens_by_source_total", "local_cache_hit"] == 80_000
    assert told["vllm:prompt_tokens_by_source_total", "local_compute"] == 40_000
    assert told["vllm:generation_tokens_total",] == 20_100
    assert told["vllm:spec_decode_num_drafts_total",] == 10_000
    assert told["vllm:spec_decode_num_draft_tokens_total",] == 40_000
    assert told["vllm:spec_decode_num_accepted_tokens_total",] == 10_000
    assert [told["vllm:spec_decode_num_accepted_tokens_per_pos_total", str(place)] for place in range(4)] == [5000, 3000, 1500, 500]
    assert (told["vllm:num_requests_running",], told["vllm:num_requests_waiting",]) == (7, 3)
    assert told["vllm:kv_cache_usage_perc",] == 0.5
    assert told["vllm:num_preemptions_total",] == 2


def test_histograms_are_of_the_requests_that_ended_there() -> None:
    worker = deployment("vllm")
    told = samples(page(request(worker), plain(request(worker, 2, decode_s=4.0)), reading=look(worker)))
    assert told["vllm:request_success_total", "stop"] == 2
    assert told["vllm:request_decode_time_seconds_sum",] == 6.0
    assert told["vllm:request_time_per_output_token_seconds_sum",] == pytest.approx(0.03)
    assert told["vllm:request_prefill_kv_computed_tokens_sum",] == 800
    assert told["vllm:time_to_first_token_seconds_bucket", "0.25"] == 2


def test_the_gap_between_tokens_is_that_between_steps() -> None:
    worker = deployment("vllm")
    told = samples(page(request(worker), reading=look(worker)))
    assert told["vllm:inter_token_latency_seconds_count",] == 100  # of 200 tokens
    assert told["vllm:inter_token_latency_seconds_sum",] == pytest.approx(2.0)


def test_steps_between_looks_are_counted_once() -> None:
    worker = deployment("vllm")
    made = Page(worker)
    first, second = (samples(made.text(look(worker, number))) for number in (1, 2))
    assert (first["vllm:iteration_tokens_total_count",], second["vllm:iteration_tokens_total_count",]) == (1000, 2001)
    assert second["vllm:iteration_tokens_total_sum",] == pytest.approx(2 * 50 * (400 + 201))


def test_an_aborted_request_is_in_the_first_token_s_histogram_and_in_none_of_those_at_the_end() -> None:
    worker = deployment("vllm")
    told = samples(page(request(worker, outcome="aborted"), request(worker, 2, outcome="error"), reading=look(worker)))
    assert told["vllm:time_to_first_token_seconds_count",] == 1
    assert told["vllm:e2e_request_latency_seconds_count",] == 0
    assert all(told["vllm:request_success_total", reason] == 0 for reason in ("stop", "length", "abort", "error", "repetition"))


def test_of_a_pair_the_decoding_worker_counts_what_it_fetched_by_rank() -> None:
    one = moved("vllm", decode_queue_s=0.004)
    told = samples(page(one, reading=look(one.at, prompt_tokens=0, cached_tokens=0)))
    assert told["vllm:nixl_xfer_time_seconds_count",] == 4
    assert told["vllm:nixl_xfer_time_seconds_sum",] == pytest.approx(4 * 0.016)
    assert told["vllm:nixl_bytes_transferred_sum",] == 4e7
    assert told["vllm:prompt_tokens_total",] == 1200
    assert told["vllm:prompt_tokens_by_source_total", "external_kv_transfer"] == 1199
    assert told["vllm:prompt_tokens_by_source_total", "local_compute"] == 1
    assert told["vllm:request_generation_tokens_sum",] == 201


def test_of_a_pair_the_prefilling_worker_ended_a_request_for_one_token() -> None:
    one = moved("vllm")
    assert one.prefill_at is not None
    told = samples(page(one, reading=look(one.prefill_at)))
    assert told["vllm:request_success_total", "length"] == 1
    assert told["vllm:request_generation_tokens_sum",] == 1
    assert told["vllm:nixl_xfer_time_seconds_count",] == 0


def test_a_worker_that_stops_drafting_says_no_more_than_before() -> None:
    treated, control = deployment("vllm"), deployment("vllm", drafts=None)
    made = Page(treated)
    before, after = samples(made.text(look(treated))), samples(made.text(look(control, 2, verify_steps=5000)))
    assert before["vllm:spec_decode_num_drafts_total",] == after["vllm:spec_decode_num_drafts_total",]


def test_a_worker_that_comes_to_fetch_prompts_counts_transfers_from_then_on() -> None:
    one = moved("vllm")
    made = Page(deployment("vllm", one.at.replica))
    assert ("vllm:nixl_xfer_time_seconds_count",) not in samples(made.text(look(deployment("vllm", one.at.replica))))
    made.observe(one)
    assert samples(made.text(look(one.at, 2)))["vllm:nixl_xfer_time_seconds_count",] == one.at.gpus


def test_a_page_is_cheap() -> None:
    worker = deployment("vllm")
    made, took = Page(worker), []
    for number in range(1, 30):
        for one in range(50):
            made.observe(request(worker, one, e2e_s=1 + one / 10))
        began = time.perf_counter()
        made.text(look(worker, number))
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001  # 0.2 ms where nothing else runs
