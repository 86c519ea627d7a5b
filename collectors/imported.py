"""Canonical requests in (objects with any columns of `requests` that name a request and its start), rows of `imported_requests` out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa

from collectors.json_words import json_word

MICROSECOND = pa.timestamp("us", "UTC")
TEXT_MAP = pa.map_(pa.string(), pa.string())
LIMIT_ROWS, LIMIT_TEXT_CHARACTERS = 100_000, 4096
FIRST_YEAR, LAST_YEAR = 1971, 2199
MAPS, LISTS = ("levers", "arms", "provenance"), ("flags", "accepted_by_position")
Whole = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]


class ImportedError(ValueError):
    """A row is no canonical request; says which field, what came and what is taken."""


class ImportedRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request as the table `requests` has it: times in seconds, tokens, bytes, ratios 0 to 1. Only the id and the start are needed."""

    request_id: str
    started_at: datetime
    trace_id: str | None = None
    ended_at: datetime | None = None
    engine: str | None = None
    engine_version: str | None = None
    gateway: str | None = None
    model: str | None = None
    tenant: str | None = None
    route: str | None = None
    replica: str | None = None
    prefill_replica: str | None = None
    decode_replica: str | None = None
    outcome: Literal["ok", "error", "aborted", "unknown"] = "unknown"
    finish_reason: str | None = None
    prompt_tokens: Whole | None = None
    cached_tokens: Whole | None = None
    output_tokens: Whole | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    ttft_s: float | None = None
    e2e_s: float | None = None
    tpot_s: float | None = None
    draft_tokens: Whole | None = None
    accepted_tokens: Whole | None = None
    verify_steps: Whole | None = None
    accepted_by_position: list[Whole] | None = None
    kv_transfer_bytes: Whole | None = None
    kv_transfer_s: float | None = None
    link_peak_bytes_per_s: float | None = None
    batch_at_admission: Whole | None = None
    concurrency: Whole | None = None
    queue_depth: Whole | None = None
    kv_usage: float | None = None
    preemptions: Whole | None = None
    hardware: str | None = None
    topology: str | None = None
    gpus: Whole | None = None
    temperature: float | None = None
    samples_n: Whole | None = None
    levers: dict[str, str] | None = None
    arms: dict[str, str] | None = None
    input_bucket: str | None = None
    output_bucket: str | None = None
    cache_class: Literal["hit", "partial", "miss"] | None = None
    batch_bucket: str | None = None
    concurrency_bucket: str | None = None
    temperature_bucket: str | None = None
    provenance: dict[str, str] | None = None
    flags: list[str] | None = None
    kv_block_tokens: Whole | None = None
    gpu_s: float | None = None
    kv_link_s: float | None = None
    evicted_tokens: Whole | None = None
    gpu_memory_used_bytes: Whole | None = None
    gpu_memory_free_bytes: Whole | None = None
    collective_bus_bytes_per_s: float | None = None
    communication_fraction: float | None = None
    chunks: Whole | None = None
    chunk_gap_p50_s: float | None = None
    chunk_gap_p95_s: float | None = None
    chunk_gap_p99_s: float | None = None
    chunk_gap_max_s: float | None = None
    stall_s: float | None = None


FIELDS = tuple(field.name for field in msgspec.structs.fields(ImportedRequest))
_KINDS: dict[str, pa.DataType] = {
    **dict.fromkeys(MAPS, TEXT_MAP),
    **dict.fromkeys(("started_at", "ended_at"), MICROSECOND),
    "flags": pa.list_(pa.string()),
    "accepted_by_position": pa.list_(pa.int64()),
}


def is_request(item: object) -> bool:
    """Whether a parsed JSON object names a request and its start as the table does."""
    return isinstance(item, dict) and "started_at" in item and ("request_id" in item or "id" in item)


def checked(row: Any) -> ImportedRequest:
    """A row as a request. Numbers may be text, as in CSV; maps and lists JSON text; a time without an offset is UTC.

    Raises:
        ImportedError: names the field, what came and what is taken.
    """
    if not isinstance(row, dict):
        msg = f"an object is taken, not {json_word(row)}"
        raise ImportedError(msg)
    said = {
        ("request_id" if key == "id" and "request_id" not in row else key): value for key, value in row.items() if value not in (None, "")
    }
    try:
        for name in (*MAPS, *LISTS):
            if isinstance(said.get(name), str):
                said[name] = msgspec.json.decode(said[name])
        made = msgspec.convert(said, ImportedRequest, strict=False)
    except (ValueError, RecursionError, TypeError) as error:
        raise ImportedError(str(error)) from error
    _check_values(made)
    return msgspec.structs.replace(made, started_at=_in_utc(made.started_at), ended_at=_ended(made))


def taken(body: bytes) -> tuple[list[ImportedRequest], list[str]]:
    """The requests of a JSON array, and why others in it cannot be taken.

    Raises:
        ImportedError: the body is no such array.
    """
    try:
        rows = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        msg = f"not JSON: {error}"
        raise ImportedError(msg) from error
    if not isinstance(rows, list) or len(rows) > LIMIT_ROWS:
        msg = f"an array of at most {LIMIT_ROWS:,} requests is taken"
        raise ImportedError(msg)
    found: list[ImportedRequest] = []
    wrong: list[str] = []
    for row in rows:
        try:
            found.append(checked(row))
        except ImportedError as error:
            wrong.append(str(error)[:200])
    return found, wrong


def rows(said: Sequence[ImportedRequest], record: int, sender: str, received_unix_nano: int) -> pa.Table:
    """Rows of `imported_requests`, with the number of their record in `arrival`."""
    columns = {name: pa.array([_value(name, getattr(one, name)) for one in said], _kind(name)) for name in FIELDS}
    columns["sender"] = pa.array([sender] * len(said), pa.string())
    columns["received_at"] = pa.array([received_unix_nano // 1000] * len(said), pa.int64()).cast(MICROSECOND)
    columns["arrival"] = pa.array([record] * len(said), pa.int64())
    return pa.table(columns)


def _kind(name: str) -> pa.DataType:
    if name in _KINDS:
        return _KINDS[name]
    said = str(ImportedRequest.__annotations__[name])
    return pa.float64() if "float" in said else pa.int64() if "Whole" in said else pa.string()


def _value(name: str, value: Any) -> Any:
    return sorted(value.items()) if name in MAPS and value is not None else value


def with_trace_ids(requests: pa.Table) -> pa.Table:
    """The rows with a trace id each: where none was stated one made of the request's id and its start."""
    ids = zip(*(requests[name].to_pylist() for name in ("trace_id", "request_id", "started_at")), strict=True)
    made = pa.array([said or hashlib.blake2b(f"{one} {at.isoformat()}".encode(), digest_size=16).hexdigest() for said, one, at in ids])
    return requests.set_column(requests.schema.get_field_index("trace_id"), "trace_id", made.cast(pa.string()))


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _ended(made: ImportedRequest) -> datetime:
    if made.ended_at is not None:
        return _in_utc(made.ended_at)
    return _in_utc(made.started_at) + timedelta(seconds=made.e2e_s if made.e2e_s is not None and 0 <= made.e2e_s < 1e7 else 0.0)


def _check_values(made: ImportedRequest) -> None:
    for name in FIELDS:
        value = getattr(made, name)
        if isinstance(value, float) and not math.isfinite(value):
            msg = f"{name} = {value} is no number"
            raise ImportedError(msg)
        if isinstance(value, str) and len(value) > LIMIT_TEXT_CHARACTERS:
            msg = f"{name} is longer than {LIMIT_TEXT_CHARACTERS} characters"
            raise ImportedError(msg)
        if isinstance(value, datetime) and not FIRST_YEAR <= value.year <= LAST_YEAR:
            msg = f"{name} = {value.isoformat()}: a time from {FIRST_YEAR} to {LAST_YEAR} is taken"
            raise ImportedError(msg)
    if made.trace_id is not None and (len(made.trace_id) != 32 or any(digit not in "0123456789abcdef" for digit in made.trace_id)):
        msg = f"trace_id = {made.trace_id!r}: 32 hex digits in lower case are taken"
        raise ImportedError(msg)
