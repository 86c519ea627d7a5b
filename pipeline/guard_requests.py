"""The traps that one request's own values show, as rows: what cannot be true of one request, and whose mistake makes it so."""

from __future__ import annotations

import polars as pl

from pipeline.traps import Trap

SLACK_SHARE, SLACK_S = 0.01, 0.002  # two clocks read apart
VLLM_BLOCK_TOKENS = 16  # every block size of vLLM is a multiple of it

_OURS = pl.when((pl.col("output_tokens") >= 2) & (pl.col("decode_s") > 0)).then(pl.col("decode_s") / (pl.col("output_tokens") - 1))
_LENGTH = pl.when(pl.col("verify_steps") > 0).then(1 + pl.col("accepted_tokens") / pl.col("verify_steps"))


def _longer(part: str, whole: str) -> pl.Expr:
    return pl.col(part) > pl.col(whole) * (1 + SLACK_SHARE) + SLACK_S


def _near(value: pl.Expr, other: pl.Expr, share: float) -> pl.Expr:
    return (value / other - 1).abs() < share


def _within_the_whole(part: str, columns: tuple[str, ...], why: str) -> Trap:
    return Trap(f"{part}_above_e2e", columns, _longer(part, "e2e_s"), f"{part} is longer than the whole request: {why}")


_CACHE = (
    Trap(
        "cached_above_prompt",
        ("cached_tokens",),
        pl.col("cached_tokens") > pl.col("prompt_tokens"),
        "more prompt tokens skipped than the prompt has: what was computed before a preemption counts again",
        "vllm#25780",
    ),
    Trap(
        "cached_by_decode_leg",
        ("cached_tokens",),
        (pl.col("engine") == "vllm")
        & pl.col("prefill_replica").is_not_null()
        & (pl.col("prefill_replica") != pl.col("decode_replica"))
        & (pl.col("cached_tokens") >= pl.col("prompt_tokens") - 1)
        & (pl.col("cached_tokens") % VLLM_BLOCK_TOKENS != 0),
        "the decode leg calls cached what the prefill leg had just computed and sent: all of the prompt but its last token",
        "vllm#43370",
    ),
    Trap(
        "cached_below_block",
        ("cached_tokens",),
        (pl.col("engine") == "vllm") & (pl.col("cached_tokens") > 0) & (pl.col("prompt_tokens") < pl.col("kv_block_tokens")),
        "cached tokens of a prompt that fills no KV block: another cache, or another unit, is counted",
        "vllm#54607",
        "suspect",
    ),
)
_SPECULATION = (
    Trap(
        "accepted_above_drafted",
        ("accepted_tokens", "draft_tokens", "verify_steps"),
        pl.col("accepted_tokens") > pl.col("draft_tokens"),
        "more draft tokens accepted than drafted: the bonus token counts as a draft",
        "sglang#11572",
    ),
    Trap(
        "accepted_off_by_one",
        ("accepted_tokens", "accepted_by_position"),
        (pl.col("engine") == "sglang")
        & (pl.col("verify_steps") > 0)
        & (pl.col("output_tokens") - 1 > pl.col("accepted_tokens") + pl.col("verify_steps") + 2 + pl.col("preemptions").fill_null(0)),
        "more tokens came than the steps and the accepted drafts make: n-gram speculation reports one draft a step too few",
        "sglang#24965",
    ),
    Trap(
        "more_steps_than_tokens",
        ("verify_steps",),
        (pl.col("outcome") == "ok") & (pl.col("verify_steps") > pl.col("output_tokens") + 2),
        "more verify steps than output tokens: each step gives one at least",
    ),
    Trap(
        "positions_rise",
        ("accepted_by_position",),
        pl.col("accepted_by_position").list.diff().list.max() > 0,
        "more steps accepted a later draft than an earlier one: a histogram was read as counts by position",
    ),
    Trap(
        "positions_above_steps",
        ("accepted_by_position",),
        pl.col("accepted_by_position").list.max() > pl.col("verify_steps"),
        "more steps accepted a draft than there were steps",
    ),
    Trap(
        "positions_contradict_accepted",
        ("accepted_by_position",),
        (pl.col("accepted_by_position").list.len() > 0) & (pl.col("accepted_by_position").list.sum() != pl.col("accepted_tokens")),
        "accepted drafts by position do not add up to the accepted drafts: one of the two is off by one a step",
        "sglang#24965",
    ),
)
_TRANSFER = (
    Trap(
        "transfer_above_link",
        ("kv_transfer_bytes", "kv_transfer_s"),
        pl.col("kv_transfer_bytes") > pl.col("kv_transfer_s") * pl.col("link_peak_bytes_per_s"),
        "KV transfer faster than its link: the bytes of all chunks over the time of the last one",
        "sglang#31877",
    ),
)
_TIMES = (
    Trap(
        "e2e_below_ttft",
        ("e2e_s", "ttft_s"),
        _longer("ttft_s", "e2e_s"),
        "the first token came after the end: two clocks, or a stepped one",
    ),
    _within_the_whole("queue_s", ("queue_s",), "a clock was stepped"),
    _within_the_whole("prefill_s", ("prefill_s",), "a clock was stepped"),
    _within_the_whole("decode_s", ("decode_s", "tpot_s"), "the engine's clock and the server's are mixed (LMDeploy)"),
    _within_the_whole("chunk_gap_max_s", ("chunk_gap_max_s",), "gaps of another request are counted"),
    _within_the_whole("stall_s", ("stall_s",), "stalls of another request are counted"),
    Trap(
        "chunk_gaps_unordered",
        ("chunk_gap_p50_s", "chunk_gap_p95_s", "chunk_gap_p99_s", "chunk_gap_max_s"),
        (pl.col("chunk_gap_p50_s") > pl.col("chunk_gap_p95_s") * (1 + SLACK_SHARE))
        | (pl.col("chunk_gap_p95_s") > pl.col("chunk_gap_p99_s") * (1 + SLACK_SHARE))
        | (pl.col("chunk_gap_p99_s") > pl.col("chunk_gap_max_s") * (1 + SLACK_SHARE)),
        "a higher quantile of the gaps between chunks lies below a lower one",
    ),
)
_PER_TOKEN = (
    Trap(
        "tpot_of_one_token",
        ("tpot_s",),
        (pl.col("output_tokens") <= 1) & pl.col("tpot_s").is_not_null(),
        "a time per output token after the first, of a request without a second token",
        "MLPerf LoadGen",
    ),
    Trap(
        "tpot_is_a_step",
        ("tpot_s",),
        (_LENGTH >= 1.15) & _near(pl.col("tpot_s") / _OURS, _LENGTH, 0.1) & ~_near(pl.col("tpot_s"), _OURS, 0.05),
        "tpot_s is the time of a verify step, which gives several tokens: too long by the acceptance length",
        "sglang#12064",
    ),
    Trap(
        "tpot_with_first_token",
        ("tpot_s",),
        _near(pl.col("tpot_s"), pl.col("e2e_s") / pl.col("output_tokens"), 0.01) & ~_near(pl.col("tpot_s"), _OURS, 0.02),
        "tpot_s is the whole request's time over all its tokens: a formula of no other tool, with the time to the first token in it",
        "guidellm#1144",
    ),
    Trap(
        "tpot_over_all_tokens",
        ("tpot_s",),
        _near(pl.col("tpot_s"), pl.col("decode_s") / pl.col("output_tokens"), 0.002) & ~_near(pl.col("tpot_s"), _OURS, 0.01),
        "tpot_s is the decode time over all tokens, the first among them (LiteLLM, TGI)",
    ),
    Trap(
        "tpot_contradicts",
        ("tpot_s",),
        ~_near(pl.col("tpot_s"), _OURS, 0.1),
        "tpot_s is not decode_s / (output_tokens - 1), which it stands for",
    ),
)
_TOLD_TWICE = (
    Trap(
        "body_contradicts_prompt",
        ("prompt_tokens",),
        (pl.col("outcome") == "ok") & (pl.col("body_prompt_tokens") != pl.col("prompt_tokens")),
        "span and response body count the prompt differently: one of them is of another request, or of one of several",
        severity="suspect",
    ),
    Trap(
        "body_contradicts_output",
        ("output_tokens",),
        (pl.col("outcome") == "ok")
        & ((pl.col("body_output_tokens") - pl.col("output_tokens")).abs() > pl.max_horizontal(1, pl.col("output_tokens") * SLACK_SHARE)),
        "span and response body count the output differently: one of them is of another request, or of one of several",
        severity="suspect",
    ),
)
_RATIOS = (
    Trap(
        "kv_usage_above_one",
        ("kv_usage",),
        pl.col("kv_usage") > 1.001,
        "more than all of the KV cache in use: percent were read as a ratio",
    ),
    Trap(
        "communication_above_one",
        ("communication_fraction",),
        pl.col("communication_fraction") > 1.02,
        "more than all of the time spent in communication: overlapping collectives were added up",
    ),
)

REQUEST_TRAPS: tuple[Trap, ...] = (*_CACHE, *_SPECULATION, *_TRANSFER, *_TIMES, *_PER_TOKEN, *_TOLD_TWICE, *_RATIOS)
