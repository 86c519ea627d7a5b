"""A column of `requests`, an engine and what is seen of a replica in; why the column is missing and what brings it out."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from collectors.dialects import deployment, shipped, why_missing

# The columns that matter, by what they tell.
GROUPS: dict[str, tuple[str, ...]] = {
    "who": ("model", "engine_version", "tenant", "route", "replica", "hardware", "topology", "gpus"),
    "levers": ("levers", "arms"),
    "tokens": ("prompt_tokens", "cached_tokens", "output_tokens"),
    "times": ("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s"),
    "drafts": ("draft_tokens", "accepted_tokens", "verify_steps", "accepted_by_position"),
    "stream": ("chunks", "chunk_gap_p50_s", "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s", "stall_s"),
    "transfer": ("prefill_replica", "decode_replica", "kv_transfer_bytes", "kv_transfer_s", "kv_link_s", "link_peak_bytes_per_s"),
    "collectives": ("collective_bus_bytes_per_s", "communication_fraction"),
    "load": ("batch_at_admission", "concurrency", "queue_depth", "kv_usage", "kv_block_tokens", "preemptions", "evicted_tokens"),
    "gpu": ("gpu_s", "gpu_memory_used_bytes", "gpu_memory_free_bytes"),
    "answer": ("outcome", "finish_reason", "temperature", "samples_n"),
}
COLUMNS = tuple(column for columns in GROUPS.values() for column in columns)
TAP = "response_tap"
# The signals of samples that say, of a replica, what a column would say of a request.
IN_SAMPLES: dict[str, tuple[str, ...]] = {
    "cached_tokens": ("cached_tokens_total", "cached_tokens"),
    "draft_tokens": ("draft_tokens_total",),
    "accepted_tokens": ("accepted_tokens_total",),
    "verify_steps": ("verify_steps_total",),
    "kv_transfer_s": ("kv_transfer_s",),
    "kv_transfer_bytes": ("kv_transfer_bytes",),
    "batch_at_admission": ("running_requests",),
    "queue_depth": ("queue_depth",),
    "kv_usage": ("kv_usage",),
    "kv_block_tokens": ("kv_block_tokens",),
    "preemptions": ("preemptions_total",),
}
OF_DECODING = ("output_tokens", "decode_s", "tpot_s", "decode_replica")
_OF_NOBODY = {
    "tpot_s": "needs decode_s, and output_tokens of 2 or more",
    "concurrency": "worked out of requests that overlap on a replica when they are settled: needs replica, and spans of all of them",
    "gpu_s": "a request's part of its replica's time, worked out when it is settled: needs gpus and replica",
    "kv_link_s": "a transfer's part of its link's time: needs kv_transfer_s, prefill_s and both replicas",
    "evicted_tokens": "only where the engine counts them (SGLang): scrape it ([[scrape]])",
    "gpu_memory_used_bytes": "scrape NVIDIA's DCGM exporter, with replica_from or labels that name the replica ([[scrape]])",
    "gpu_memory_free_bytes": "scrape NVIDIA's DCGM exporter, with replica_from or labels that name the replica ([[scrape]])",
    "collective_bus_bytes_per_s": "no engine measures it: scrape or load the NCCL inspector's output of the replica",
    "communication_fraction": "no engine measures it: load the NCCL inspector's records of the replica",
    "levers": "set leverwatch.lever.<name> = its setting in OTEL_RESOURCE_ATTRIBUTES or in the registry",
    "arms": "set leverwatch.arm.<name> = treated or control in OTEL_RESOURCE_ATTRIBUTES or in the registry: gains need both",
}


@dataclass(frozen=True, slots=True)
class Heard:
    """What is heard of a replica beside its requests: if the tap speaks for it, samples' names by signal, if it has a name.

    `active` are the signals whose samples are above 0; `is_half`: of its prefill/decode pairs only the prefill leg is known; `late` are
    the columns whose samples came when some requests were settled already.
    """

    tap: bool = False
    samples: tuple[tuple[str, str], ...] = ()
    active: frozenset[str] = frozenset()
    is_named: bool = True
    is_half: bool = False
    late: frozenset[str] = frozenset()


NOTHING = Heard()
LATE = (
    "its samples came after these requests were settled, 2 minutes after they began: scrape or send samples at least once a minute and no "
    "later than spans, and load a recording's samples before its spans"
)


def remedy(column: str, engine: str, heard: Heard = NOTHING, *, some: bool = False) -> str:
    """Why requests of an engine lack a column (where `some`: some of them), and what brings it: one sentence, never empty."""
    if heard.is_half and column in OF_DECODING:
        return "only the prefill legs are known: trace the decode pool too"
    if column in heard.late:
        return LATE
    if column in _OF_NOBODY:
        return _OF_NOBODY[column]
    if column == "replica":
        if not heard.is_named:
            return "no engine's span says who served: turn the engine's own spans on"
        first, second, *_ = deployment().replica.keys
        return f"the sender's address stands in its place: set {first} or {second} in OTEL_RESOURCE_ATTRIBUTES"
    said = _of_tap(column, some=some) if heard.tap else ""
    said = said or _of_dialect(column, engine, some=some)
    if "response tap" in said and not heard.tap:
        said += "; `leverwatch tap` prints the tap"
    scraped = says(column, heard)
    if scraped and "scrape" in said:
        return f"no request says it; `samples` has it of the replica ({scraped})"
    return f"{said}; `samples` has it of the replica ({scraped})" if scraped else said


def said_of_one() -> dict[str, list[str]]:
    """Column -> the engines that say it only where one answer was asked for."""
    found: dict[str, list[str]] = {}
    for dialect in shipped():
        for column in dialect.of_one:
            found.setdefault(column, []).append(dialect.speaks_for or dialect.dialect)
    return found


def of_several(columns: Iterable[str], engine: str) -> str:
    """Why an engine does not say these columns where several answers were asked for; empty where it does."""
    of_one = next((dialect.of_one for dialect in shipped() if engine in (dialect.dialect, dialect.speaks_for) and dialect.of_one), {})
    return "; ".join(dict.fromkeys(of_one[column] for column in columns if column in of_one))


def says(column: str, heard: Heard) -> str:
    """The name of the samples that say of a replica what a column says of a request; empty where none came."""
    return next((name for signal, name in heard.samples if signal in IN_SAMPLES.get(column, ())), "")


def sends(engine: str) -> str:
    """Which share of requests an engine sends spans of, and what sets it; empty where its dialect does not say."""
    return next((dialect.sampling for dialect in shipped() if dialect.dialect == engine), "")


def _of_tap(column: str, *, some: bool) -> str:
    """What is in the way where the tap speaks already."""
    reads, cannot = _reads(TAP), why_missing(TAP)
    if column not in reads:
        return ""
    key = "draft_tokens" if column in GROUPS["drafts"] else column
    own = next(dialect.cannot for dialect in shipped() if dialect.dialect == TAP)
    said = f"the tap speaks, and {'not every' if some else 'no'} answer said it"
    return f"{said}: {cannot[key]}" if key in own else said


def _of_dialect(column: str, engine: str, *, some: bool) -> str:
    keys = _reads(engine).get(column, ())
    if not engine:  # nobody knows which software served: what holds for any
        return deployment().cannot[column]
    own = any(column in dialect.cannot for dialect in shipped() if engine in (dialect.dialect, dialect.speaks_for))
    if own or not keys or column in deployment().signals:
        return why_missing(engine)[column]
    if some:
        return f"some requests lack {_listed(keys)} (failed, aborted, not streamed, or of another version)"
    return f"it is read from {_listed(keys)}, and no request said that: is the sender's version one that is read (docs/engines.md)?"


@functools.cache
def _reads(engine: str) -> dict[str, tuple[str, ...]]:
    """Signal -> what an engine's dialects read it from: attributes, events, stages."""
    found: dict[str, tuple[str, ...]] = {}
    for dialect in shipped() if engine else ():
        if engine not in (dialect.dialect, dialect.speaks_for):
            continue
        for signal, sources in dialect.signals.items():
            found[signal] = (*found.get(signal, ()), *(source.key for source in sources))
        for event in dialect.events:
            found[event.signal] = (*found.get(event.signal, ()), *(f"event {name}" for name in event.names))
        for rule in dialect.spans:
            if rule.gives:
                found[rule.gives] = (*found.get(rule.gives, ()), *(f"span {name}" for name in rule.names))
    return {signal: tuple(dict.fromkeys(keys)) for signal, keys in found.items()}


def _listed(keys: tuple[str, ...], most: int = 3) -> str:
    return " or ".join(keys[:most]) + (" or others" if len(keys) > most else "")
