"""The metrics of a vLLM 0.32 worker: the requests that ended there and what it shows when it is looked at in, its page out.

Left out is what it prints of Python, of its HTTP server, and of sampled cache blocks, which takes a flag.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from demo.engines import vllm
from demo.engines.exposition import Histogram, Values, labels_text, number
from demo.engines.vllm import Leg
from demo.engines.vllm_families import CACHE_CONFIG, COUNTERS, GAUGES, HISTOGRAMS, NIXL_COUNTERS, NIXL_HISTOGRAMS
from demo.records import Deployment, Reading, Request

FINISHED = ("stop", "length", "abort", "error", "repetition")
REFUSED = ("max_num_queued_reqs", "max_num_queued_tokens")
TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
POST_S = 0.0005
NOTHING = {*NIXL_COUNTERS, *(name for name in COUNTERS if name.startswith(("estimated_", "mm_cache_")))}
"""Counters that count nothing here."""


class Page:
    """One worker's page. It has counts of drafts while the worker drafts, and those of transfers where prefill and decode are apart."""

    def __init__(self, deployment: Deployment) -> None:
        self._replica, self._model = deployment.replica, deployment.model
        self._labels = {"engine": "0", "model_name": deployment.model}
        self._counters: dict[str, Values] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges = {name: Values("gauge", f"vllm:{name}", what, self._labels) for name, what in GAUGES.items()}
        self._has(COUNTERS, HISTOGRAMS)
        if deployment.role != "unified":
            self._has(NIXL_COUNTERS, NIXL_HISTOGRAMS)
        self._finished = dict.fromkeys(FINISHED, 0)
        self._fetched_tokens = self._fetched_prompts = 0
        self._last: Reading | None = None
        self._created = ""
        self._configs: dict[Deployment, str] = {}

    def observe(self, request: Request) -> None:
        """Takes what a request did here into account; of one that was refused nothing is known."""
        here = [leg for leg in vllm.legs(request) if leg.at.replica == self._replica]
        if request.outcome == "error" or not here:
            return
        self._observe_tokens(request, here[0])
        if request.outcome == "ok":
            self._observe_end(request, here[0])
        if request.prefill_at is not None and request.at.replica == self._replica:
            self._observe_transfer(request)

    def text(self, reading: Reading) -> str:
        """The page at a moment."""
        self._created = self._created or number(reading.at_ns / 1e9)
        self._count(reading)
        self._show(reading)
        self._steps(reading)
        self._last = reading
        families: list[Values | Histogram] = [*self._counters.values(), *self._gauges.values(), *self._histograms.values()]
        return "".join([line for family in families for line in family.text(self._created)]) + self._config(reading.of)

    def _has(self, counters: Mapping[str, str], histograms: Mapping[str, tuple[str, tuple[float, ...]]]) -> None:
        """Has these families from now on; those of transfers come when a worker's role does."""
        for name, what in counters.items():
            self._counters[name] = Values("counter", f"vllm:{name}", what, self._labels)
        for name, (what, edges) in histograms.items():
            self._histograms[name] = Histogram(f"vllm:{name}", what, self._labels, edges)
            self._histograms[name].seen()
        for name in counters.keys() & NOTHING:
            self._counters[name].set(0)

    def _observe_tokens(self, request: Request, leg: Leg) -> None:
        """The first token and the steps after it are counted as they come, whatever becomes of the request."""
        self._seconds("time_to_first_token_seconds", leg.ttft_s)
        if leg.decode_s > 0 and request.decode_steps:
            self._histograms["inter_token_latency_seconds"].observe(leg.decode_s / request.decode_steps, request.decode_steps)

    def _observe_end(self, request: Request, leg: Leg) -> None:
        self._finished["length" if leg.max_tokens == 1 else request.finish_reason] += 1
        computed = 1 if leg.started_ns != request.started_ns else request.prompt_tokens - request.cached_tokens
        tokens = {
            "request_prompt_tokens": request.prompt_tokens,
            "request_generation_tokens": leg.output_tokens,
            "request_max_num_generation_tokens": leg.output_tokens,
            "request_params_n": 1,
            "request_params_max_tokens": leg.max_tokens,
            "request_num_preemptions": request.preemptions,
            "request_prefill_kv_computed_tokens": computed,
        }
        for name, count in tokens.items():
            self._histograms[name].observe(count)
        self._seconds("e2e_request_latency_seconds", leg.e2e_s)
        self._seconds("request_queue_time_seconds", leg.queue_s)
        self._seconds("request_prefill_time_seconds", leg.prefill_s)
        self._seconds("request_decode_time_seconds", leg.decode_s)
        self._seconds("request_inference_time_seconds", leg.prefill_s + leg.decode_s)
        self._seconds("request_time_per_output_token_seconds", leg.decode_s / (leg.output_tokens - 1) if leg.output_tokens > 1 else 0.0)

    def _observe_transfer(self, request: Request) -> None:
        """The worker that decodes fetches, each of its ranks its share."""
        if NIXL_HISTOGRAMS.keys() - self._histograms.keys():
            self._has(NIXL_COUNTERS, NIXL_HISTOGRAMS)
        self._fetched_prompts += 1
        self._fetched_tokens += request.prompt_tokens
        ranks = request.at.gpus
        moved = {
            "nixl_xfer_time_seconds": (request.kv_transfer_s or 0.0) - request.decode_queue_s,
            "nixl_post_time_seconds": POST_S,
            "nixl_bytes_transferred": (request.kv_transfer_bytes or 0.0) / ranks,
            "nixl_num_descriptors": math.ceil(request.prompt_tokens / request.at.kv_block_tokens),
        }
        for name, value in moved.items():
            self._histograms[name].observe(value, ranks)

    def _seconds(self, name: str, seconds: float) -> None:
        self._histograms[name].observe(seconds)

    def _count(self, reading: Reading) -> None:
        fetched = self._fetched_tokens - self._fetched_prompts  # the last token of each is computed anew
        prompt, cached = reading.prompt_tokens + self._fetched_tokens, reading.cached_tokens
        counts = {
            "prefix_cache_queries": prompt,
            "prefix_cache_hits": cached,
            "external_prefix_cache_queries": self._fetched_tokens,
            "external_prefix_cache_hits": fetched,
            "num_preemptions": reading.preemptions,
            "prompt_tokens": prompt,
            "prompt_tokens_cached": cached + fetched,
            "generation_tokens": reading.output_tokens,
        }
        for name, count in counts.items():
            self._counters[name].set(count)
        sources = {"local_compute": prompt - cached - fetched, "local_cache_hit": cached, "external_kv_transfer": fetched}
        _set_each(self._counters["prompt_tokens_by_source"], "source", sources)
        tiers = dict.fromkeys(TIERS, 0) | {"device": cached, "p2p": fetched}
        _set_each(self._counters["prompt_tokens_cached_by_source"], "source", tiers)
        _set_each(self._counters["request_success"], "finished_reason", self._finished)
        if reading.of.speculative_tokens is not None:
            self._count_drafts(reading)

    def _count_drafts(self, reading: Reading) -> None:
        self._counters["spec_decode_num_drafts"].set(reading.verify_steps)
        self._counters["spec_decode_num_draft_tokens"].set(reading.draft_tokens)
        self._counters["spec_decode_num_accepted_tokens"].set(reading.accepted_tokens)
        by_position = {str(position): count for position, count in enumerate(reading.accepted_by_position)}
        _set_each(self._counters["spec_decode_num_accepted_tokens_per_pos"], "position", by_position)

    def _show(self, reading: Reading) -> None:
        self._gauges["num_requests_running"].set(reading.running)
        self._gauges["num_requests_waiting"].set(reading.waiting)
        _set_each(self._gauges["num_requests_waiting_by_reason"], "reason", {"capacity": reading.waiting, "deferred": 0})
        _set_each(self._gauges["engine_sleep_state"], "sleep_state", {"awake": 1, "weights_offloaded": 0, "discard_all": 0})
        self._gauges["kv_cache_usage_perc"].set(min(1.0, reading.kv_used_blocks / reading.of.kv_blocks))

    def _steps(self, reading: Reading) -> None:
        """Steps since the last look, all of the same mean size."""
        last = self._last
        steps = int(reading.iterations) - (int(last.iterations) if last else 0)
        if steps > 0:
            tokens = _processed(reading) - (_processed(last) if last else 0)
            self._histograms["iteration_tokens_total"].observe(tokens / steps, steps)

    def _config(self, of: Deployment) -> str:
        if of not in self._configs:
            block = str(of.kv_block_tokens)
            sizes = {"block_size": block, "effective_attention_block_size": block, "num_gpu_blocks": str(of.kv_blocks)}
            tokens = of.kv_blocks * of.kv_block_tokens
            sizes |= {"kv_cache_size_tokens": str(tokens), "kv_cache_max_concurrency": str(tokens / 131072)}
            refusals = Values("counter", "vllm:admission_rejections", "Requests refused, by reason.", {"model_name": of.model})
            _set_each(refusals, "reason", dict.fromkeys(REFUSED, 0))
            name = "vllm:cache_config_info"
            info = f"# HELP {name} The cache's configuration.\n# TYPE {name} gauge\n{name}{labels_text(CACHE_CONFIG | sizes)} 1.0\n"
            self._configs[of] = "".join([*refusals.text(self._created), info])
        return self._configs[of]


def _processed(reading: Reading) -> int:
    """Tokens that were computed."""
    return reading.prompt_tokens - reading.cached_tokens + reading.output_tokens


def _set_each(family: Values, label: str, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        family.set(value, **{label: name})
