"""Rows of cost: GPU seconds and money per token."""

from __future__ import annotations

from pipeline.metric_row import Metric

_COST = "gpu_s * usd_per_gpu_s * 1000000"
_SOURCE = "attributed: a replica's GPU seconds shared among its requests; prices from [[prices]]"
_MISSING = "needs leverwatch.gpus, hardware, and a price for it ([[prices]])"
_TRAPS = (
    "attributed, not metered: a replica's time is split evenly among the requests in flight, and idle time is nobody's",
    "a control at a fraction of the load has worse batches: compare at like load",
)

ROWS = (
    Metric(
        name="gpu_s_per_output_token",
        title="GPU time per output token",
        kind="ratio",
        unit="s/token",
        better="lower",
        numerator="gpu_s",
        denominator="output_tokens",
        formula="sum(gpu_s) / sum(output_tokens)",
        source="attributed: GPUs of the replica times its time, shared among the requests in flight",
        traps=_TRAPS,
        missing="needs leverwatch.gpus and output tokens",
    ),
    Metric(
        name="cost_per_million_output_tokens_usd",
        title="Cost per million output tokens",
        kind="ratio",
        unit="usd/1M tokens",
        better="lower",
        numerator=_COST,
        denominator="output_tokens",
        formula="1e6 * sum(gpu_s * usd_per_gpu_s) / sum(output_tokens)",
        source=_SOURCE,
        traps=_TRAPS,
        missing=_MISSING,
    ),
    Metric(
        name="cost_per_million_tokens_usd",
        title="Cost per million tokens, blended",
        kind="ratio",
        unit="usd/1M tokens",
        better="lower",
        numerator=_COST,
        denominator="0.25 * (prompt_tokens - cached_tokens) + 0.025 * cached_tokens + output_tokens",
        formula="1e6 * sum(gpu_s * usd_per_gpu_s) / sum(0.25 * computed prompt tokens + 0.025 * cached ones + output_tokens)",
        source=_SOURCE,
        traps=(
            "the weights are a convention: a quarter of an output token for a computed prompt token, a tenth of that for a cached one",
            *_TRAPS,
        ),
        missing=_MISSING,
    ),
)
