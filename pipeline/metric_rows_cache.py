"""Rows of the prefix cache: what share of prompts was not computed again, and what that saved."""

from __future__ import annotations

from pipeline.metric_row import Metric

_MISSING = "cached tokens are not on this engine's span; a response tap brings them"
_ATTAINABLE = "floor((prompt_tokens - 1) / kv_block_tokens) * kv_block_tokens"
_BLOCK_MISSING = "the cache's block size: set leverwatch.kv_block_tokens"
_ATTAINABLE_FORMULA = "floor((prompt_tokens - 1) / kv_block_tokens) * kv_block_tokens"

ROWS = (
    Metric(
        name="skipped_token_ratio",
        title="Skipped prompt tokens",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator="cached_tokens",
        denominator="prompt_tokens",
        known_when="prompt_tokens > 0",
        bounds=(0.0, 1.0),
        formula="sum(cached_tokens) / sum(prompt_tokens), where both are known",
        source="SGLang span; vLLM response body (--enable-prompt-tokens-details)",
        traps=(
            "recompute after preemption once counted as a hit: 32 % were told of random prompts (vllm#25780)",
            "a decode leg may report prompt - 1 cached tokens (vllm#43370): the prefill leg is read",
            "it follows the block size: 0 % against 49 % on the same traffic (vllm#54607); compare skipped_of_attainable",
            "SGLang's gauge cache_hit_rate is that of the last prefill batch, a sample and no average: its token counters are read",
        ),
        missing=_MISSING,
    ),
    Metric(
        name="cache_hit_rate",
        title="Cache hits",
        kind="share",
        unit="ratio",
        better="higher",
        numerator="cached_tokens > 0",
        bounds=(0.0, 1.0),
        formula="requests with any cached token / requests where cached tokens are known",
        source="as skipped_token_ratio",
        traps=("near 1 with a shared system prompt while few tokens are skipped: never a premise on its own",),
        missing=_MISSING,
    ),
    Metric(
        name="attainable_skip_ceiling",
        title="Attainable skip ceiling",
        kind="ratio",
        unit="ratio",
        better="neither",
        numerator=_ATTAINABLE,
        denominator="prompt_tokens",
        known_when="prompt_tokens > 0 and kv_block_tokens > 0",
        bounds=(0.0, 1.0),
        formula=f"sum({_ATTAINABLE_FORMULA}) / sum(prompt_tokens): what a cache that holds everything could skip",
        source="prompt tokens of the span; the block size from leverwatch.kv_block_tokens or the engine's cache configuration",
        traps=("the last token is always computed, and the last, partial block is never cached: 1 is out of reach",),
        missing=_BLOCK_MISSING,
    ),
    Metric(
        name="skipped_of_attainable",
        title="Skipped of attainable",
        kind="ratio",
        unit="ratio",
        better="higher",
        numerator="cached_tokens",
        denominator=_ATTAINABLE,
        known_when="prompt_tokens > 0 and kv_block_tokens > 0",
        formula=f"sum(cached_tokens) / sum({_ATTAINABLE_FORMULA}): comparable between block sizes",
        source="as skipped_token_ratio and attainable_skip_ceiling",
        traps=("above 1 where the engine reuses parts of a block (TensorRT-LLM's partial reuse) or the block size stated is too large",),
        missing=f"cached tokens (a response tap brings them) or {_BLOCK_MISSING}",
    ),
    Metric(
        name="prefill_avoided_s",
        title="Prefill time avoided",
        kind="product",
        unit="s",
        better="higher",
        numerator="cached_tokens",
        times="prefill_s",
        denominator="prompt_tokens - cached_tokens",
        known_when="prompt_tokens > cached_tokens",
        formula="mean(cached_tokens) * sum(prefill_s) / sum(prompt_tokens - cached_tokens): per request, at the cost of computed tokens",
        source="as skipped_token_ratio; prefill time of the engine's span",
        traps=(
            "gross of what a hit costs: looking up, loading back from host or disk, moving; where the engine counts these as prefill, "
            "the cost of a token is too high by them",
            "a tier that is slower than computing loses while this looks well (vllm#53395: 95 % of tokens hit, 6 % throughput)",
        ),
        missing="prefill time or cached tokens are unknown",
    ),
    Metric(
        name="prefill_tokens_per_s",
        title="Prefill speed",
        kind="ratio",
        unit="tokens/s",
        better="higher",
        numerator="prompt_tokens - cached_tokens",
        denominator="prefill_s",
        known_when="prefill_s > 0",
        formula="sum(prompt_tokens - cached_tokens) / sum(prefill_s): tokens computed in a second of prefill, per request",
        source="engine span",
        traps=("requests of one batch share its time: a replica's speed is higher by the batch",),
        missing="prefill time or cached tokens are unknown",
    ),
)
