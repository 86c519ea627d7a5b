"""Request rows in, the same rows without impossible values out, and one quarantine row for each that was taken out."""

from __future__ import annotations

import polars as pl

from pipeline.guard_requests import REQUEST_TRAPS
from pipeline.traps import PAIRS, SeriesTrap, Trap

# The most that one request can have. Beyond it a sender's number is noise, and sums of such numbers overflow.
MOST: dict[float, tuple[str, ...]] = {
    1e7: ("queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s", "kv_transfer_s"),
    1e9: ("prompt_tokens", "cached_tokens", "output_tokens", "draft_tokens", "accepted_tokens", "verify_steps"),
    1e15: ("kv_transfer_bytes", "link_peak_bytes_per_s"),
    1e6: ("batch_at_admission", "queue_depth", "preemptions", "gpus", "samples_n"),
    100.0: ("temperature", "kv_usage"),
}
# The same of what is joined when a request's period has ended, and of what a response tap sees.
MOST_JOINED: dict[float, tuple[str, ...]] = {
    1e7: ("kv_link_s", "chunk_gap_p50_s", "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s", "stall_s"),
    1e9: ("gpu_s", "evicted_tokens", "chunks"),
    1e15: ("gpu_memory_used_bytes", "gpu_memory_free_bytes", "collective_bus_bytes_per_s"),
    1e6: ("kv_block_tokens", "concurrency"),
    100.0: ("communication_fraction",),
}
# What was worked out from a value is as unusable as the value.
DERIVED: dict[str, tuple[str, ...]] = {"decode_s": ("tpot_s",), "output_tokens": ("tpot_s",)}
BUCKETS: dict[str, str] = {
    "prompt_tokens": "input_bucket",
    "output_tokens": "output_bucket",
    "cached_tokens": "cache_class",
    "batch_at_admission": "batch_bucket",
    "concurrency": "concurrency_bucket",
    "temperature": "temperature_bucket",
}
FLAG = "trap:"  # in `flags`, before the name of the trap that a request fell into


def _missing_as_minus_one(column: str) -> Trap:
    reason = f"{column} is negative: -1 stands for missing"
    return Trap(f"{column}_minus_one", _with_derived(column), pl.col(column) == -1, reason, "TensorRT-LLM#5897")


def _negative(column: str) -> Trap:
    if column == "tpot_s":
        reason = "tpot_s is negative: decode time over no tokens but the first, less one"
        return Trap("tpot_s_negative", ("tpot_s",), pl.col(column) < 0, reason, "MLPerf LoadGen")
    return Trap(f"{column}_negative", _with_derived(column), pl.col(column) < 0, f"{column} is negative: clocks were stepped")


def _beyond(column: str, most: float) -> Trap:
    value = pl.col(column).cast(pl.Float64)
    reason = f"{column} is no finite number up to {most:g}: no request has more"
    return Trap(f"{column}_beyond", _with_derived(column), value.is_nan() | (value > most), reason)


def _with_derived(column: str) -> tuple[str, ...]:
    return (column, *DERIVED.get(column, ()))


def _bounds(most: float, column: str) -> tuple[Trap, ...]:
    sentinel = (_missing_as_minus_one(column),) if column in ("queue_s", "ttft_s") else ()
    return (*sentinel, _negative(column), _beyond(column, most))


TRAPS: tuple[Trap, ...] = (
    *(trap for table in (MOST, MOST_JOINED) for most, columns in table.items() for column in columns for trap in _bounds(most, column)),
    *REQUEST_TRAPS,
)


QUARANTINE = {
    "request_id": pl.String(),
    "trace_id": pl.String(),
    "started_at": pl.Datetime("us", "UTC"),
    "column": pl.String(),
    "value": pl.String(),
    "reason": pl.String(),
    "trap": pl.String(),
    "upstream": pl.String(),
    "replica": pl.String(),
}


def quarantined(requests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(requests with impossible values null and flagged `quarantined` and `trap:<name>`, rows of `quarantine`).

    A value that is only suspect stays; its request is flagged `suspect` and `trap:<name>`. A trap whose columns are not there is passed.
    """
    taken = [pl.DataFrame(schema=QUARANTINE)]
    for trap in _sprung(requests):
        fell = requests.select(trap.when.fill_null(False)).to_series()
        if not fell.any():  # another trap has taken the value before
            continue
        if trap.severity == "quarantined":
            requests, rows = taken_out(requests, fell, trap.columns, trap)
            taken.extend(rows)
        else:
            requests = flagged(requests, fell, trap.name, trap.severity)
    return requests, pl.concat(taken)


def taken_out(
    requests: pl.DataFrame, fell: pl.Series, columns: tuple[str, ...], trap: Trap | SeriesTrap
) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """(the requests with these columns null and flagged where `fell` is true, rows of `quarantine` for each column)."""
    caught = requests.filter(fell)
    rows = [_taken(caught, column, trap) for column in columns]
    spoiled = [*columns, *(BUCKETS[column] for column in columns if BUCKETS.get(column) in requests.columns)]
    requests = requests.with_columns(pl.when(fell).then(None).otherwise(pl.col(column)).alias(column) for column in spoiled)
    if "provenance" in requests.columns:
        told_of = pl.element().struct.field("key").is_in(list(columns))
        left = pl.col("provenance").cast(PAIRS).list.eval(pl.element().filter(~told_of)).cast(requests.schema["provenance"])
        requests = requests.with_columns(pl.when(fell).then(left).otherwise(pl.col("provenance")).alias("provenance"))
    return flagged(requests, fell, trap.name, trap.severity), rows


def flagged(requests: pl.DataFrame, fell: pl.Series, name: str, severity: str) -> pl.DataFrame:
    """The requests with `severity` and `trap:<name>` among the flags of those that fell in."""
    known = pl.col("flags").fill_null(pl.lit([], pl.List(pl.String)))
    more = known.list.concat(pl.lit([severity, f"{FLAG}{name}"])).list.unique(maintain_order=True)
    return requests.with_columns(pl.when(fell).then(more).otherwise(pl.col("flags")).alias("flags"))


def _sprung(requests: pl.DataFrame) -> list[Trap]:
    """The traps that some request falls into: all are looked at in one pass, since nearly always there is none."""
    if requests.is_empty():
        return []
    nulls = requests.null_count().row(0, named=True)
    held = {column for column, count in nulls.items() if count < len(requests)}
    there = set(requests.columns)
    traps = [
        trap
        for trap in TRAPS
        if there.issuperset(trap.when.meta.root_names()) and there.issuperset(trap.columns) and not held.isdisjoint(trap.columns)
    ]
    if not traps:
        return []
    fell = requests.select(trap.when.any().alias(str(place)) for place, trap in enumerate(traps)).row(0)
    return [trap for trap, some in zip(traps, fell, strict=True) if some]


def _taken(caught: pl.DataFrame, column: str, trap: Trap | SeriesTrap) -> pl.DataFrame:
    caught = caught.filter(pl.col(column).is_not_null())
    replica = pl.col("replica") if "replica" in caught.columns else pl.lit(None, pl.String)
    return caught.select(
        "request_id",
        "trace_id",
        "started_at",
        pl.lit(column).alias("column"),
        _text(caught, column).alias("value"),
        pl.lit(trap.told).alias("reason"),
        pl.lit(trap.name).alias("trap"),
        pl.lit(trap.upstream or None, pl.String).alias("upstream"),
        replica.alias("replica"),
    )


def _text(requests: pl.DataFrame, column: str) -> pl.Expr:
    if isinstance(requests.schema[column], pl.List):
        return pl.concat_str(pl.lit("["), pl.col(column).cast(pl.List(pl.String)).list.join(", "), pl.lit("]"))
    return pl.col(column).cast(pl.String)
