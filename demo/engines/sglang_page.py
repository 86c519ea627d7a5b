"""The metrics of an SGLang 0.5.23 worker: the requests that ended there and what it shows when it is looked at in, its page out.

Several processes share the page, so no series says when it began, and one is there from its first count on. Of the ranks the first alone
is shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from demo.engines import sglang_legs
from demo.engines.exposition import Histogram, Values
from demo.engines.sglang_families import COUNTERS, EVICTED, GAUGES, HISTOGRAMS, TOKENIZER_COUNTERS, TOKENIZER_HISTOGRAMS
from demo.engines.sglang_legs import Leg
from demo.records import Deployment, Reading, Request

MIB = 1 << 20
STREAMED = "false"
ALWAYS = ("prefill_effective_tokens",)
LATELY = ("prompt_tokens", "cached_tokens", "output_tokens", "draft_tokens", "accepted_tokens", "verify_steps", "preemptions")


class Page:
    """One worker's page."""

    def __init__(self, deployment: Deployment) -> None:
        self._replica = deployment.replica
        of = {"model_name": deployment.model, "engine_type": deployment.role}
        scheduler = {**of, "tp_rank": "0", "pp_rank": "0", "moe_ep_rank": "0"}
        cache = {"cache_type": "RadixCache", "tp_rank": "0", "pp_rank": "0", "dp_rank": "0"}
        self._gauges = {name: Values("gauge", f"sglang:{name}", what, scheduler) for name, what in GAUGES.items()}
        self._counters = {
            name: Values("counter", f"sglang:{name}", what, labels)
            for labels, families in ((scheduler, COUNTERS), (of, TOKENIZER_COUNTERS), (cache, dict([EVICTED])))
            for name, what in families.items()
        }
        self._histograms = {
            name: Histogram(f"sglang:{name}", what, labels, edges, sum_first=True)
            for labels, families in ((scheduler, HISTOGRAMS), (of, TOKENIZER_HISTOGRAMS))
            for name, (what, edges) in families.items()
        }
        self._counts: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._last: Reading | None = None

    def observe(self, request: Request) -> None:
        """Takes what a request did here into account."""
        for leg in sglang_legs.legs(request):
            if leg.at.replica == self._replica:
                self._observe_stages(leg)
                self._observe_tokens(request, leg)
                if leg.role == "prefill":
                    self._observe_transfer(request, leg)

    def text(self, reading: Reading) -> str:
        """The page at a moment."""
        self._show(reading)
        self._show_lately(reading)
        self._count(reading)
        self._last = reading
        families: list[Values | Histogram] = [*self._gauges.values(), *self._counters.values(), *self._histograms.values()]
        return "".join([line for family in families for line in family.text("")])

    def _observe_stages(self, leg: Leg) -> None:
        for stage in leg.scheduler:
            self._histograms["per_stage_req_latency_seconds"].observe(stage.seconds, stage=stage.name)
            if stage.name.endswith("_waiting") and stage.name.startswith(leg.role or "prefill"):
                self._histograms["queue_time_seconds"].observe(stage.seconds)

    def _observe_tokens(self, request: Request, leg: Leg) -> None:
        decoding_s, further = (leg.ended_ns - leg.first_token_ns) / sglang_legs.NS, leg.output_tokens - 1
        streamed = {"is_streaming": STREAMED}
        self._histograms["time_to_first_token_seconds"].observe(leg.ttft_s, **streamed)
        if further > 0:
            self._histograms["inter_token_latency_seconds"].observe(decoding_s / further, further)
        if request.outcome != "ok":
            self._add("num_aborted_requests", 1)
            return
        cached = request.cached_tokens
        self._add("prompt_tokens", request.prompt_tokens, **streamed)
        self._add("generation_tokens", leg.output_tokens, **streamed)
        self._add("num_requests", 1, **streamed)
        self._add("cached_tokens", cached, cache_source="device")
        if leg.role != "prefill":
            self._add("spec_verify_calls", request.verify_steps or 0)
        if further > 0:
            self._histograms["request_time_per_output_token_seconds"].observe(decoding_s / further, **streamed)
        self._histograms["e2e_request_latency_seconds"].observe((leg.ended_ns - leg.started_ns) / sglang_legs.NS, **streamed)
        self._histograms["prompt_tokens_histogram"].observe(request.prompt_tokens)
        self._histograms["uncached_prompt_tokens_histogram"].observe(request.prompt_tokens - cached)
        self._histograms["generation_tokens_histogram"].observe(leg.output_tokens)

    def _observe_transfer(self, request: Request, leg: Leg) -> None:
        """The worker that read the prompt sends its state, and knows how long that took."""
        moving_s, size = (request.kv_transfer_s or 0.0) - request.decode_queue_s, (request.kv_transfer_bytes or 0.0) / MIB
        moved = {"kv_transfer_latency_ms": moving_s * 1e3, "kv_transfer_total_mb": size}
        if moving_s > 0:
            moved["kv_transfer_speed_gb_s"] = size / 1024 / moving_s
        bootstrap = {"kv_transfer_bootstrap_ms": leg.scheduler[1].seconds * 1e3, "kv_transfer_alloc_ms": request.decode_queue_s * 1e3}
        for name, value in (moved | bootstrap).items():
            self._histograms[name].observe(value)

    def _add(self, name: str, count: float, **labels: str) -> None:
        key = name, tuple(labels.items())
        if count or key in self._counts:
            self._counts[key] = self._counts.get(key, 0) + count
            self._counters[name].set(self._counts[key], **labels)

    def _show(self, reading: Reading) -> None:
        of = reading.of
        total = of.kv_blocks * of.kv_block_tokens
        used = min(total, round(reading.kv_used_blocks * of.kv_block_tokens))
        evictable = min(total - used, reading.kv_cached_blocks * of.kv_block_tokens)
        is_prefill, is_decode = of.role == "prefill", of.role == "decode"
        levels = {
            "num_running_reqs": reading.running,
            "num_queue_reqs": 0 if is_decode else reading.waiting,
            "token_usage": used / total,
            "full_token_usage": used / total,
            "num_used_tokens": used,
            "kv_used_tokens": used,
            "kv_evictable_tokens": evictable,
            "kv_available_tokens": total - used - evictable,
            "num_prefill_bootstrap_queue_reqs": 0,
            "num_prefill_inflight_queue_reqs": reading.transferring if is_prefill else 0,
            "num_decode_prealloc_queue_reqs": reading.waiting if is_decode else 0,
            "num_decode_transfer_queue_reqs": 0,
            "max_total_num_tokens": total,
            "page_size": of.kv_block_tokens,
            "num_pages": of.kv_blocks,
        }
        for name, level in levels.items():
            self._gauges[name].set(level)

    def _show_lately(self, reading: Reading) -> None:
        """What is of the time since the last look."""
        last = self._last
        prompt, cached, output, drafted, accepted, steps, retracted = (
            getattr(reading, name) - (getattr(last, name) if last else 0) for name in LATELY
        )
        seconds = (reading.at_ns - last.at_ns) / sglang_legs.NS if last else 0.0
        rates = {
            "gen_throughput": output / seconds if seconds > 0 else 0.0,
            "cache_hit_rate": cached / prompt if prompt else 0.0,
            "spec_accept_length": 1 + accepted / steps if steps else 0.0,
            "spec_accept_rate": accepted / drafted if drafted else 0.0,
            "num_retracted_reqs": retracted,
        }
        for name, rate in rates.items():
            self._gauges[name].set(rate)

    def _count(self, reading: Reading) -> None:
        for name, labels, count in _counted(reading):
            if count or name in ALWAYS:
                self._counters[name].set(count, **labels)


def _counted(reading: Reading) -> Iterator[tuple[str, dict[str, str], float]]:
    computed, cached = reading.prompt_tokens - reading.cached_tokens, reading.cached_tokens
    for mode, count in (("prefill_compute", computed), ("prefill_cache", cached), ("decode", reading.output_tokens)):
        yield "realtime_tokens", {"mode": mode}, count
    for mode, count in (("input", computed), ("device_hit", cached), ("host_hit", 0), ("storage_hit", 0)):
        yield "prefill_effective_tokens", {"mode": mode}, count
    yield "num_retracted_requests", {}, reading.preemptions
    yield "evicted_tokens", {}, reading.evicted_blocks * reading.of.kv_block_tokens
