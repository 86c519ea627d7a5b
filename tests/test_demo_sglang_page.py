"""SGLang's page: the names, labels and units of version 0.5.23, with the worker's numbers, which are read as they were."""

from __future__ import annotations

import time
from typing import Any

import pytest
from demo_told import BEGAN_NS, deployment, look, moved, plain, request
from prometheus_client.parser import text_string_to_metric_families

from collectors import meanings
from collectors.prometheus_text import Scrape
from collectors.prometheus_text import samples as scraped
from collectors.samples import Sample
from demo.engines import vllm_page
from demo.engines.sglang_page import Page
from demo.records import Reading, Request

WORKER = deployment("sglang")
SCHEDULER = {"model_name", "engine_type", "tp_rank", "pp_rank", "moe_ep_rank"}
TOKENIZER = {"model_name", "engine_type"}
STATED: dict[str, tuple[str, set[str]]] = {
    "prefill_effective_tokens_total": ("counter", SCHEDULER | {"mode"}),
    "realtime_tokens_total": ("counter", SCHEDULER | {"mode"}),
    "cached_tokens_total": ("counter", TOKENIZER | {"cache_source"}),
    "prompt_tokens_total": ("counter", TOKENIZER | {"is_streaming"}),
    "generation_tokens_total": ("counter", TOKENIZER | {"is_streaming"}),
    "num_requests_total": ("counter", TOKENIZER | {"is_streaming"}),
    "spec_verify_calls_total": ("counter", TOKENIZER),
    "evicted_tokens_total": ("counter", {"cache_type", "tp_rank", "pp_rank", "dp_rank"}),
    "num_retracted_requests_total": ("counter", SCHEDULER),
    "num_aborted_requests_total": ("counter", TOKENIZER),
    "cache_hit_rate": ("gauge", SCHEDULER),
    "spec_accept_length": ("gauge", SCHEDULER),
    "spec_accept_rate": ("gauge", SCHEDULER),
    "num_queue_reqs": ("gauge", SCHEDULER),
    "num_running_reqs": ("gauge", SCHEDULER),
    "token_usage": ("gauge", SCHEDULER),
    "kv_used_tokens": ("gauge", SCHEDULER),
    "kv_available_tokens": ("gauge", SCHEDULER),
    "kv_evictable_tokens": ("gauge", SCHEDULER),
    "max_total_num_tokens": ("gauge", SCHEDULER),
    "uncached_prompt_tokens_histogram": ("histogram", TOKENIZER),
    "inter_token_latency_seconds": ("histogram", TOKENIZER),
    "request_time_per_output_token_seconds": ("histogram", TOKENIZER | {"is_streaming"}),
    "time_to_first_token_seconds": ("histogram", TOKENIZER | {"is_streaming"}),
    "e2e_request_latency_seconds": ("histogram", TOKENIZER | {"is_streaming"}),
    "queue_time_seconds": ("histogram", SCHEDULER),
    "per_stage_req_latency_seconds": ("histogram", SCHEDULER | {"stage"}),
    "kv_transfer_speed_gb_s": ("histogram", SCHEDULER),
    "kv_transfer_latency_ms": ("histogram", SCHEDULER),
    "kv_transfer_total_mb": ("histogram", SCHEDULER),
}


def page(*requests: Request, reading: Reading) -> str:
    made = Page(reading.of)
    for one in requests:
        made.observe(one)
    return made.text(reading)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Value by name and what is said beside the process."""
    said = SCHEDULER | {"cache_type", "dp_rank", "is_streaming"}
    return {
        (sample.name.removeprefix("sglang:"), *(value for label, value in sample.labels.items() if label not in said)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def signals(text: str) -> dict[str, Any]:
    """What is read of a page, in canonical units: sums over series, of histograms the mean."""
    found = [one for one in scraped(Scrape("10.0.0.1:8000"), text.encode(), BEGAN_NS, []) if isinstance(one, Sample)]
    values: dict[str, list[float]] = {}
    for arrived in meanings.shipped().given(found):
        if arrived.signal:
            sample = arrived.sample
            value = (sample.value or 0.0) / (sample.total or 1)
            values.setdefault(arrived.signal, []).append(value * arrived.factor)
    return {signal: sum(several) for signal, several in values.items()}


def test_every_metric_has_its_type_and_its_labels() -> None:
    decode, prefill = moved("sglang").at, moved("sglang").prefill_at
    assert prefill is not None
    texts = [
        page(request(WORKER), request(WORKER, 2, outcome="aborted"), reading=look(WORKER)),
        page(moved("sglang"), reading=look(prefill)),
        page(moved("sglang"), reading=look(decode)),
    ]
    found: dict[str, tuple[str, set[str]]] = {}
    for text in texts:
        for family in text_string_to_metric_families(text):
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            found[f"{family.name}_total" if family.type == "counter" else family.name] = family.type, labels
    assert {f"sglang:{name}" for name in STATED} <= found.keys()
    assert {name: found[f"sglang:{name}"] for name in STATED} == STATED


def test_no_series_says_when_it_began() -> None:
    assert "_created" not in page(request(WORKER), reading=look(WORKER))


def test_levels_are_those_of_the_look() -> None:
    told = samples(page(reading=look(WORKER)))
    assert (told["num_running_reqs",], told["num_queue_reqs",], told["token_usage",]) == (7, 3, 0.5)
    assert (told["kv_used_tokens",], told["kv_evictable_tokens",], told["max_total_num_tokens",]) == (128_000, 3200, 256_000)
    assert told["kv_used_tokens",] + told["kv_evictable_tokens",] + told["kv_available_tokens",] == 256_000


def test_rates_are_of_the_time_since_the_last_look() -> None:
    made = Page(WORKER)
    made.text(look(WORKER, 1))
    told = samples(made.text(look(WORKER, 2, accepted_tokens=20_000)))
    assert told["gen_throughput",] == pytest.approx(50 * 201 / 30)
    assert told["cache_hit_rate",] == pytest.approx(2 / 3)
    assert told["spec_accept_length",] == pytest.approx(1 + 15_000 / 5000)
    assert told["spec_accept_rate",] == pytest.approx(15_000 / 20_000)


def test_tokens_of_requests_are_counted_when_they_end_and_aborted_ones_apart() -> None:
    told = samples(page(request(WORKER), plain(request(WORKER, 2)), request(WORKER, 3, outcome="aborted"), reading=look(WORKER)))
    assert (told["prompt_tokens_total",], told["generation_tokens_total",], told["num_requests_total",]) == (2400, 402, 2)
    assert (told["cached_tokens_total", "device"], told["spec_verify_calls_total",], told["num_aborted_requests_total",]) == (1600, 100, 1)


def test_the_gap_between_tokens_is_net_of_drafts() -> None:
    told = samples(page(request(WORKER), reading=look(WORKER)))
    assert (told["inter_token_latency_seconds_count",], told["inter_token_latency_seconds_sum",]) == (200, pytest.approx(2.0))
    assert told["inter_token_latency_seconds_bucket", "0.015"] == 200


def test_a_transfer_is_told_by_the_worker_that_sends_in_milliseconds_and_binary_units() -> None:
    one = moved("sglang", decode_queue_s=0.004)
    assert one.prefill_at is not None
    told, at_decode = (samples(page(one, reading=look(at))) for at in (one.prefill_at, one.at))
    assert told["kv_transfer_latency_ms_sum",] == pytest.approx(16)
    assert told["kv_transfer_total_mb_sum",] == pytest.approx(4e7 / 2**20)
    assert told["kv_transfer_speed_gb_s_sum",] == pytest.approx(4e7 / 2**30 / 0.016)
    assert told["num_prefill_inflight_queue_reqs",] == 2
    assert not [name for name, *_ in at_decode if name.startswith("kv_transfer")]
    assert (told["generation_tokens_total",], at_decode["generation_tokens_total",]) == (1, 201)


def test_what_is_read_of_the_page_is_what_the_worker_had() -> None:
    read = signals(page(request(WORKER), reading=look(WORKER)))
    of_look = {"kv_usage": 0.5, "kv_used_tokens": 128_000, "queue_depth": 3, "running_requests": 7, "evicted_tokens_total": 12 * 32}
    of_request = {"prompt_tokens_total": 1200, "output_tokens_total": 201, "cached_tokens_total": 800, "verify_steps_total": 100}
    seconds = {"ttft_s": 0.134, "e2e_s": 2.134, "queue_s": 0.05, "tpot_s": 0.01}
    expected = of_look | of_request | seconds | {"preemptions_total": 1, "requests_total": 1}
    assert {name: read[name] for name in expected} == {name: pytest.approx(value) for name, value in expected.items()}


def test_what_is_read_of_a_transfer_is_in_seconds_and_bytes() -> None:
    one = moved("sglang")
    assert one.prefill_at is not None
    read = signals(page(one, reading=look(one.prefill_at)))
    expected = {"kv_transfer_s": 0.02, "kv_transfer_bytes": 4e7, "kv_transfer_bytes_per_s": 2e9}
    assert {name: read[name] for name in expected} == {name: pytest.approx(value) for name, value in expected.items()}


def test_what_is_read_of_vllm_s_page_is_what_the_worker_had() -> None:
    one = moved("vllm")
    made = vllm_page.Page(one.at)
    made.observe(one)
    read = signals(made.text(look(one.at, prompt_tokens=0, cached_tokens=0)))
    of_look = {"kv_usage": 0.5, "queue_depth": 3, "running_requests": 7, "kv_block_tokens": 32, "preemptions_total": 1}
    counts = {"output_tokens_total": 10_050, "prompt_tokens_total": 1200, "cached_tokens_total": 1199, "requests_total": 1}
    drafts = {"draft_tokens_total": 20_000, "accepted_tokens_total": 5000, "verify_steps_total": 5000}
    seconds = {"kv_transfer_s": 0.02, "decode_s": 2.0, "tpot_s": 0.01, "step_s": 0.02}
    expected = of_look | counts | drafts | seconds | {"kv_transfer_bytes": 1e7}
    assert {name: read[name] for name in expected} == {name: pytest.approx(value) for name, value in expected.items()}


def test_a_page_is_cheap() -> None:
    made, took = Page(WORKER), []
    for number in range(1, 30):
        for one in range(50):
            made.observe(request(WORKER, one, queue_s=one / 10))
        began = time.perf_counter()
        made.text(look(WORKER, number))
        took.append(time.perf_counter() - began)
    assert min(took) < 0.001  # 0.2 ms where nothing else runs
