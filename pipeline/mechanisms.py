"""A lever in, the columns of `requests` out that it moves by what it is: its arms differ in them whether it pays or not."""

from __future__ import annotations

from collections.abc import Collection

_DRAFTS = ("draft_tokens", "accepted_tokens", "verify_steps", "accepted_by_position")
_CACHE = ("cached_tokens", "cache_class")
_PAIR = ("prefill_replica", "decode_replica", "kv_transfer_bytes", "kv_transfer_s", "link_peak_bytes_per_s")
MECHANISMS: dict[str, tuple[str, ...]] = {
    "speculation": _DRAFTS,
    "prefix_caching": _CACHE,
    "cache_affinity": _CACHE,
    "weight_quantization": (),
    "activation_quantization": (),
    "kv_quantization": (),
    "tensor_parallel": ("topology", "gpus"),
    "expert_parallel": ("topology", "gpus"),
    "pipeline_parallel": ("topology", "gpus"),
    "disaggregation": (*_PAIR, "topology", "gpus"),
    "pool_ratio": (*_PAIR, "topology", "gpus"),
    "conditional_prefill": _PAIR,
}


def own(defining: Collection[str]) -> dict[str, str]:
    """The columns that are the own of levers by which sets are told apart, with the lever of each; `defining` are keys of `explain`."""
    levers = {name for kind, _, name in (key.partition(".") for key in defining) if kind in ("lever", "arm")}
    return {column: lever for lever, columns in MECHANISMS.items() if lever in levers for column in columns}
