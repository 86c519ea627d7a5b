"""Request rows in, the same rows without impossible values out, and one quarantine row for each that was taken out."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Trap:
    """A way for a value to be impossible: the columns it makes unusable, when, and why."""

    columns: tuple[str, ...]
    when: pl.Expr
    reason: str


# The most that one request can have. Beyond it a sender's number is noise, and sums of such numbers overflow.
MOST: dict[float, tuple[str, ...]] = {
    1e7: ("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s", "kv_transfer_s"),
    1e9: ("prompt_tokens", "cached_tokens", "output_tokens", "draft_tokens", "accepted_tokens", "verify_steps"),
    1e15: ("kv_transfer_bytes", "link_peak_bytes_per_s"),
    1e6: ("batch_at_admission", "queue_depth", "preemptions", "gpus", "samples_n"),
    100.0: ("temperature", "kv_usage"),
}
# What was worked out from a value is as unusable as the value.
DERIVED: dict[str, tuple[str, ...]] = {"decode_s": ("tpot_s",), "output_tokens": ("tpot_s",)}


def _negative(column: str) -> Trap:
    reason = f"{column} is negative: clocks were stepped, or -1 stands for missing (TensorRT-LLM)"
    return Trap(_with_derived(column), pl.col(column) < 0, reason)


def _beyond(column: str, most: float) -> Trap:
    value = pl.col(column).cast(pl.Float64)
    reason = f"{column} is no finite number up to {most:g}: no request has more"
    return Trap(_with_derived(column), value.is_nan() | (value > most), reason)


def _with_derived(column: str) -> tuple[str, ...]:
    return (column, *DERIVED.get(column, ()))


TRAPS: tuple[Trap, ...] = (
    *(trap for most, columns in MOST.items() for column in columns for trap in (_negative(column), _beyond(column, most))),
    Trap(
        ("cached_tokens",),
        pl.col("cached_tokens") > pl.col("prompt_tokens"),
        "more prompt tokens skipped than the prompt has (counted again after preemption: vllm#25780)",
    ),
    Trap(
        ("accepted_tokens", "draft_tokens", "verify_steps"),
        pl.col("accepted_tokens") > pl.col("draft_tokens"),
        "more draft tokens accepted than drafted (SGLang once counted the bonus token: sglang PR 11572)",
    ),
    Trap(
        ("kv_transfer_bytes",),
        pl.col("kv_transfer_bytes") > pl.col("kv_transfer_s") * pl.col("link_peak_bytes_per_s"),
        "KV transfer faster than its link (sglang#31877)",
    ),
)


QUARANTINE = {
    "request_id": pl.String(),
    "trace_id": pl.String(),
    "started_at": pl.Datetime("us", "UTC"),
    "column": pl.String(),
    "value": pl.String(),
    "reason": pl.String(),
}


def quarantined(requests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(requests with impossible values null and flagged `quarantined`, rows of `quarantine`)."""
    taken = [pl.DataFrame(schema=QUARANTINE)]
    for trap in TRAPS:
        caught = requests.filter(trap.when)
        if caught.is_empty():
            continue
        taken.extend(_taken(caught, column, trap.reason) for column in trap.columns)
        nulls = [pl.when(trap.when).then(None).otherwise(pl.col(column)).alias(column) for column in trap.columns]
        flag = pl.when(trap.when.fill_null(False)).then(pl.col("flags").list.concat(pl.lit(["quarantined"])))
        requests = requests.with_columns(*nulls, flag.otherwise(pl.col("flags")).list.unique(maintain_order=True).alias("flags"))
    return requests, pl.concat(taken)


def _taken(caught: pl.DataFrame, column: str, reason: str) -> pl.DataFrame:
    value = pl.col(column).cast(pl.String).alias("value")
    caught = caught.filter(pl.col(column).is_not_null())
    return caught.select("request_id", "trace_id", "started_at", pl.lit(column).alias("column"), value, pl.lit(reason).alias("reason"))
