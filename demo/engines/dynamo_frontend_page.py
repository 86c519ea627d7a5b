"""The metrics of a Dynamo frontend: the requests of its model and looks at its workers in, the text of its page out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from demo.engines import dynamo_families as families
from demo.engines import dynamo_legs
from demo.engines.dynamo import ERROR_TYPE, FRONTEND
from demo.engines.exposition import Histogram, Values
from demo.records import Reading, Request

ENDPOINT = {"endpoint": "chat_completions", "request_type": "unary"}
STATUS = {"ok": "success", "aborted": "error", "error": "error"}
POLICY = {"policy_class": "default", "worker_type": "decode"}


class FrontendPage:
    """The page of the frontend of one model."""

    def __init__(self, model: str) -> None:
        number = dynamo_legs.worker_id(f"{FRONTEND} {model}")
        router = {"dynamo_component": "backend", "dynamo_namespace": "dynamo", "router_id": str(number), "worker_id": f"{number:x}"}
        self._values: dict[str, Values] = {}
        self._histograms: dict[str, Histogram] = {}
        self._add({"model": model}, families.FRONTEND_COUNTERS, families.FRONTEND_GAUGES, families.FRONTEND_HISTOGRAMS)
        self._add({"dp_rank": "0"}, {}, families.OF_WORKER_GAUGES, {})
        self._add(router, families.ROUTER_COUNTERS, {}, families.ROUTER_HISTOGRAMS)
        self._ended: Counter[str] = Counter()
        self._output_tokens = 0

    def observe(self, request: Request) -> None:
        """Takes a request of the model that ended into account."""
        self._ended[request.outcome] += 1
        self._output_tokens += request.output_tokens
        seen = self._histograms
        seen["dynamo_frontend_request_duration_seconds"].observe(request.e2e_s)
        seen["dynamo_frontend_input_sequence_tokens"].observe(request.prompt_tokens)
        seen["dynamo_component_router_kv_hit_rate"].observe(request.cached_tokens / request.prompt_tokens)
        if request.outcome == "error":
            return
        seen["dynamo_frontend_output_sequence_tokens"].observe(request.output_tokens)
        seen["dynamo_frontend_cached_tokens"].observe(request.cached_tokens)
        seen["dynamo_frontend_time_to_first_token_seconds"].observe(request.ttft_s)
        itl_ms = dynamo_legs.itl_ms(request)
        if itl_ms is not None:
            seen["dynamo_frontend_inter_token_latency_seconds"].observe(itl_ms / 1e3, request.output_tokens - 1)
        if request.prefill_at is not None:
            seen["dynamo_component_router_kv_transfer_estimated_latency_seconds"].observe(dynamo_legs.handed_s(request))

    def text(self, workers: Sequence[Reading]) -> str:
        """The page at a moment at which its workers were looked at."""
        values = self._values
        self._count()
        self._level(workers)
        for reading in workers:
            labels = {
                "worker_id": str(dynamo_legs.worker_id(reading.of.replica)),
                "worker_type": "prefill" if reading.of.role == "prefill" else "decode",
            }
            values["dynamo_frontend_worker_active_decode_blocks"].set(reading.kv_used_blocks, **labels)
            values["dynamo_frontend_worker_active_prefill_tokens"].set(0, **labels)
        of_all: list[Values | Histogram] = [*values.values(), *self._histograms.values()]
        return "".join([line for family in of_all for line in family.text("")])

    def _add(self, labels: dict[str, str], counters: families.Families, gauges: families.Families, histograms: families.Buckets) -> None:
        self._values |= {name: Values("counter", name, what, labels) for name, what in counters.items()}
        self._values |= {name: Values("gauge", name, what, labels) for name, what in gauges.items()}
        for name, (what, edges) in histograms.items():
            self._histograms[name] = Histogram(name, what, labels, edges)
            self._histograms[name].seen()

    def _count(self) -> None:
        values = self._values
        values["dynamo_frontend_output_tokens"].set(self._output_tokens)
        for outcome, count in self._ended.items():
            labels = {"error_type": ERROR_TYPE.get(outcome, ""), "status": STATUS[outcome]}
            values["dynamo_frontend_requests"].set(count, **ENDPOINT, **labels)
        for name in families.ROUTER_COUNTERS:
            values[name].set(self._ended.total())

    def _level(self, workers: Sequence[Reading]) -> None:
        values = self._values
        queued = sum(reading.waiting for reading in workers)
        active = sum(reading.running for reading in workers)
        values["dynamo_frontend_requests_started"].set(self._ended.total() + queued + active, **ENDPOINT)
        values["dynamo_frontend_active_requests"].set(active)
        values["dynamo_frontend_inflight_requests"].set(active + queued)
        values["dynamo_frontend_queued_requests"].set(queued)
        values["dynamo_frontend_router_queue_pending_requests"].set(0, **POLICY)
        values["dynamo_frontend_model_ready"].set(1)
        if workers:
            values["dynamo_frontend_model_kv_cache_block_size"].set(workers[0].of.kv_block_tokens)
            values["dynamo_frontend_model_total_kv_blocks"].set(workers[0].of.kv_blocks)
