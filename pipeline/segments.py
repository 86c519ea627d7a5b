"""Segments: the levers and arms that are told apart, which keys a judging segment has, the edges of its buckets, its canonical text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

LEVERS = (
    "speculation",
    "prefix_caching",
    "cache_affinity",
    "weight_quantization",
    "activation_quantization",
    "kv_quantization",
    "tensor_parallel",
    "expert_parallel",
    "pipeline_parallel",
    "disaggregation",
    "pool_ratio",
    "conditional_prefill",
)
ARMS = ("treated", "control", "disabled_in_place")
INPUT_EDGES_TOKENS = (512, 2048, 8192, 32768)
OUTPUT_EDGES_TOKENS = (64, 256, 1024, 4096)
BATCH_EDGES = (2, 4, 8, 16, 32, 64, 128, 256)
TEMPERATURE_EDGES = (0.3, 0.8, 1.2)
LIMIT_SEGMENTS = 10_000
JUDGING_KEYS = ("model", "hardware", "topology", "input_bucket")
SPECULATION_KEYS = (*JUDGING_KEYS, "temperature_bucket")
# What these levers change is the topology itself: with it in the segment, the arms would never meet.
TOPOLOGY_LEVERS = ("tensor_parallel", "expert_parallel", "pipeline_parallel", "disaggregation", "pool_ratio")
CELL_SEGMENT_KEYS = (*SPECULATION_KEYS, "tenant")


@dataclass(frozen=True, slots=True)
class Edges:
    """The bucket edges in use, and how many judging segments are told apart. A bucket's name is what it holds: `512-2047`, `>=32768`."""

    input_tokens: tuple[int, ...] = INPUT_EDGES_TOKENS
    output_tokens: tuple[int, ...] = OUTPUT_EDGES_TOKENS
    batch: tuple[int, ...] = BATCH_EDGES
    concurrency: tuple[int, ...] = field(default=BATCH_EDGES)
    temperature: tuple[float, ...] = TEMPERATURE_EDGES
    limit_segments: int = LIMIT_SEGMENTS


def keys_for(lever: str) -> tuple[str, ...]:
    """The judging keys of a lever, all known before the request was treated."""
    if lever in TOPOLOGY_LEVERS:
        return tuple(key for key in JUDGING_KEYS if key != "topology")
    return SPECULATION_KEYS if lever == "speculation" else JUDGING_KEYS


def canonical(segment: Mapping[str, str | None]) -> str:
    """A segment as JSON text: keys sorted, keys without a value left out; `{}` is all traffic."""
    known = {key: value for key, value in segment.items() if value is not None}
    return json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def bucket(column: str, edges: tuple[int, ...]) -> pl.Expr:
    """The bucket of a whole number; null where the number is null."""
    names = [f"<{edges[0]}", *(_between(low, high) for low, high in pairwise(edges)), f">={edges[-1]}"]
    return _cut(column, edges, names)


def temperature_bucket(column: str, edges: tuple[float, ...]) -> pl.Expr:
    """The bucket of a sampling temperature: `<0.3`, `0.3-0.8` (upper edge excluded), `>=1.2`; null where it is null."""
    names = [f"<{edges[0]:g}", *(f"{low:g}-{high:g}" for low, high in pairwise(edges)), f">={edges[-1]:g}"]
    return _cut(column, edges, names)


def cache_class() -> pl.Expr:
    """`hit` from half the prompt on, `partial`, `miss`; null where cached or prompt tokens are unknown."""
    cached, prompt = pl.col("cached_tokens"), pl.col("prompt_tokens")
    return (
        pl.when(cached.is_null() | prompt.is_null() | (prompt <= 0))
        .then(None)
        .when(cached * 2 >= prompt)
        .then(pl.lit("hit"))
        .when(cached > 0)
        .then(pl.lit("partial"))
        .otherwise(pl.lit("miss"))
        .cast(pl.String)
    )


def _between(low: int, high: int) -> str:
    return str(low) if high - low == 1 else f"{low}-{high - 1}"


def _cut(column: str, edges: tuple[float, ...] | tuple[int, ...], names: list[str]) -> pl.Expr:
    value = pl.col(column)
    chain: Any = pl.when(value.is_null()).then(None)
    for edge, name in zip(edges, names, strict=False):
        chain = chain.when(value < edge).then(pl.lit(name))
    cut: pl.Expr = chain.otherwise(pl.lit(names[-1])).cast(pl.String)
    return cut
