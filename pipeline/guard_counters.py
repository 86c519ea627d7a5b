"""The traps that a replica's time series show, as rows: what they cannot have counted, and whose mistake makes it so."""

from __future__ import annotations

import polars as pl

from pipeline.traps import SeriesTrap

FEW_TOKENS, FEW_REQUESTS = 5_000, 20  # with less a share says nothing
MUCH_SKIPPED = 0.1
FAR = 0.1  # how far two shares of the same requests may lie apart
LEAST_OF_COUNTED, MOST_OF_COUNTED = 0.6, 1.25  # what requests say over what was counted, where both are of mostly the same requests

_CACHED, _LOOKED_UP, _PROMPT = pl.col("cached_tokens_total"), pl.col("cache_queried_tokens_total"), pl.col("prompt_tokens_total")
_PREEMPTED = pl.col("preemptions_total").fill_null(0)
_EXCESS = _LOOKED_UP - _PROMPT
_MEAN_S = pl.col("series_tpot_s") / pl.col("tpot_s_n")
_OURS_S = pl.col("tpot_mean_s")
_IS_MANY = pl.col("looked_up") >= FEW_TOKENS
_READS_ALL = pl.col("taken_n").fill_null(0) == 0  # a decode worker looks prompts up that came over a link, and has none of them


def _percent(share: pl.Expr) -> pl.Expr:
    return (share * 100).round(1)


def _whole(value: pl.Expr) -> pl.Expr:
    return value.round(0).cast(pl.Int64)


def _looked_up_again(prompts: float, share: float) -> pl.Expr:
    """More looked up than came: beyond what prompts that are just being computed make."""
    return _IS_MANY & (_CACHED > 0) & (share * _PROMPT + prompts * pl.col("prompt_mean").fill_null(0.0) < _EXCESS)


def _near(value: pl.Expr, other: pl.Expr, share: float) -> pl.Expr:
    return (_over(value, other) - 1).abs() < share


def _over(value: pl.Expr, count: pl.Expr) -> pl.Expr:
    """The quotient; null where there is nothing to divide by: 0 / 0 is NaN, which is above every limit."""
    return pl.when(count > 0).then(value / count)


def _is_most(own: pl.Expr, counted: pl.Expr) -> pl.Expr:
    return _over(own, counted).is_between(LEAST_OF_COUNTED, MOST_OF_COUNTED)


_HITS = (
    SeriesTrap(
        "hits_of_preempted",
        ("cached_tokens",),
        _looked_up_again(4, 0.05) & (_PREEMPTED > 0),
        pl.format(
            "{} % of {} looked-up tokens hit, but only {} prompt tokens came and {} requests were preempted",
            _percent(_CACHED / _LOOKED_UP), _whole(_LOOKED_UP), _whole(_PROMPT), _whole(_PREEMPTED),
        ),
        "what a preempted request had computed itself counts as a hit when it is computed again",
        "vllm#25780",
    ),
    SeriesTrap(
        "hits_of_retries",
        ("cached_tokens",),
        _looked_up_again(8, 0.1) & (_PREEMPTED == 0),
        pl.format(
            "{} tokens looked up ({} % hit), but only {} prompt tokens came",
            _whole(_LOOKED_UP), _percent(_CACHED / _LOOKED_UP), _whole(_PROMPT),
        ),
        "a request that waits for memory is looked up, and counted, at each try",
        "vllm#43736",
    ),
    SeriesTrap(
        "hits_not_counted",
        ("cached_tokens",),
        _IS_MANY & (_CACHED == 0) & (pl.col("own_n") >= FEW_REQUESTS) & (pl.col("own_share") > MUCH_SKIPPED / 2),
        pl.format(
            "0 of {} looked-up tokens hit by the counter, {} % of {} requests' prompt tokens by the requests",
            _whole(pl.col("looked_up")), _percent(pl.col("own_share")), pl.col("own_n"),
        ),
        "the counter of hits stands still while requests say that they hit",
        "vllm-ascend#16639",
    ),
    SeriesTrap(
        "block_hides_hits",
        ("cached_tokens",),
        _IS_MANY
        & _READS_ALL
        & (_CACHED == 0)
        & (pl.col("requests") >= FEW_REQUESTS)
        & (_LOOKED_UP.is_not_null() | pl.col("block").is_not_null())
        & (pl.col("peer_skipped_share") >= MUCH_SKIPPED)
        & ~(pl.col("peer_block") >= pl.col("block")).fill_null(False),
        pl.format(
            "0 of {} tokens hit with KV blocks of {} tokens, where {} skips {} % of the same model's prompts",
            _whole(pl.col("looked_up")), pl.col("block").cast(pl.String).fill_null("an unknown number of"), pl.col("peer_replica"),
            _percent(pl.col("peer_skipped_share")),
        ),
        "a shared prefix shorter than one KV block is never reused: the 0 is of the block size, and not of the traffic",
        "vllm#54607",
        "suspect",
        "any",
    ),
    SeriesTrap(
        "block_above_prompts",
        ("cached_tokens",),
        _IS_MANY & _READS_ALL & (_CACHED == 0) & (pl.col("requests") >= FEW_REQUESTS) & (pl.col("short_share") > 0.9),
        pl.format(
            "0 of {} tokens hit; {} % of prompts are shorter than one KV block of {} tokens",
            _whole(pl.col("looked_up")), _percent(pl.col("short_share")), pl.col("block"),
        ),
        "no prompt fills a KV block, so that nothing can hit whatever prompts share",
        "vllm#54607",
        "suspect",
        "any",
    ),
    SeriesTrap(
        "hits_contradict",
        ("cached_tokens",),
        _IS_MANY
        & _READS_ALL
        & (pl.col("own_n") >= FEW_REQUESTS)
        & _is_most(pl.col("own_prompt"), pl.col("looked_up"))
        & ((pl.col("counted_share") - pl.col("own_share")).abs() > FAR),
        pl.format(
            "{} % of tokens hit by the counter, {} % by {} requests themselves",
            _percent(pl.col("counted_share")), _percent(pl.col("own_share")), pl.col("own_n"),
        ),
        "the counter of hits and the requests contradict each other",
        severity="suspect",
    ),
)  # fmt: skip
_DRAFTS = (
    SeriesTrap(
        "drafts_above_drafted",
        ("accepted_tokens", "draft_tokens", "verify_steps"),
        pl.col("accepted_tokens_total") > pl.col("draft_tokens_total"),
        pl.format("{} accepted of {} drafted", _whole(pl.col("accepted_tokens_total")), _whole(pl.col("draft_tokens_total"))),
        "more draft tokens accepted than drafted: the bonus token counts as a draft",
        "sglang#11572",
    ),
    SeriesTrap(
        "drafts_contradict",
        ("accepted_tokens", "draft_tokens"),
        (pl.col("drafted_n") >= FEW_REQUESTS)
        & (pl.col("draft_tokens_total") >= 1000)
        & _is_most(pl.col("own_drafted"), pl.col("draft_tokens_total"))
        & ((pl.col("accepted_tokens_total") / pl.col("draft_tokens_total") - pl.col("own_acceptance")).abs() > FAR),
        pl.format(
            "{} % of drafts accepted by the counters, {} % by {} requests themselves",
            _percent(pl.col("accepted_tokens_total") / pl.col("draft_tokens_total")), _percent(pl.col("own_acceptance")),
            pl.col("drafted_n"),
        ),
        "counters and requests contradict each other: drafts that were never verified are counted",
        "vllm#44056",
        "suspect",
    ),
)  # fmt: skip
_FASTEST = pl.max_horizontal(
    _over(pl.col("kv_transfer_bytes_per_s"), pl.col("kv_transfer_bytes_per_s_n")),
    _over(pl.col("kv_transfer_bytes"), pl.col("kv_transfer_s")),
)
_SPEED = SeriesTrap(
    "speed_above_link",
    ("kv_transfer_bytes", "kv_transfer_s"),
    pl.col("link_peak") < _FASTEST,
    pl.format(
        "{} GB/s over a link of {} GB/s",
        (_FASTEST / 1e9).round(1),
        (pl.col("link_peak") / 1e9).round(1),
    ),
    "KV transfer faster than its link: the bytes of all chunks over the time of the last one",
    "sglang#31877",
)  # fmt: skip
_TOKEN_TIMES = (
    SeriesTrap(
        "series_tpot_is_a_step",
        ("tpot_s",),
        (pl.col("timed_n") >= FEW_REQUESTS) & (pl.col("length") >= 1.15) & _near(_MEAN_S / _OURS_S, pl.col("length"), 0.15),
        pl.format(
            "{} ms a token by its histogram, {} ms by {} requests, which take {} tokens a step",
            (_MEAN_S * 1e3).round(2), (_OURS_S * 1e3).round(2), pl.col("timed_n"), pl.col("length").round(2),
        ),
        "what is called a time per token is the time of a verify step, which gives several tokens",
        "sglang#12064",
        "noted",
    ),
    SeriesTrap(
        "series_tpot_with_first_token",
        ("tpot_s",),
        (pl.col("timed_n") >= FEW_REQUESTS) & _near(_MEAN_S, pl.col("whole_mean_s"), 0.03) & ~_near(_MEAN_S, _OURS_S, 0.1),
        pl.format(
            "{} ms a token by its histogram, {} ms by {} requests", (_MEAN_S * 1e3).round(2), (_OURS_S * 1e3).round(2), pl.col("timed_n")
        ),
        "the whole request's time over all its tokens: a formula of no other tool, with the time to the first token in it",
        "guidellm#1144",
        "noted",
    ),
)  # fmt: skip

SERIES_TRAPS: tuple[SeriesTrap, ...] = (*_HITS, *_DRAFTS, _SPEED, *_TOKEN_TIMES)
