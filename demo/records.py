"""The request record: what the simulated fleet hands to its emitters, one tuple a request. Seconds, tokens; None is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_args, get_type_hints

import polars as pl


class Request(NamedTuple):
    """One served request, as the replica that served it knows it.

    `started_ns` is the arrival, in Unix nanoseconds. `parent_span_id` is the caller's span. `replica` produced the tokens;
    `prefill_replica` is set where another one read the prompt. `speculation` is the lever's setting in the pool, `speculation_arm` the arm
    of this request; the three counts of speculation are None where it was not on.
    """

    started_ns: int
    trace_id: bytes
    parent_span_id: bytes
    engine: str
    model: str
    hardware: str
    topology: str
    gpus: int
    replica: str
    prefill_replica: str | None
    speculation: str | None
    speculation_arm: str | None
    temperature: float
    top_p: float
    max_tokens: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    finish_reason: str
    frontend_s: float
    queue_s: float
    prefill_s: float
    kv_transfer_s: float | None
    decode_s: float
    ttft_s: float
    e2e_s: float
    draft_tokens: int | None
    accepted_tokens: int | None
    verify_steps: int | None
    batch: float


_KINDS = {int: pl.Int64, float: pl.Float64, str: pl.String, bytes: pl.Binary}


def schema() -> dict[str, type[pl.DataType]]:
    """The columns of a frame of requests, in the record's order."""
    hints = get_type_hints(Request)
    return {name: next(_KINDS[kind] for kind in get_args(hint) or (hint,) if kind in _KINDS) for name, hint in hints.items()}


def rows(frame: pl.DataFrame) -> Iterator[Request]:
    """The records of such a frame."""
    return map(Request._make, frame.select(Request._fields).iter_rows())
