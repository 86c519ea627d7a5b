"""The values of a segment's metrics in, the phase that binds and the resource it waits for out, with the numbers that say so.

The phase is the one that takes most of the requests' time. What it waits for: prefill is bound by compute, decode by memory bandwidth,
transfer by communication. Collectives that take half the time make either communication; decode with a full KV cache, or that preempts,
is bound by memory capacity, and at large batches by compute. A queue waits for what holds it up: memory where the cache is full, else the
phase behind it. Free GPU memory is evidence alone: engines take nearly all of it at start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

SHARES = {"queue": "queue_share", "prefill": "prefill_share", "transfer": "transfer_share", "decode": "decode_share"}
NEEDED = ("prefill", "decode")
LOAD = {
    "kv_usage": "KV usage",
    "preemptions_per_1k_requests": "preemptions per 1,000 requests",
    "gpu_memory_headroom": "free GPU memory",
    "communication_fraction": "collectives' share of time",
    "kv_transfer_exposed_share": "exposed share of transfer",
    "batch_at_admission": "batch",
    "prefill_queue_growth": "queue growth per s",
}
INPUTS = (*SHARES.values(), *LOAD)
FULL_CACHE, MOSTLY_COLLECTIVES = 0.9, 0.5
MANY_PREEMPTIONS = 10.0  # per 1,000 requests
LARGE_BATCH = 256.0  # from about here matrix products of one token a sequence have as much to compute as to read
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """What binds a segment. `label` is `phase:resource` or `unknown`; `evidence` is a sentence with the numbers, or what is missing."""

    label: str
    evidence: str


def bottleneck(values: Mapping[str, float | None]) -> Bottleneck:
    """The binding phase and resource of a segment, from the values of the metrics `INPUTS`; those that are not known are left out."""
    shares = {phase: share for phase, name in SHARES.items() if (share := values.get(name)) is not None}
    missing = [SHARES[phase] for phase in NEEDED if phase not in shares]
    if missing:
        return Bottleneck(UNKNOWN, f"not known without {' and '.join(missing)}")
    phase = max(shares, key=lambda name: shares[name])
    resource, why = _resource(phase, shares, values)
    others = ", ".join(f"{name} {100 * share:.0f} %" for name, share in sorted(shares.items(), key=lambda pair: -pair[1]) if name != phase)
    seen = [f"{title} {found:.3g}" for name, title in LOAD.items() if (found := values.get(name)) is not None]
    return Bottleneck(f"{phase}:{resource}", f"{phase} takes {100 * shares[phase]:.0f} % of the time ({others}); {why}{_listed(seen)}")


def with_bottleneck(report: pl.DataFrame) -> pl.DataFrame:
    """A report's rows with their columns `bottleneck` and `bottleneck_evidence` filled; a segment without requests has neither."""
    inputs = [name for name in INPUTS if name in report.columns]
    found = [bottleneck(row) if row["requests"] else None for row in report.select("requests", *inputs).to_dicts()]
    labels = pl.Series("bottleneck", [one.label if one else None for one in found], pl.String)
    return report.with_columns(labels, pl.Series("bottleneck_evidence", [one.evidence if one else None for one in found], pl.String))


def _resource(phase: str, shares: Mapping[str, float], values: Mapping[str, float | None]) -> tuple[str, str]:
    """The resource, and why it is that one."""
    if phase == "queue":
        if _is_full(values):
            return "memory_capacity", "the KV cache is full, so requests wait for room"
        behind = max(NEEDED, key=lambda name: shares[name])
        resource, why = _resource(behind, shares, values)
        return resource, f"behind it {behind} takes most: {why}"
    if phase == "transfer":
        return "communication", "keys and values are moved between replicas"
    if (values.get("communication_fraction") or 0.0) >= MOSTLY_COLLECTIVES:
        return "communication", "collectives take most of the replica's time"
    if phase == "prefill":
        return "compute", "prefill computes the whole prompt at once"
    if _is_full(values):
        return "memory_capacity", "memory for keys and values is used up"
    if (values.get("batch_at_admission") or 0.0) >= LARGE_BATCH:
        return "compute", "at such a batch a step computes as long as it reads"
    return "memory_bandwidth", "each step reads all weights for a token a sequence"


def _is_full(values: Mapping[str, float | None]) -> bool:
    full = (values.get("kv_usage") or 0.0) >= FULL_CACHE
    return full or (values.get("preemptions_per_1k_requests") or 0.0) >= MANY_PREEMPTIONS


def _listed(seen: list[str]) -> str:
    return f" ({', '.join(seen)})" if seen else ""
