"""Rows of load: what a request met where it ran, memory of cache and GPU, and how evenly replicas are used."""

from __future__ import annotations

from pipeline.metric_row import Metric

_SCRAPE = "scrape the replica's /metrics ([[scrape]]) or send it as OTLP metrics"


def _met(name: str, title: str, unit: str, formula: str, source: str, missing: str, traps: tuple[str, ...] = ()) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="mean",
        unit=unit,
        better="neither",
        numerator=name,
        bounds=(0.0, 1.0) if unit == "ratio" else (0.0, None),
        formula=formula,
        source=source,
        traps=traps,
        missing=missing,
    )


def _spread(name: str, title: str, numerator: str, what: str, traps: tuple[str, ...]) -> Metric:
    return Metric(
        name=name,
        title=title,
        kind="spread",
        unit="ratio",
        better="lower",
        numerator=numerator,
        across="replica",
        bounds=(1.0, None),
        formula=f"the most of any replica / the mean of replicas, of {what}; 1 is even",
        source="engine spans; the replica from leverwatch.replica or its kin",
        traps=("a replica that got nothing is not seen, and not in the mean", *traps),
        missing="the replica or the tokens are unknown",
    )


ROWS = (
    _met(
        "batch_at_admission",
        "Batch at admission",
        "requests",
        "mean batch of the replica when the request was admitted",
        "engine span where it carries the batch, else its gauge of running requests",
        "the batch is not on this engine's span",
    ),
    _met(
        "concurrency",
        "Concurrency",
        "requests",
        "mean of the requests in flight on the replica when a request started, itself included",
        "spans that overlap",
        "requests have no replica",
        ("a sampled trace shows a part of the requests in flight",),
    ),
    _met(
        "queue_depth",
        "Queue depth",
        "requests",
        "mean of the requests that waited on the replica when one was admitted",
        "engine span, else the engine's gauge of waiting requests",
        _SCRAPE,
        ("as requests saw it: busy times weigh more than they do over time",),
    ),
    Metric(
        name="prefill_queue_growth",
        title="Growth of the prefill queue",
        kind="slope",
        unit="requests/s",
        better="lower",
        numerator="queue_depth",
        across="replica",
        bounds=(None, None),
        formula="slope of queue_depth over started_at, each replica about its own means: sum of cross products / sum of squares",
        source="as queue_depth",
        traps=("over a long period ups and downs cancel: ask by hour",),
        missing=_SCRAPE,
    ),
    _met(
        "kv_usage",
        "KV cache usage",
        "ratio",
        "mean share of KV blocks in use when a request was admitted",
        "engine span, else vllm:kv_cache_usage_perc (0 to 1 despite its name), sglang:token_usage",
        _SCRAPE,
        ("cached blocks that nobody holds count as free: usage is not how full the prefix cache is",),
    ),
    Metric(
        name="preemptions_per_1k_requests",
        title="Preemptions per 1,000 requests",
        kind="mean",
        unit="1/1k requests",
        better="lower",
        numerator="preemptions * 1000",
        formula="1000 * sum(preemptions) / requests where they are known",
        source="engine span, else the engine's counter (preemptions, retractions, pauses), shared by exposure",
        traps=("a preempted request computes its prompt again, and may count as cached what it computed itself (vllm#25780)",),
        missing=_SCRAPE,
    ),
    Metric(
        name="evicted_tokens_per_request",
        title="Evicted tokens per request",
        kind="mean",
        unit="tokens",
        better="lower",
        numerator="evicted_tokens",
        formula="sum(evicted_tokens) / requests where they are known",
        source="the engine's counter, shared by exposure",
        traps=("eviction of what nobody asks for again costs nothing: see skipped_of_attainable beside it",),
        missing=_SCRAPE,
    ),
    Metric(
        name="gpu_memory_headroom",
        title="GPU memory headroom",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator="gpu_memory_free_bytes",
        denominator="gpu_memory_used_bytes + gpu_memory_free_bytes",
        bounds=(0.0, 1.0),
        formula="sum(free) / sum(used + free) over requests, as of admission",
        source="DCGM (DCGM_FI_DEV_FB_FREE, DCGM_FI_DEV_FB_USED)",
        traps=("engines take most memory for the KV cache at start: kv_usage says how much of that is in use",),
        missing="scrape the DCGM exporter of the replica's GPUs, with the replica's name ([[scrape]])",
    ),
    _spread(
        "affinity_load_spread",
        "Spread of computed prompt tokens",
        "prompt_tokens - cached_tokens",
        "sum(prompt_tokens - cached_tokens)",
        ("affinity won the median TTFT and lost p99 and throughput by its imbalance (llm-d, August 2026)",),
    ),
    _spread("request_load_spread", "Spread of requests", "1", "requests", ()),
    _spread("output_load_spread", "Spread of output tokens", "output_tokens", "sum(output_tokens)", ()),
)
