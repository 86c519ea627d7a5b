"""The spans of each request in; which of them has authority, who served it, and one value per signal out, with the source that gave it."""

from __future__ import annotations

import polars as pl

from pipeline.prompt_samples import OF_PROMPT, by_prompt, with_samples
from pipeline.traps import PAIRS

# What is asked first for a value: the leg with authority, the engine's other legs, its stages, its log, the body, gateway, client.
SOURCES = ("authority", "engine", "stage", "log", "body", "gateway", "client")
SUMMED = ("output_tokens", "draft_tokens", "accepted_tokens", "verify_steps", "kv_transfer_bytes", "preemptions")
TEXTS = (
    "request_id", "engine_version", "model", "tenant", "route", "prefill_replica", "decode_replica", "outcome", "finish_reason",
    "hardware", "topology",
)  # fmt: skip
NUMBERS = (
    "prompt_tokens", "cached_tokens", "output_tokens", "queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "draft_tokens",
    "accepted_tokens", "verify_steps", "kv_transfer_bytes", "kv_transfer_s", "link_peak_bytes_per_s", "batch_at_admission",
    "queue_depth", "kv_usage", "preemptions", "gpus", "temperature", "samples_n", "kv_block_tokens", "chunks", "chunk_gap_p50_s",
    "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s", "stall_s",
)  # fmt: skip
SIGNALS = (*TEXTS, *NUMBERS, "accepted_by_position")
# The prefill leg of a pair knows these: it is where the request waited, was admitted and was prefilled. The decode leg may report
# prompt - 1 cached tokens (vllm#43370), and as its prefill the loading of the keys and values.
OF_PREFILL = ("cached_tokens", "queue_s", "prefill_s", "batch_at_admission")
# The gateway saw all of a request that moved from one engine to another; the last engine took what was done for a part of the prompt.
OF_WHOLE = ("prompt_tokens", "output_tokens")
READ_STEPS = 2  # the first token of a leg that took a read prompt takes one step, which is about as long as its others
DRAFTED_TOKENS = 4  # that a step with drafts is taken to give where nobody counts steps
RANKS = {"engine": 0, "gateway": 2, "client": 3, "log": 4, "body": 5}


def with_source(legs: pl.DataFrame) -> pl.DataFrame:
    """Names each leg's `source`: `authority` for the leg whose word counts first, else its role.

    Authority has the engine before gateway, client, log and body; of a pair the decode leg; of several attempts the last that answered.
    The samples of one prompt, and the prompts of one call, have it together.
    """
    legs = with_samples(legs)
    rank = pl.col("role").replace_strict(RANKS, default=9, return_dtype=pl.Int64) + (pl.col("phase") == "prefill").fill_null(False)
    first = (
        legs.with_columns(rank.alias("rank"), pl.col("output_tokens").is_null().alias("silent"))
        .sort("group", "rank", "silent", "ended_at", "row", descending=[False, False, False, True, False])
        .unique("group", keep="first", maintain_order=True)
        .select(
            "group", *(pl.col(c).alias(f"first_{c}") for c in ("role", "phase", "join_key", "replica", "row", "started_at", "ended_at"))
        )
    )
    legs = legs.join(first, on="group", how="left")
    is_sample = (
        (pl.col("role") == "engine")
        & (pl.col("samples_n").fill_null(2) >= 2)
        & (pl.col("first_role") == "engine")
        & pl.col("phase").eq_missing(pl.col("first_phase"))
        & (~pl.col("is_told_alone") | pl.col("replica").eq_missing(pl.col("first_replica")))
        & ((pl.col("join_key") == pl.col("first_join_key")) | (pl.col("samples_n") >= 2)).fill_null(False)
    )
    has_authority = is_sample | (pl.col("row") == pl.col("first_row"))
    return legs.with_columns(pl.when(has_authority).then(pl.lit("authority")).otherwise(pl.col("role")).alias("source"))


def identified(legs: pl.DataFrame) -> pl.DataFrame:
    """One row per request: who spoke, where and when it was served, its marks, and what its flags are made of."""
    of_authority = pl.col("source") == "authority"
    is_head = pl.col("row") == pl.col("group")
    engine_leg = pl.col("role") == "engine"
    served = engine_leg & (of_authority | pl.col("phase").is_null() | (pl.col("phase") == "decode"))
    other = engine_leg & ~of_authority & pl.col("phase").eq_missing(pl.col("first_phase"))
    beside = (pl.col("started_at") < pl.col("first_ended_at")) & (pl.col("ended_at") > pl.col("first_started_at"))
    same = (pl.col("join_key") == pl.col("first_join_key")).fill_null(False)
    timed = engine_leg | of_authority
    prefill, decode = (engine_leg & (pl.col("phase") == name).fill_null(False) for name in ("prefill", "decode"))
    legs = legs.with_columns((_has_read() if legs["is_of_pool"].any() else pl.lit(False)).alias("has_read"))
    return legs.group_by("group", maintain_order=True).agg(
        _first("trace_id", of_authority),
        _first("span_id", is_head).alias("head_span_id"),
        _first("dialect", of_authority & (pl.col("role") != "body")).alias("engine"),
        pl.col("first_role").first().alias("authority_role"),
        pl.coalesce(_first("dialect", pl.col("role") == "gateway"), _first("dialect", pl.col("role") == "client")).alias("front"),
        pl.coalesce(
            _first("replica", engine_leg & of_authority),
            _first("replica", served),
            _first("replica", of_authority & (pl.col("role") == "body")),  # where no engine speaks, the tap beside it does
        ).alias("served_by"),
        _first("replica", prefill).alias("prefilled_by"),
        _first("replica", decode).alias("decoded_by"),
        (pl.col("replica") == pl.col("sender")).filter(served | (of_authority & (pl.col("role") == "body"))).any().alias("named_by_sender"),
        pl.col("started_at").filter(timed).min(),
        pl.col("ended_at").filter(timed).max(),
        _first("started_at", of_authority).alias("authority_started_at"),
        _first("started_at", prefill).alias("prefill_started_at"),
        (pl.col("ended_at").filter(decode).max() < pl.col("started_at").filter(prefill).min()).alias("legs_contradict"),
        (pl.col("duration_s").filter(timed) < 0).any().alias("ran_backwards"),
        pl.col("outside_s").filter(engine_leg).max(),
        pl.col("duration_s").filter(of_authority).max().alias("span_s"),
        (pl.col("status") == "error").filter(is_head | of_authority).any().alias("failed"),
        (pl.col("status") == "error").filter(pl.col("role") == "stage").any().alias("stage_failed"),
        of_authority.sum().alias("authority_legs"),
        ((prefill.any() != decode.any()) & ~pl.col("has_read").any()).alias("half_a_pair"),
        (other & same & beside).any().alias("told_twice"),
        ((other & ~(same & beside)).any() | (pl.col("retried") > 0).any()).alias("tried_again"),
        pl.coalesce(_first("levers", of_authority), _first("levers", pl.lit(True))).alias("levers"),
        pl.coalesce(_first("arms", of_authority), _first("arms", pl.lit(True))).alias("arms"),
    )  # fmt: skip


def _has_read() -> pl.Expr:
    """Whether a leg on a decode worker read its prompt itself, so that no other leg is missing.

    It has a stage that read, or took longer to its first token than steps take. Where little was to be read it takes no longer: nothing
    tells it from half a pair. A leg that calls itself one of a pair, or whose gateway names who read, is one.
    """
    of_decode_pool = pl.col("is_of_pool") & (pl.col("phase") == "decode")
    steps = pl.col("verify_steps").max().over("group")
    per_step_s = pl.when(steps > 0).then(pl.col("decode_s") / steps)
    per_token_s = pl.when(pl.col("output_tokens") >= 2).then(pl.col("decode_s") / (pl.col("output_tokens") - 1))
    drafts = pl.col("levers").cast(PAIRS).list.eval(pl.element().struct.field("key") == "speculation").list.any().fill_null(False)
    step_s = pl.coalesce(per_step_s, per_token_s * pl.when(drafts).then(DRAFTED_TOKENS).otherwise(1))
    is_long = (pl.col("role") == "engine") & (step_s > 0) & (pl.col("prefill_s") > READ_STEPS * step_s)
    has_stage = (pl.col("role") == "stage") & pl.col("prefill_s").is_not_null()
    return of_decode_pool & (is_long.fill_null(False) | has_stage) & pl.col("prefill_replica").is_null().all().over("group")


def chosen(legs: pl.DataFrame, column: str) -> pl.DataFrame:
    """One signal per request, and the source that gave it: (group, column, column_from)."""
    order = pl.col("source").replace_strict({name: place for place, name in enumerate(SOURCES)}, default=9, return_dtype=pl.Int64)
    if column in OF_PREFILL:
        of_prefill = (pl.col("phase") == "prefill") & pl.col("role").is_in(["engine", "stage"])
        order = pl.when(of_prefill).then(order - len(SOURCES)).otherwise(order)
    if column in OF_WHOLE:
        moved = (pl.col("retried") > 0).any().over("group") & (pl.col("role") == "gateway")
        order = pl.when(moved).then(-1).otherwise(order)
    if column == "outcome":  # a stage speaks of one attempt
        order = pl.when(pl.col("source") == "stage").then(len(SOURCES)).otherwise(order)
    known = legs.with_columns(order.alias("order")).filter(pl.col(column).is_not_null())
    said = pl.col("source")
    if legs["inferred"].null_count() < len(legs):
        said = pl.when(pl.col("inferred").str.split(",").list.contains(column)).then(pl.lit("derived")).otherwise(said)
    known = known.select("group", "row", "phase", "source", "order", "prompt", column, said.alias("said"))
    best = known.filter(pl.col("order") == pl.col("order").min().over("group"))
    if column in OF_PROMPT:
        best = by_prompt(best, column)
    return best.group_by("group").agg(_value(column).alias(column), pl.col("said").first().alias(f"{column}_from"))


def _value(column: str) -> pl.Expr:
    """Of several legs of one source: the samples' sum, the first of the stages, else the last."""
    of_authority, of_stage = (pl.col("source").first() == name for name in ("authority", "stage"))
    by_row = pl.col(column).sort_by("row")
    if column in TEXTS or column == "accepted_by_position":
        return by_row.last()
    value = pl.when(of_authority).then(pl.col(column).max()).when(of_stage).then(by_row.first()).otherwise(by_row.last())
    if column in SUMMED:  # summed as reals: whole numbers near 2^63 would wrap to plausible ones, and not be quarantined
        total = pl.col(column).cast(pl.Float64).sum().clip(-(2.0**62), 2.0**62).cast(pl.Int64)
        value = pl.when(of_authority | of_stage).then(total).otherwise(by_row.last())
    return value


def _first(column: str, where: pl.Expr) -> pl.Expr:
    """The first value there is of the legs that are meant."""
    return pl.col(column).filter(where & pl.col(column).is_not_null()).first()
