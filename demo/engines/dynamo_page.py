"""The metrics of a Dynamo worker: requests that ended there and looks at it in, the text of its page out.

The recorded workers ran Dynamo's own engine, which shows little of what vLLM does, under vLLM's names.
"""

from __future__ import annotations

from demo.engines import dynamo_families as families
from demo.engines import dynamo_legs, wire
from demo.engines.dynamo_legs import Leg
from demo.engines.exposition import Histogram, Values
from demo.records import Deployment, Reading, Request

TASKS, QUEUED = 10_000, 40_000
TRANSIT_S = 0.0003
REQUEST_BYTES, PROMPT_TOKEN_BYTES, ANSWER_TOKEN_BYTES = 400, 5, 150
"""As recorded: a request carries its prompt's tokens as numbers, and each token of the answer is a message."""


class Page:
    """One worker's page."""

    def __init__(self, deployment: Deployment) -> None:
        self._replica, self._has_engine = deployment.replica, deployment.role != "prefill"
        component = {"dynamo_namespace": "dynamo", "dynamo_component": "backend" if self._has_engine else "prefill"}
        worker = {"worker_id": f"{dynamo_legs.worker_id(deployment.replica):x}"}
        of_component = {**component, "dynamo_endpoint": "generate", **worker}
        of_engine = {"engine": "0", "model_name": deployment.model}
        self._values: dict[str, Values] = {}
        self._histograms: dict[str, Histogram] = {}
        self._add(of_component, families.COMPONENT_COUNTERS, families.COMPONENT_GAUGES, families.COMPONENT_HISTOGRAMS)
        self._add({}, families.WORKER_COUNTERS, families.WORKER_GAUGES, families.WORKER_HISTOGRAMS)
        self._add(worker, {}, {families.UPTIME: "Seconds since the worker began."}, {})
        if self._has_engine:
            self._add(of_engine, families.ENGINE_COUNTERS, families.ENGINE_GAUGES, families.ENGINE_HISTOGRAMS)
        if deployment.role != "decode":
            self._add({**component, **worker}, {families.EVENTS_DROPPED: "Cache events that were lost."}, {}, {})
        self._ended = self._cancelled = self._request_bytes = self._response_bytes = 0
        self._began_ns = 0

    def observe(self, request: Request) -> None:
        """Takes a request that ended there into account."""
        for leg in dynamo_legs.legs(request):
            if leg.at.replica == self._replica:
                self._observe(request, leg)

    def text(self, reading: Reading) -> str:
        """The page as the worker was looked at."""
        self._began_ns = self._began_ns or reading.at_ns
        for name, value in self._shown(reading).items():
            self._values[name].set(value)
        of_all: list[Values | Histogram] = [*self._values.values(), *self._histograms.values()]
        return "".join([line for family in of_all for line in family.text("")])

    def _add(self, labels: dict[str, str], counters: families.Families, gauges: families.Families, histograms: families.Buckets) -> None:
        self._values |= {name: Values("counter", name, what, labels) for name, what in counters.items()}
        self._values |= {name: Values("gauge", name, what, labels) for name, what in gauges.items()}
        for name, (what, edges) in histograms.items():
            self._histograms[name] = Histogram(name, what, labels, edges)
            self._histograms[name].seen()

    def _observe(self, request: Request, leg: Leg) -> None:
        answered = 1 if leg.phase == "Prefill" else request.output_tokens
        self._ended += 1
        self._cancelled += request.outcome == "aborted"
        self._request_bytes += REQUEST_BYTES + PROMPT_TOKEN_BYTES * request.prompt_tokens
        self._response_bytes += ANSWER_TOKEN_BYTES * answered
        histograms, first_s = self._histograms, _first_token_s(request, leg)
        histograms["dynamo_component_request_duration_seconds"].observe((leg.done_ns - leg.taken_ns) / wire.NS)
        histograms["dynamo_work_handler_network_transit_seconds"].observe(TRANSIT_S)
        histograms["dynamo_work_handler_time_to_first_response_seconds"].observe(first_s)
        if leg.phase != "Prefill" and self._has_engine and request.outcome != "error":
            histograms["vllm:time_to_first_token_seconds"].observe(first_s)
            histograms["vllm:e2e_request_latency_seconds"].observe(first_s + request.decode_s)
            if answered > 1:
                histograms["vllm:inter_token_latency_seconds"].observe(request.decode_s / (answered - 1), answered - 1)

    def _shown(self, reading: Reading) -> dict[str, float]:
        handled = reading.running + reading.waiting
        shown: dict[str, float] = {
            "dynamo_component_cancellation": self._cancelled,
            "dynamo_component_request_bytes": self._request_bytes,
            "dynamo_component_requests": self._ended,
            "dynamo_component_response_bytes": self._response_bytes,
            "dynamo_component_inflight_requests": handled,
            families.UPTIME: (reading.at_ns - self._began_ns) / wire.NS,
            **dict.fromkeys((*families.WORKER_COUNTERS, *families.WORKER_GAUGES), 0),
            "dynamo_engine_request": handled,
            "dynamo_work_handler_pool_active_tasks": handled,
            "dynamo_work_handler_pool_capacity": TASKS,
            "dynamo_work_handler_queue_capacity": QUEUED,
        }
        if self._has_engine:
            shown |= _engine(reading)
        return shown if families.EVENTS_DROPPED not in self._values else shown | {families.EVENTS_DROPPED: 0}


def _engine(reading: Reading) -> dict[str, float]:
    usage = reading.kv_used_blocks / reading.of.kv_blocks
    return {
        "vllm:gpu_cache_usage_perc": usage,
        "vllm:kv_cache_usage_perc": usage,
        "vllm:num_requests_running": reading.running,
        "vllm:num_requests_waiting": reading.waiting,
        "vllm:num_preemptions": reading.preemptions,
    }


def _first_token_s(request: Request, leg: Leg) -> float:
    """From when the worker took the request to its first token."""
    read_s = max(request.queue_s, 0.0) + request.prefill_s
    return read_s if leg.phase != "Decode" else read_s + dynamo_legs.handed_s(request)
