"""What a scenario's numbers, names and truths may be, beyond what their types say: complaints out, each with its key."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any

import msgspec

from demo.scenarios.layout import Pool, Scenario, Truth

NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
LARGEST = 1e15
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "burst_factor": (1e-3, 100),
        "burst_every_hours": (0, 1000),
        "chunk_tokens": (1, 1e6),
        "control_every": (2, 1000),
        "decode": (1, 64),
        "draft_step_s": (0, 10),
        "every_hours": (0.01, 1000),
        "factor": (1e-3, 1e3),
        "from_hour": (-1000, 1000),
        "frontend_s": (0, 60),
        "groups": (1, 1000),
        "input_tokens": (1, 1e7),
        "kv_block_tokens": (1, 1e6),
        "kv_tokens": (1, 1e12),
        "link_bytes_per_s": (1e3, 1e13),
        "link_latency_s": (0, 60),
        "lookup_s_per_block": (0, 1),
        "max_sequences": (1, 1e5),
        "max_tokens": (1, 1e6),
        "n": (1, 1e9),
        "output_median_tokens": (1, 1e6),
        "output_sigma": (0, 5),
        "over_hours": (0, 1000),
        "overhead_s": (0, 10),
        "pool_sd": (0, 1),
        "prefill": (1, 64),
        "repeats": (1, 100),
        "replica_sd": (0, 1),
        "requests_per_s": (1e-6, 1000),
        "scrape_s": (1, 3600),
        "step_overhead_s": (0, 10),
        "system_tokens": (0, 1e7),
        "temperatures": (0, 100),
        "tenant_skew": (0, 100),
        "turn_tokens": (1e-3, 1e7),
        "turns": (1, 1e6),
        "within_hours": (0.01, 1000),
    }
)
LEVERS = (
    "speculation", "prefix_caching", "cache_affinity", "weight_quantization", "activation_quantization", "kv_quantization",
    "tensor_parallel", "expert_parallel", "pipeline_parallel", "disaggregation", "pool_ratio", "conditional_prefill",
)  # fmt: skip
ACTIONS = (
    "keep", "disable", "shorten", "reduce", "restore_precision", "lower_degree", "collapse", "add_prefill", "add_decode", "raise_threshold",
    "lower_threshold", "hold", "widen", "enable",
)  # fmt: skip
SEGMENT_KEYS = ("model", "hardware", "topology", "input_bucket", "temperature_bucket", "batch_bucket", "tenant")


def complaints(scenario: Scenario) -> Iterator[str]:
    """What cannot be played, or would say something wrong."""
    yield from _numbers(msgspec.to_builtins(scenario), "", "")
    if NAME.fullmatch(scenario.name) is None:
        yield f"name: {scenario.name!r}: letters, digits, '.', '_' and '-' are taken, 60 at most"
    for place, pool in enumerate(scenario.pools):
        yield from (f"pools[{place}].{complaint}" for complaint in _of_pool(pool))
    for place, truth in enumerate(scenario.truth):
        yield from (f"truth[{place}].{complaint}" for complaint in _of_truth(truth, scenario))
    yield from _of_disorder(scenario)
    suites = Counter((one.suite, one.pool) for one in scenario.evaluations)
    yield from (f"evaluations: {suite!r} of {pool!r} stands twice" for (suite, pool), count in suites.items() if count > 1)


def _numbers(value: Any, where: str, key: str) -> Iterator[str]:
    """Every number that is not finite, or beyond the bounds of its key."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _numbers(inner, f"{where}.{name}" if where else name, name)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            yield from _numbers(inner, f"{where}[{place}]", key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        least, most = BOUNDS.get(key, (-LARGEST, LARGEST))
        if not (math.isfinite(value) and least <= value <= most):
            yield f"{where}: {value:g}: a number from {least:g} to {most:g} is taken"


def _of_pool(pool: Pool) -> Iterator[str]:
    if NAME.fullmatch(pool.name) is None:
        yield f"name: {pool.name!r}: letters, digits, '.', '_' and '-' are taken, 60 at most"
    if pool.lever is not None and pool.lever not in LEVERS:
        yield f"lever: {pool.lever!r} is unknown; known: {', '.join(LEVERS)}"
    if pool.lever in pool.settings:
        yield f"settings: {pool.lever!r} is the pool's lever, whose setting is `setting`"
    if pool.control is not None and pool.setting == pool.control_setting:
        yield f"control_setting: {pool.setting!r} is the setting of the treated arm too"


def _of_truth(truth: Truth, scenario: Scenario) -> Iterator[str]:
    questions = sorted(
        one.name.removesuffix(".sql") for one in (resources.files("demo") / "questions").iterdir() if one.name.endswith(".sql")
    )
    for key, value, known in (("lever", truth.lever, LEVERS), ("action", truth.action, ACTIONS), ("question", truth.question, questions)):
        if value not in known:
            yield f"{key}: {value!r} is unknown; known: {', '.join(known)}"
    yield from (f"segment: {key!r} is unknown; known: {', '.join(SEGMENT_KEYS)}" for key in truth.segment if key not in SEGMENT_KEYS)
    models = sorted({pool.model for pool in scenario.pools})
    if "model" in truth.segment and truth.segment["model"] not in models:
        yield f"segment.model: {truth.segment['model']!r} is unknown; known: {', '.join(models)}"
    if truth.from_hour is not None and not 0 < truth.from_hour < scenario.hours:
        yield f"from_hour: {truth.from_hour:g}: a number from 0 to hours, {scenario.hours:g}, is taken"


def _of_disorder(scenario: Scenario) -> Iterator[str]:
    disorder = scenario.disorder
    if disorder.abort_share + disorder.error_share > 1:
        yield f"disorder: abort_share and error_share are {disorder.abort_share + disorder.error_share:g} together: at most 1 is taken"
    for replica in disorder.clock_ahead_s:
        pool, _, number = replica.rpartition("-")
        if pool not in [one.name for one in scenario.pools] or not number.isdecimal():
            yield f"disorder.clock_ahead_s: {replica!r} is no replica: a pool's name, '-' and a number"
