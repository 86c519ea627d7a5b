"""A request in, every column of it for reading out: its value, where that came from, what is usual, and why a missing one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dashboards import theme
from queries import described

GROUPS: dict[str, tuple[str, ...]] = {
    "Times": ("queue_s", "prefill_s", "ttft_s", "decode_s", "tpot_s", "e2e_s", "started_at", "ended_at"),
    "Tokens": ("prompt_tokens", "cached_tokens", "output_tokens", "cache_class", "input_bucket", "output_bucket"),
    "Who": (
        "request_id", "trace_id", "engine", "engine_version", "gateway", "model", "tenant", "route", "replica", "prefill_replica",
        "decode_replica", "hardware", "topology", "gpus",
    ),
    "Levers": ("levers", "arms"),
    "Outcome": ("outcome", "finish_reason", "temperature", "temperature_bucket", "samples_n", "flags", "is_settled"),
    "Drafts": ("draft_tokens", "accepted_tokens", "verify_steps", "accepted_by_position"),
    "Transfer": ("kv_transfer_bytes", "kv_transfer_s", "kv_link_s", "link_peak_bytes_per_s"),
    "Load": (
        "batch_at_admission", "batch_bucket", "concurrency", "concurrency_bucket", "queue_depth", "kv_usage", "kv_block_tokens",
        "preemptions", "evicted_tokens",
    ),
    "Stream": ("chunks", "chunk_gap_p50_s", "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s", "stall_s"),
    "GPU and collectives": (
        "gpu_s", "gpu_memory_used_bytes", "gpu_memory_free_bytes", "collective_bus_bytes_per_s", "communication_fraction",
    ),
}  # fmt: skip
FAR = 2.0  # times the median: shown as such
NOBODY = "nobody said it"
FOLLOWS = "it follows from a column that is missing"
OTHERWISE = {
    "gateway": "no span of a gateway came with it",
    **dict.fromkeys(("input_bucket", "output_bucket", "cache_class", "batch_bucket", "concurrency_bucket", "temperature_bucket"), FOLLOWS),
}
EMPTY = {"flags": "none"}  # what an empty list or map says
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of a request: its value as stored and for reading, or why it is missing; and the median of its company."""

    name: str
    what: str
    unit: str
    value: Any
    text: str
    source: str
    usual: str
    of_usual: float | None
    why: str

    @property
    def is_far(self) -> bool:
        """Whether it is far above what is usual."""
        return self.of_usual is not None and self.of_usual >= FAR

    @property
    def number(self) -> str:
        """The stored number; empty where it is none."""
        return repr(self.value) if isinstance(self.value, int | float) and not isinstance(self.value, bool) else ""


def columns(request: Row, company: Row, remedies: Mapping[str, str]) -> dict[str, list[Column]]:
    """The columns by what they tell."""
    words, sources = described.words()["requests"], request["provenance"] or {}
    return {title: [_column(name, request, company, words, sources, remedies) for name in names] for title, names in GROUPS.items()}


def _column(name: str, request: Row, company: Row, words: Row, sources: Row, remedies: Mapping[str, str]) -> Column:
    value, usual = request[name], company.get(name)
    unit = described.unit(name, "DOUBLE") if isinstance(value, float) or name in company else described.unit(name, "BIGINT")
    is_there = value is not None and (name in EMPTY or value not in ({}, []))
    ratio = value / usual if isinstance(value, int | float) and usual else None
    return Column(
        name=name,
        what=words.get(name, ""),
        unit=unit,
        value=value,
        text=shown(value, unit) or EMPTY.get(name, "") if is_there else "no data",
        source=sources.get(name, "") if is_there else "",
        usual="" if usual is None else shown(usual, unit),
        of_usual=ratio,
        why="" if is_there else remedies.get(name) or OTHERWISE.get(name, NOBODY),
    )


def shown(value: Any, unit: str) -> str:
    """A value of a column for reading."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {held}" for name, held in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(value, unit)
    return str(value)


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return theme.size(value)
    if unit in ("s", "ratio", "bytes/s"):
        return theme.shown(value, unit)
    text = theme.count(value) if isinstance(value, int) else theme.shown(value, "")
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text
