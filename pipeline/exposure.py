"""Requests and counters of their replicas in, the requests' share of what was counted out: by exposure, where no request carries it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from pipeline.counters import Counter, Ints, Reals, Windows, counters

Counters = Mapping[str, list[Counter]]
MOMENT_US = 1000  # what takes no time is looked at for this long


@dataclass(frozen=True, slots=True)
class Share:
    """A column of `requests`: from which counter, which columns speak of the same, and for prompts which counters say their tokens."""

    column: str
    signal: str
    kin: tuple[str, ...]
    per: tuple[str, ...] = ()


_DRAFTS = ("draft_tokens", "accepted_tokens", "verify_steps")
BY_PROMPT = (
    Share("cached_tokens", "cached_tokens_total", ("cached_tokens",), ("cache_queried_tokens_total", "prompt_tokens_total")),
    Share("evicted_tokens", "evicted_tokens_total", ("evicted_tokens",), ("prompt_tokens_total", "cache_queried_tokens_total")),
)
BY_OUTPUT = (
    Share("draft_tokens", "draft_tokens_total", _DRAFTS),
    Share("accepted_tokens", "accepted_tokens_total", _DRAFTS),
    Share("verify_steps", "verify_steps_total", _DRAFTS),
    Share("preemptions", "preemptions_total", ("preemptions",)),
)
EXPOSED = tuple(share.column for share in (*BY_PROMPT, *BY_OUTPUT))


@dataclass(frozen=True, slots=True)
class Exposed:
    """Requests in order of place and start: their row numbers, exposure in tokens, and from when to when they were exposed."""

    numbers: Ints
    places: Ints
    tokens: Reals
    since_us: Ints
    until_us: Ints
    windows: dict[int, Windows] = field(default_factory=dict)

    def grown(self, ways: list[Counter]) -> Reals:
        """How far a signal counted meanwhile, over all ways on which a replica's ranks are sampled; NaN where that is unknown."""
        total = np.zeros(len(self.places))
        for number, way in enumerate(ways):
            if id(way.grid) not in self.windows:
                self.windows[id(way.grid)] = way.grid.enclosing(self.places, self.since_us, self.until_us)
            grown = way.grown(self.windows[id(way.grid)])
            total = total + (np.where(np.isin(self.places, way.grid.places), grown, 0.0) if number else grown)
        return total


def with_counts(requests: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """`requests` with the columns of `EXPOSED` where nothing of their replica carried them and counters tell.

    Cached and evicted tokens go by a request's prompt tokens, at the rate of the interval between two samples that holds its admission;
    what is counted while decoding by its output tokens after the first, at the rate of its decode window. `samples` as `series.counted`
    gives them. Whole numbers: sums over requests in order are kept.
    """
    signals = set(samples.filter(pl.col("kind") == "counter")["signal"].unique())
    by_prompt, by_output = (
        [share for share in shares if share.signal in signals and requests[share.column].null_count()] for shares in (BY_PROMPT, BY_OUTPUT)
    )
    if not (by_prompt or by_output):
        return requests
    replicas = samples["replica"].unique().sort()
    counted = counters(samples, replicas)
    found: dict[str, pl.Series] = {}
    if by_prompt:
        rows = _prompts(requests, replicas, counted[by_prompt[0].signal][0])
        for share in by_prompt:
            found[share.column] = _whole(_of_prompts(share, rows, counted), rows, requests, share)
    if by_output:
        rows = _decodes(requests, replicas)
        tokens = _decoded(rows, counted)
        for share in by_output:
            found[share.column] = _whole(_rated(rows, rows.grown(counted[share.signal]), tokens), rows, requests, share)
    if "accepted_tokens" in found and "draft_tokens" in found:
        found["accepted_tokens"] = _within(found["accepted_tokens"], found["draft_tokens"])
    return requests.with_columns(requests[name].fill_null(values) for name, values in found.items())


def _prompts(requests: pl.DataFrame, replicas: pl.Series, counter: Counter) -> Exposed:
    """Prompts, each in the interval between samples that holds its admission where it was prefilled."""
    admitted = pl.col("started_at").dt.epoch("us") + _us("queue_s")
    rows = _rows(requests, replicas, pl.coalesce("prefill_replica", "replica"), pl.col("prompt_tokens"), admitted, admitted)
    since, until = counter.grid.around(rows.places, rows.since_us)
    return replace(rows, since_us=since, until_us=until, windows={})


def _decodes(requests: pl.DataFrame, replicas: pl.Series) -> Exposed:
    """Output tokens after the first, while they were decoded; where the first token's time is unknown, from the start on."""
    start, end = pl.col("started_at").dt.epoch("us"), pl.col("ended_at").dt.epoch("us")
    since = pl.min_horizontal(start + _us("ttft_s"), end)
    return _rows(requests, replicas, pl.col("replica"), pl.col("output_tokens") - 1, since, pl.max_horizontal(end, since + MOMENT_US))


def _us(column: str) -> pl.Expr:
    return (pl.col(column).fill_null(0.0).clip(0.0, 86_400.0) * 1e6).cast(pl.Int64)


def _rows(requests: pl.DataFrame, replicas: pl.Series, replica: pl.Expr, tokens: pl.Expr, since: pl.Expr, until: pl.Expr) -> Exposed:
    place = replica.replace_strict(replicas, pl.int_range(len(replicas), eager=True), default=None, return_dtype=pl.Int64)
    rows = requests.with_row_index("row").select(
        pl.col("row").cast(pl.Int64),
        place.alias("place"),
        tokens.cast(pl.Float64).alias("tokens"),
        since.alias("since"),
        until.alias("until"),
    )
    rows = rows.filter(pl.col("place").is_not_null() & (pl.col("tokens") >= 0)).sort("place", "since", "row")
    number, place_number, exposure, start, end = (rows[name].to_numpy() for name in ("row", "place", "tokens", "since", "until"))
    return Exposed(number, place_number, exposure, start, end)


def _of_prompts(share: Share, rows: Exposed, counted: Counters) -> Reals:
    """Tokens at the rate at which prompt tokens met it; at least one token of a prompt is computed."""
    per = np.full(len(rows.places), np.nan)
    for signal in share.per:
        if signal in counted and np.isnan(per).any():
            per = np.where(np.isnan(per), rows.grown(counted[signal]), per)
    exact = _rated(rows, rows.grown(counted[share.signal]), per)
    return np.minimum(exact, np.maximum(rows.tokens - 1, 0)) if share.column == "cached_tokens" else exact


def _decoded(rows: Exposed, counted: Counters) -> Reals:
    """The tokens decoded on each one's replica meanwhile. The counter holds first tokens too, as large a part as requests have of them."""
    if "output_tokens_total" not in counted:
        return np.full(len(rows.places), np.nan)
    count = int(rows.places.max(initial=-1)) + 1
    later, every = (np.bincount(rows.places, weights, count) for weights in (rows.tokens, rows.tokens + 1))
    decoded: Reals = rows.grown(counted["output_tokens_total"]) * (later / np.maximum(every, 1))[rows.places]
    return decoded


def _rated(rows: Exposed, grown: Reals, per: Reals) -> Reals:
    """Each one's part of what was counted, by its part of the tokens; none of a request without exposure."""
    return np.where((rows.tokens == 0) & ~np.isnan(grown), 0.0, rows.tokens * grown / np.where(per > 0, per, np.nan))


def _whole(exact: Reals, rows: Exposed, requests: pl.DataFrame, share: Share) -> pl.Series:
    """Whole numbers whose sums are those of the exact ones, of the requests of replicas where no request carried any of the kind."""
    carries = requests.select(pl.any_horizontal(pl.col(name).is_not_null() for name in share.kin)).to_series().to_numpy()
    carrying = np.unique(rows.places[carries[rows.numbers]])
    taken = ~np.isnan(exact) & ~np.isin(rows.places, carrying)
    first = zlib.crc32(str(requests["request_id"][0]).encode()) / 2**32  # where rounding begins, so that rare counts are not lost
    sums = np.floor(np.cumsum(exact[taken]) + first).astype(np.int64)
    values = np.zeros(len(requests), np.int64)
    known = np.zeros(len(requests), np.bool_)
    values[rows.numbers[taken]], known[rows.numbers[taken]] = np.diff(sums, prepend=0), True
    return pl.Series(share.column, values).zip_with(pl.Series(known), pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values)))


def _within(accepted: pl.Series, draft: pl.Series) -> pl.Series:
    """No more accepted than drafted: what rounding gave to a request that had no draft for it goes to one that has."""
    excess = (accepted - draft).clip(lower_bound=0).fill_null(0)
    left = int(excess.sum())
    if not left:
        return accepted
    kept = accepted - excess
    has_room = (draft > kept).fill_null(False)
    return kept + (has_room & (has_room.cast(pl.Int64).cum_sum() <= left)).cast(pl.Int64)
