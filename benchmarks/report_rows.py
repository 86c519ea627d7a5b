"""A number of requests in, a data folder that keeps them as a server would out: an hour's requests a part, columns as assembly fills them.

Three kinds of senders take turns: an engine that says everything on its span, one whose cached tokens a response body brings, and a gateway
that knows no cached tokens at all. Lengths and times are log-normal; every request has ids of its own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from queries import fresh_parts

SINCE = datetime(2026, 3, 2, tzinfo=UTC)
HOURS = 48
SHARDS = (
    ("llama-70b", "h100", "tp8"),
    ("llama-70b", "h200", "tp4"),
    ("qwen-32b", "h100", "tp2"),
    ("qwen-32b", "h100", "tp4"),
    ("mixtral-8x22b", "h200", "tp8-ep8"),
    ("mixtral-8x22b", "h100", "pd-1p2d"),
    ("llama-8b", "l40s", "tp1"),
    ("llama-8b", "h100", "tp1"),
)
REPLICAS_A_SHARD = 5
TENANTS = 10
INPUT_BUCKETS = ["<512", "512-2047", "2048-8191", "8192-32767", ">=32768"]
OUTPUT_BUCKETS = ["<64", "64-255", "256-1023", "1024-4095", ">=4096"]
TEMPERATURES, TEMPERATURE_BUCKETS = [0.0, 0.5, 0.7, 1.0], ["<0.3", "0.3-0.8", "0.3-0.8", "0.8-1.2"]
ENGINES = ["sglang", "vllm", "envoy"]
_SPAN = ("prompt_tokens", "output_tokens", "ttft_s", "e2e_s", "temperature")
_ENGINE = (*_SPAN, "queue_s", "prefill_s", "decode_s", "batch_at_admission", "gpus")
SAID = (
    dict.fromkeys((*_ENGINE, "cached_tokens"), "span") | {"tpot_s": "derived"},
    dict.fromkeys(_ENGINE, "span") | {"cached_tokens": "body", "tpot_s": "derived"},
    dict.fromkeys(_SPAN, "span") | {"decode_s": "derived", "tpot_s": "derived"},
)


def fill(folder: Path, count: int) -> None:
    """Stores that many requests, an hour of them at a time."""
    rng = np.random.default_rng(7)
    room = EngineRoom(folder, Config())
    schema = room.store.frame("select * from requests_hot limit 0").to_arrow().schema
    since = int(SINCE.timestamp()) // 3600
    for number in range(HOURS):
        rows = _rows(rng, (since + number) * 3600, count * (number + 1) // HOURS - count * number // HOURS)
        with room.store.write() as transaction:
            fresh_parts.add(room.store, transaction, "requests", _as_stored(rows, schema))
    room.close()


def _as_stored(rows: dict[str, pa.Array], schema: pa.Schema) -> pa.Table:
    """The rows with the columns that an assembly writes; what nobody says is null."""
    length = len(rows["request_id"])
    kinds = {field.name: pa.string() if pa.types.is_large_string(field.type) else field.type for field in schema}
    kinds |= {name: pa.map_(pa.string(), pa.string()) for name in ("levers", "arms", "provenance")}
    kinds |= {"flags": pa.list_(pa.string()), "accepted_by_position": pa.list_(pa.int64())}
    return pa.table({name: rows.get(name, pa.nulls(length, kind)) for name, kind in kinds.items()})


def _rows(rng: np.random.Generator, since_s: int, count: int) -> dict[str, pa.Array]:
    shard, tenant, kind = rng.integers(0, len(SHARDS), count), rng.zipf(1.5, count) % TENANTS, rng.integers(0, len(ENGINES), count)
    temperature = rng.integers(0, len(TEMPERATURES), count)
    prompt, output = _lengths(rng, 7.2, 1.2, 100_000, count), _lengths(rng, 5.3, 0.9, 8_000, count)
    cached = (prompt * rng.beta(0.6, 1.2, count)).astype(np.int64) // 16 * 16
    queue_s, prefill_s = rng.lognormal(-3.5, 1.0, count), (prompt - cached) / rng.lognormal(9.2, 0.3, count)
    ttft_s, decode_s = queue_s + prefill_s, (output - 1) * rng.lognormal(-4.0, 0.3, count)
    started_us = np.sort(rng.integers(0, 3600 * 10**6, count)) + since_s * 10**6
    ended_us = started_us + ((ttft_s + decode_s) * 1e6).astype(np.int64)
    of_engine = kind != ENGINES.index("envoy")
    replica = pa.array([f"{model}-{topology}-{n}" for model, _, topology in SHARDS for n in range(REPLICAS_A_SHARD)])
    return {
        "request_id": _ids(rng, count), "trace_id": _ids(rng, count),
        "engine": _taken(ENGINES, kind), "engine_version": _taken(["0.5.9", "0.16.0", "1.37"], kind),
        "model": _taken([model for model, _, _ in SHARDS], shard), "hardware": _taken([hardware for _, hardware, _ in SHARDS], shard),
        "topology": _taken([topology for _, _, topology in SHARDS], shard), "tenant": _taken([f"team-{n}" for n in range(TENANTS)], tenant),
        "replica": replica.take(pa.array(shard * REPLICAS_A_SHARD + rng.integers(0, REPLICAS_A_SHARD, count))),
        "started_at": _moments(started_us), "ended_at": _moments(ended_us),
        "outcome": _taken(["ok", "error"], (rng.random(count) < 0.01).astype(np.int64)),
        "finish_reason": _taken(["stop", "length"], rng.integers(0, 2, count)),
        "prompt_tokens": pa.array(prompt), "output_tokens": pa.array(output), "cached_tokens": _some(cached, of_engine),
        "queue_s": _some(queue_s, of_engine), "prefill_s": _some(prefill_s, of_engine),
        "ttft_s": pa.array(ttft_s), "decode_s": pa.array(decode_s), "e2e_s": pa.array(ttft_s + decode_s),
        "tpot_s": _some(decode_s / np.maximum(output - 1, 1), output > 1),
        "batch_at_admission": _some(rng.integers(1, 200, count), of_engine), "gpus": _some(np.full(count, 8), of_engine),
        "temperature": pa.array(np.array(TEMPERATURES)[temperature]), "temperature_bucket": _taken(TEMPERATURE_BUCKETS, temperature),
        "input_bucket": _taken(INPUT_BUCKETS, np.digitize(prompt, (512, 2048, 8192, 32768))),
        "output_bucket": _taken(OUTPUT_BUCKETS, np.digitize(output, (64, 256, 1024, 4096))),
        "cache_class": _taken(["miss", "partial", "hit"], np.where(cached * 2 >= prompt, 2, (cached > 0).astype(np.int64))),
        "provenance": pa.array([list(said.items()) for said in SAID], pa.map_(pa.string(), pa.string())).take(pa.array(kind)),
        "is_settled": pa.array(np.full(count, True)),
        "flags": pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(count, np.int64))),
    }  # fmt: skip


def _lengths(rng: np.random.Generator, mean: float, spread: float, most: int, count: int) -> npt.NDArray[np.int64]:
    return np.clip(rng.lognormal(mean, spread, count).astype(np.int64), 1, most)


def _taken(names: list[str], codes: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(names).take(pa.array(codes))


def _some(values: npt.NDArray[np.generic], known: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~known)


def _moments(at_us: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(at_us).cast(pa.timestamp("us", "UTC"))


def _ids(rng: np.random.Generator, count: int) -> pa.Array:
    """Random ids of 32 hex digits."""
    text = pa.py_buffer(rng.bytes(16 * count).hex().encode())
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(np.arange(0, 32 * count + 1, 32, dtype=np.int32)), text])
