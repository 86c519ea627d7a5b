"""TensorRT-LLM's page of metrics: requests that ended at a server and looks at it in, `/prometheus/metrics` out.

The server runs with return_perf_metrics and enable_iter_perf_stats.
"""

from __future__ import annotations

from collections.abc import Iterator

from demo.engines import trtllm_legs
from demo.engines.exposition import Histogram, Kind, Values
from demo.engines.trtllm_legs import Leg
from demo.records import Deployment, Reading, Request

PREFIX = "trtllm_"
ENGINE_TYPE = "pytorch"
LONG_S = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN_S = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560)
TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)

HISTOGRAMS = {
    "e2e_request_latency_seconds": ("Histogram of end to end request latency in seconds.", LONG_S),
    "time_to_first_token_seconds": ("Histogram of time to first token in seconds.", FIRST_TOKEN_S),
    "time_per_output_token_seconds": ("Histogram of time per output token in seconds.", TOKEN_S),
    "request_queue_time_seconds": ("Histogram of time spent in WAITING phase for request.", LONG_S),
    "request_prefill_time_seconds": ("Histogram of time spent in PREFILL phase for request.", LONG_S),
    "request_decode_time_seconds": ("Histogram of time spent in DECODE phase for request.", LONG_S),
    "request_inference_time_seconds": ("Histogram of time spent in RUNNING phase for request.", LONG_S),
}
SUCCESS = "request_success"
FAMILIES: dict[str, tuple[Kind, str]] = {
    SUCCESS: ("counter", "Count of successfully processed requests."),
    "prompt_tokens": ("counter", "Number of prefill tokens processed."),
    "generation_tokens": ("counter", "Number of generation tokens processed."),
    "prompt_cached_tokens": ("counter", "Number of prompt tokens found in the KV cache."),
    "kv_cache_reused_blocks": ("counter", "Number of KV cache blocks reused."),
    "kv_cache_missed_blocks": ("counter", "Number of KV cache blocks missed."),
    "kv_cache_hit_rate": ("gauge", "KV cache hit rate."),
    "kv_cache_utilization": ("gauge", "KV cache utilization."),
    "kv_cache_tokens_per_block": ("gauge", "Tokens of a KV cache block."),
    "kv_cache_max_blocks": ("gauge", "KV cache blocks in all."),
    "num_requests_running": ("gauge", "Number of requests in execution."),
    "num_requests_waiting": ("gauge", "Number of requests waiting to be processed."),
}
OF_SPECULATION: dict[str, tuple[Kind, str]] = {
    "spec_decode_num_draft_tokens": ("counter", "Number of draft tokens."),
    "spec_decode_num_accepted_tokens": ("counter", "Number of accepted draft tokens."),
    "spec_decode_acceptance_length": ("gauge", "Mean tokens of a verify step."),
    "spec_decode_drafted_tokens": ("counter", "Number of draft tokens by position."),
    "spec_decode_accepted_tokens": ("counter", "Number of accepted draft tokens by position."),
}


class Page:
    """One server's page."""

    def __init__(self, deployment: Deployment) -> None:
        labels = {"model_name": deployment.model, "engine_type": ENGINE_TYPE}
        self._replica = deployment.replica
        self._histograms = {name: Histogram(PREFIX + name, what, labels, edges) for name, (what, edges) in HISTOGRAMS.items()}
        self._values = {name: Values(kind, PREFIX + name, what, labels) for name, (kind, what) in (FAMILIES | OF_SPECULATION).items()}
        self._successes: dict[str, int] = {}

    def observe(self, request: Request) -> None:
        """Takes a request that ended there into account: of those that completed alone a server speaks."""
        if request.outcome == "ok":
            for leg in trtllm_legs.legs(request):
                if leg.at.replica == self._replica:
                    self._observe(leg)

    def text(self, reading: Reading) -> str:
        """The page as the server was looked at."""
        for name, value in _counted(reading):
            self._values[name].set(value)
        if reading.of.speculative_tokens is not None:
            self._set_speculation(reading, reading.of.speculative_tokens)
        families: list[Values | Histogram] = [*self._values.values(), *self._histograms.values()]
        return "".join([line for family in families for line in family.text("")])

    def _observe(self, leg: Leg) -> None:
        self._successes[leg.finish_reason] = self._successes.get(leg.finish_reason, 0) + 1
        self._values[SUCCESS].set(self._successes[leg.finish_reason], finished_reason=leg.finish_reason)
        for name, value in _times(leg):
            if value > 0:  # the others are clock skew to TensorRT-LLM, and dropped
                self._histograms[name].observe(value)

    def _set_speculation(self, reading: Reading, positions: int) -> None:
        values = self._values
        values["spec_decode_num_draft_tokens"].set(reading.draft_tokens)
        values["spec_decode_num_accepted_tokens"].set(reading.accepted_tokens)
        values["spec_decode_acceptance_length"].set(1 + reading.accepted_tokens / max(1, reading.verify_steps))
        for position, accepted in zip(range(positions), reading.accepted_by_position, strict=False):
            values["spec_decode_drafted_tokens"].set(reading.verify_steps, token_position=str(position))
            values["spec_decode_accepted_tokens"].set(accepted, token_position=str(position))


def _times(leg: Leg) -> Iterator[tuple[str, float]]:
    yield "e2e_request_latency_seconds", leg.last_token_s
    yield "time_to_first_token_seconds", leg.first_token_s
    if leg.output_tokens > 1:
        yield "time_per_output_token_seconds", (leg.last_token_s - leg.first_token_s) / (leg.output_tokens - 1)
    yield "request_queue_time_seconds", leg.queue_s
    yield "request_prefill_time_seconds", leg.first_token_s - leg.scheduled_s
    yield "request_decode_time_seconds", leg.last_token_s - leg.first_token_s
    yield "request_inference_time_seconds", leg.last_token_s - leg.scheduled_s


def _counted(reading: Reading) -> Iterator[tuple[str, float]]:
    size = reading.of.kv_block_tokens
    reused, prompt = reading.cached_tokens // size, -(-reading.prompt_tokens // size)
    yield "prompt_tokens", reading.prompt_tokens
    yield "generation_tokens", reading.output_tokens
    yield "prompt_cached_tokens", reading.cached_tokens
    yield "kv_cache_reused_blocks", reused
    yield "kv_cache_missed_blocks", prompt - reused
    yield "kv_cache_hit_rate", reused / prompt if prompt else 0.0
    yield "kv_cache_utilization", reading.kv_used_blocks / reading.of.kv_blocks
    yield "kv_cache_tokens_per_block", size
    yield "kv_cache_max_blocks", reading.of.kv_blocks
    yield "num_requests_running", reading.running
    yield "num_requests_waiting", reading.waiting
