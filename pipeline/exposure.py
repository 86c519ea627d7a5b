"""Requests and counters of their replicas in, the requests' share of what was counted out: by exposure, where no request carries it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from pipeline.counters import Counter, Ints, Reals, counters
from pipeline.exposed import Exposed, between_samples, decodes, prompts

Counters = Mapping[str, list[Counter]]
MODELS = "model"
MOST = 1e12  # beyond it a count is noise, and sums of such counts overflow


@dataclass(frozen=True, slots=True)
class Share:
    """A column of `requests`: from which counter, which columns speak of the same, which levers change it, and for prompts which counters
    say their tokens."""

    column: str
    signal: str
    kin: tuple[str, ...]
    levers: tuple[str, ...] = ()
    per: tuple[str, ...] = ()


_DRAFTS = ("draft_tokens", "accepted_tokens", "verify_steps")
_CACHING = ("prefix_caching", "cache_affinity")
_PROMPT, _QUERIED = "prompt_tokens_total", "cache_queried_tokens_total"
BY_PROMPT = (
    Share("cached_tokens", "cached_tokens_total", ("cached_tokens",), _CACHING, (_QUERIED, _PROMPT)),
    Share("evicted_tokens", "evicted_tokens_total", ("evicted_tokens",), _CACHING, (_PROMPT, _QUERIED)),
)
BY_OUTPUT = (
    Share("draft_tokens", "draft_tokens_total", _DRAFTS, ("speculation",)),
    Share("accepted_tokens", "accepted_tokens_total", _DRAFTS, ("speculation",)),
    Share("verify_steps", "verify_steps_total", _DRAFTS, ("speculation",)),
    Share("preemptions", "preemptions_total", ("preemptions",)),
)
EXPOSED = tuple(share.column for share in (*BY_PROMPT, *BY_OUTPUT))


def with_counts(requests: pl.DataFrame, samples: pl.DataFrame, around: pl.DataFrame) -> pl.DataFrame:
    """`requests` with the columns of `EXPOSED` where nothing of their replica carried them and counters tell.

    Cached and evicted tokens go by a request's prompt tokens, at the rate of the interval between two samples that holds its admission;
    what is counted while decoding by its output tokens after the first, at the rate of its decode window. `samples` as `series.counted`
    gives them; `around` may have the arms and models of others that ran beside these. Whole numbers: sums over a replica's
    requests in order are kept.
    """
    signals = set(samples.filter(pl.col("kind") == "counter")["signal"].unique())
    by_prompt, by_output = (
        [share for share in shares if share.signal in signals and requests[share.column].null_count()] for shares in (BY_PROMPT, BY_OUTPUT)
    )
    if not (by_prompt or by_output):
        return requests
    replicas = samples["replica"].unique().sort()
    counted = counters(samples, replicas)
    served = ("replica", "prefill_replica", "arms")
    seen = pl.concat([frame.select(served) for frame in (requests, around) if "arms" in frame.columns], how="vertical_relaxed")
    mixed = _mixed(seen, replicas, {lever for share in (*by_prompt, *by_output) for lever in share.levers})
    if "model" in requests.columns:
        mixed[MODELS] = _of_several_models([frame for frame in (requests, around) if "model" in frame.columns], replicas)
    found: dict[str, pl.Series] = {}
    if by_prompt:
        admitted = prompts(requests, replicas)
        for share in by_prompt:
            rows = between_samples(admitted, counted[share.signal][0])
            found[share.column] = _whole(_of_prompts(share, rows, counted), rows, requests, share, mixed)
    if by_output:
        rows = decodes(requests, replicas)
        tokens = _decoded(rows, counted)
        for share in by_output:
            found[share.column] = _whole(_rated(rows, rows.grown(counted[share.signal]), tokens), rows, requests, share, mixed)
    if "accepted_tokens" in found and "draft_tokens" in found:
        found["accepted_tokens"] = _within(found["accepted_tokens"], found["draft_tokens"], requests["replica"])
    return requests.with_columns(requests[name].fill_null(values) for name, values in found.items())


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


def _whole(exact: Reals, rows: Exposed, requests: pl.DataFrame, share: Share, mixed: Mapping[str, Ints]) -> pl.Series:
    """Whole numbers, of the requests of replicas where they can be told.

    They cannot where a request carries any of the kind, nor where arms of a lever that changes it run beside each other: a rate would give
    both the same, and their difference would be none. So it is with models that share a replica.
    """
    carries = requests.select(pl.any_horizontal(pl.col(name).is_not_null() for name in share.kin)).to_series().to_numpy()
    untold = [np.unique(rows.places[carries[rows.numbers]]), *(mixed[name] for name in (MODELS, *share.levers) if name in mixed)]
    taken = ~np.isnan(exact) & ~np.isin(rows.places, np.concatenate(untold))
    values = np.zeros(len(requests), np.int64)
    known = np.zeros(len(requests), np.bool_)
    numbers = rows.numbers[taken]
    values[numbers], known[numbers] = _rounded(exact[taken], rows.places[taken], requests["request_id"][numbers]), True
    return pl.Series(share.column, values).zip_with(pl.Series(known), pl.Series([None], dtype=pl.Int64).new_from_index(0, len(values)))


def _rounded(exact: Reals, places: Ints, names: pl.Series) -> Ints:
    """Whole numbers whose sums are those of the exact ones, on each place by itself: what is settled beside it changes nothing.

    The name of a place's first says where its rounding begins, so that rare counts are not lost.
    """
    told = pl.DataFrame({"place": places, "exact": np.minimum(exact, MOST), "name": names})
    firsts = told.group_by("place").agg(pl.col("name").first())
    begins = [zlib.crc32(name.encode()) / 2**32 for name in firsts["name"].to_list()]
    told = told.join(firsts.select("place", pl.Series("begin", begins, pl.Float64)), on="place", how="left", maintain_order="left")
    sums = told.select("place", (pl.col("exact").cum_sum().over("place") + pl.col("begin")).floor().cast(pl.Int64).alias("sum"))
    found: Ints = sums.select(pl.col("sum").diff().over("place").fill_null(pl.col("sum")))["sum"].to_numpy()
    return found


def _mixed(seen: pl.DataFrame, replicas: pl.Series, levers: Iterable[str]) -> dict[str, Ints]:
    """Of each lever the places that served several of its arms."""
    if seen["arms"].null_count() == len(seen):
        return {}
    found: dict[str, Ints] = {}
    for lever in levers:
        of_lever = pl.element().struct.field("key") == lever
        arm = pl.col("arms").list.eval(pl.element().struct.field("value").filter(of_lever)).list.first().alias("arm")
        arms = pl.concat([seen.select(pl.col(column).alias("replica"), arm) for column in ("replica", "prefill_replica")])
        several = arms.group_by("replica").agg(pl.col("arm").n_unique()).filter(pl.col("arm") > 1)["replica"].drop_nulls()
        found[lever] = np.flatnonzero(replicas.is_in(several.implode()).to_numpy())
    return found


def _of_several_models(frames: Sequence[pl.DataFrame], replicas: pl.Series) -> Ints:
    """The places that served several models, by one engine or by engines that say the same name."""
    served = [frame.select(pl.col(column).alias("replica"), "model") for frame in frames for column in ("replica", "prefill_replica")]
    models = pl.concat(served, how="vertical_relaxed").drop_nulls().group_by("replica").agg(pl.col("model").n_unique())
    return np.flatnonzero(replicas.is_in(models.filter(pl.col("model") > 1)["replica"].implode()).to_numpy())


def _within(accepted: pl.Series, draft: pl.Series, replica: pl.Series) -> pl.Series:
    """No more accepted than drafted: what rounding gave to a request that had no draft for it goes to one of its replica that has."""
    excess = (accepted - draft).clip(lower_bound=0).fill_null(0)
    if not int(excess.sum()):
        return accepted
    told = pl.DataFrame({"replica": replica, "kept": accepted - excess, "draft": draft, "excess": excess})
    has_room = (pl.col("draft") > pl.col("kept")).fill_null(value=False)
    is_given = has_room & (has_room.cast(pl.Int64).cum_sum() <= pl.col("excess").sum()).over("replica")
    return told.select(pl.col("kept") + is_given.cast(pl.Int64))["kept"]
