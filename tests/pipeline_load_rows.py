"""Requests and samples in a few words, for tests of what a request met where it ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from pipeline import replica_load
from pipeline.segments import Edges
from pipeline.series import counted

T0 = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = pl.Datetime("us", "UTC")
PAIRS = pl.List(pl.Struct({"key": pl.String, "value": pl.String}))
REQUESTS: dict[str, Any] = {
    "request_id": pl.String,
    **dict.fromkeys(("replica", "prefill_replica", "decode_replica"), pl.String),
    **dict.fromkeys(("started_at", "ended_at"), MOMENT),
    **dict.fromkeys(("queue_s", "prefill_s", "ttft_s", "kv_transfer_s"), pl.Float64),
    **dict.fromkeys(("prompt_tokens", "output_tokens", "gpus", "cached_tokens", "draft_tokens", "accepted_tokens"), pl.Int64),
    **dict.fromkeys(("verify_steps", "evicted_tokens", "preemptions", "batch_at_admission", "queue_depth", "concurrency"), pl.Int64),
    **dict.fromkeys(("kv_block_tokens", "gpu_memory_used_bytes", "gpu_memory_free_bytes"), pl.Int64),
    **dict.fromkeys(("kv_usage", "collective_bus_bytes_per_s", "communication_fraction", "gpu_s", "kv_link_s"), pl.Float64),
    **dict.fromkeys(("batch_bucket", "concurrency_bucket", "cache_class", "model"), pl.String),
    "arms": PAIRS,
    "provenance": PAIRS,
}
SAMPLES: dict[str, Any] = {
    "observed_at": MOMENT, "replica": pl.String, "name": pl.String, "labels": PAIRS, "value": pl.Float64, "kind": pl.String,
    "signal": pl.String, "engine": pl.String, "sender": pl.String,
}  # fmt: skip
NONE = pl.DataFrame(schema=SAMPLES)
NOBODY = pl.DataFrame(schema=REQUESTS)


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


def request(since: float, until: float, replica: str | None = "r", **columns: Any) -> dict[str, Any]:
    """A request from one second to another; what is not said is null."""
    return {"request_id": f"{replica}-{since}", "replica": replica, "started_at": at(since), "ended_at": at(until), **columns}


def requests(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame([{name: row.get(name) for name in REQUESTS} for row in rows], schema=REQUESTS)


def series(signal: str, points: Sequence[tuple[float, float]], replica: str = "r", **said: Any) -> pl.DataFrame:
    """One time series: (second, value); `labels` as a dict, `name`, `engine` and `sender` if it matters."""
    labels = [{"key": key, "value": value} for key, value in sorted(said.get("labels", {}).items())]
    kind = "counter" if signal.endswith("_total") else "gauge"
    name, engine, sender = said.get("name", f"vllm:{signal}"), said.get("engine", "vllm"), said.get("sender", "scrape:r")
    rows = [(at(second), replica, name, labels, float(value), kind, signal, engine, sender) for second, value in points]
    return pl.DataFrame(rows, schema=SAMPLES, orient="row")


def joined(made: pl.DataFrame, *samples: pl.DataFrame, around: pl.DataFrame = NOBODY) -> list[dict[str, Any]]:
    """The rows as `replica_load.joined` fills them, provenance as a dict."""
    rows = replica_load.joined(made, around, pl.concat(samples) if samples else NONE, Edges()).to_dicts()
    return [row | {"provenance": {pair["key"]: pair["value"] for pair in row["provenance"]}} for row in rows]


def rows_counted(*samples: pl.DataFrame) -> pl.DataFrame:
    return counted(pl.concat(samples))
