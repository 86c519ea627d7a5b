"""Spans that stand for requests in, one number per logical request out: which of them are the same, within a trace and across traces.

Joined are: heads of one trace and key whose times touch; an engine's span beside the gateway's span that called it, where a caller's
context was passed on unchanged; and heads of different traces that state the same key, if together they are one request and no more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

APART_S = 5  # the same key again after this long is another request: callers reuse ids
SIDE_MS = 50  # how far beyond its gateway's span a sibling engine span may reach: the clocks of two hosts
BODY_LATE_S = 900  # a recorded body may state only when it was received: its request began this long before at most
HEAD_ROLES = ("engine", "gateway", "client", "log", "body")
SIDES = {"engine": 0, "body": 1, "gateway": 2, "client": 3}  # who may have called whom

Ints = npt.NDArray[np.int64]


def groups_of(spans: pl.DataFrame) -> pl.DataFrame:
    """(top, group): `top` is the row number of a head, `group` that of the first head of its request.

    `spans` has the heads and what a gateway, tap or engine sent below them; a key that one of these states is its head's key.
    """
    legs = spans.filter(pl.col("role").is_in(HEAD_ROLES))
    heads = legs.filter(pl.col("row") == pl.col("top"))
    tops, edges = heads["row"].to_numpy(), []
    if heads["trace_id"].n_unique() < len(heads):
        edges = [_same_key(legs), _siblings(heads)]
    within = components(tops, edges)
    if legs.select(is_seeking().any()).item():
        named = pl.DataFrame({"top": tops, "within": within})
        edges.append(_across_traces(legs.join(named, on="top", maintain_order="left")))
    return pl.DataFrame({"top": tops, "group": components(tops, edges)})


def inferred_phases(spans: pl.DataFrame) -> pl.DataFrame:
    """The spans, with the legs of a pair named where no one named them.

    An engine request of one token, followed by another for the same prompt under the same key, prefilled for it.
    """
    nameless = (pl.col("role") == "engine") & pl.col("phase").is_null() & pl.col("join_key").is_not_null()
    legs = spans.filter(nameless & (pl.col("samples_n").fill_null(1) < 2))
    if not (legs["output_tokens"] == 1).any():
        return spans
    legs = legs.select("row", "join_key", "started_at", "ended_at", "prompt_tokens", "output_tokens").sort("join_key", "started_at", "row")
    follows = (
        (pl.col("prompt_tokens").shift(-1) == pl.col("prompt_tokens"))
        & (pl.col("started_at").shift(-1) > pl.col("started_at"))  # samples of one token begin together
        & (pl.col("started_at").shift(-1) >= pl.col("ended_at") - pl.duration(milliseconds=SIDE_MS))
        & (pl.col("started_at").shift(-1) <= pl.col("ended_at") + pl.duration(seconds=APART_S))
    ).over("join_key")
    prefills = legs.with_columns((follows & (pl.col("output_tokens") == 1)).fill_null(False).alias("prefills"))
    decodes = pl.col("prefills").shift().over("join_key").fill_null(False)
    named = pl.when("prefills").then(pl.lit("prefill")).when(decodes).then(pl.lit("decode"))
    return (
        spans.join(prefills.select("row", named.alias("told")), on="row", how="left", maintain_order="left")
        .with_columns(pl.coalesce("phase", "told").alias("phase"))
        .drop("told")
    )


def keys_of(legs: pl.DataFrame) -> pl.DataFrame:
    """(row, key): the ids by which spans of other traces may know a leg. A dialect whose ids mean nothing elsewhere gives none."""
    keyed = legs.filter(pl.col("join_key").is_not_null())
    named = keyed.filter(pl.col("request_id") != pl.col("join_key"))
    both = [keyed.select("row", pl.col("join_key").alias("key")), named.select("row", pl.col("request_id").alias("key"))]
    return pl.concat(both)


def stated_keys(spans: pl.DataFrame) -> pl.DataFrame:
    """The keys that spans state: (join_key, trace_id, since, until, near_since, near_until, seeks).

    A key seeks where nothing of its own trace makes its request whole. Its partners begin between `near_since` and `near_until`.
    """
    heads = spans.with_row_index("row").filter(pl.col("role").is_in(HEAD_ROLES) & pl.col("join_key").is_not_null())
    whole = (~is_seeking()).any().over("trace_id", "join_key")
    return keys_with_times(heads, (is_seeking() & ~whole).alias("seeks"))


def keys_with_times(legs: pl.DataFrame, *more: pl.Expr) -> pl.DataFrame:
    """The ids that legs state, with the times of their spans and of possible partners, and what else is asked for."""
    before = pl.when(pl.col("role") == "body").then(pl.duration(seconds=BODY_LATE_S)).otherwise(pl.duration(seconds=APART_S))
    times = legs.select(
        "row",
        "trace_id",
        pl.col("started_at").alias("since"),
        pl.col("ended_at").alias("until"),
        (pl.col("started_at") - before).alias("near_since"),
        (pl.col("ended_at") + pl.duration(seconds=APART_S)).alias("near_until"),
        *more,
    )
    return keys_of(legs).join(times, on="row").drop("row").rename({"key": "join_key"})


def is_seeking() -> pl.Expr:
    """Whether a leg may be a part of a request that another trace tells the rest of.

    A whole engine request is none by itself: it is found by the others. One of a single token may be the prefill leg of a pair.
    """
    alone = pl.col("phase").is_null() & (pl.col("samples_n").fill_null(1) < 2) & (pl.col("output_tokens") != 1).fill_null(True)
    return pl.col("join_key").is_not_null() & ~((pl.col("role") == "engine") & alone)


def _same_key(legs: pl.DataFrame) -> pl.DataFrame:
    """Heads of one trace that state the same key, or the same id beside it: a pair's key is its own, and its body knows but the id."""
    keyed = keys_of(legs).join(legs.select("row", "top", "trace_id", "started_at", "ended_at"), on="row", maintain_order="left")
    return _linked(_with_turn(keyed, ["trace_id", "key"]), ["trace_id", "key", "turn"])


def _siblings(heads: pl.DataFrame) -> pl.DataFrame:
    """Engines, and taps before them, with the callers of the same parent whose time holds theirs: one caller of a kind, or none."""
    columns = ["row", "trace_id", "parent_span_id", "started_at", "ended_at", "prompt_tokens", "side"]
    side = pl.col("role").replace_strict(SIDES, default=None, return_dtype=pl.Int64)
    inside = heads.filter(pl.col("parent_span_id").is_not_null()).with_columns(side.alias("side")).select(columns)
    inner, callers = inside.filter(pl.col("side") < 2), inside.filter(pl.col("side") > 0)
    if inner.is_empty() or callers.is_empty():
        return _no_edges()
    slack = pl.duration(milliseconds=SIDE_MS)
    pairs = inner.join(callers, on=["trace_id", "parent_span_id"], suffix="_caller").filter(
        (pl.col("side_caller") > pl.col("side"))
        & (pl.col("started_at") >= pl.col("started_at_caller") - slack)
        & (pl.col("ended_at") <= pl.col("ended_at_caller") + slack)
        & (pl.col("prompt_tokens") == pl.col("prompt_tokens_caller")).fill_null(True)
    )
    alone = pairs.filter(pl.len().over("row", "side_caller") == 1)
    return alone.select(pl.col("row_caller").alias("one"), pl.col("row").alias("other"))


def _across_traces(legs: pl.DataFrame) -> pl.DataFrame:
    """Heads of several traces that state one key at one time, where they complete each other: of each part there is one at most.

    Where two of them are whole, each by its own trace, nobody knows whose the others are.
    """
    part = pl.col("role") + ":" + pl.col("phase").fill_null("")
    columns = ["row", "top", "trace_id", "within", "started_at", "ended_at"]
    seeks = (is_seeking() & ~_whole()).alias("seeks")
    stated = keys_of(legs).join(legs.select(*columns, part.alias("part"), seeks, _whole().alias("whole"), _many().alias("many")), on="row")
    sought = stated.filter(pl.col("seeks")).select("key").unique()
    stated = _with_turn(stated.join(sought, on="key", how="semi"), ["key"])
    shared = stated.filter(pl.col("trace_id").n_unique().over("key", "turn") > 1)
    rivals = shared.filter(~pl.col("many")).group_by("key", "turn", "part").agg(pl.col("within").n_unique().alias("requests"))
    wholes = shared.filter("whole").group_by("key", "turn").agg(pl.col("within").n_unique().alias("requests"))
    rivals = pl.concat([rivals.drop("part"), wholes]).filter(pl.col("requests") > 1)
    return _linked(shared.join(rivals, on=["key", "turn"], how="anti"), ["key", "turn"])


def _whole() -> pl.Expr:
    """Whether a leg's request is whole by what its own trace says: by an engine's whole request, or both legs of a pair."""
    of_engine = pl.col("role") == "engine"
    pair = (of_engine & (pl.col("phase") == name).fill_null(False) for name in ("prefill", "decode"))
    prefill, decode = (leg.any().over("within") for leg in pair)
    return (of_engine & ~is_seeking()).any().over("within") | (prefill & decode)


def _many() -> pl.Expr:
    """Whether a leg is one of several samples of a prompt: then others like it belong to the same request."""
    return (pl.col("role") == "engine") & (pl.col("samples_n").fill_null(1) >= 2)


def _with_turn(stated: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Counts how often a key was used anew: a leg that begins long after all before it ended is another request."""
    stated = stated.sort(*key, "started_at", "row")
    apart = pl.col("started_at") > pl.col("ended_at").cum_max().shift().over(key) + pl.duration(seconds=APART_S)
    return stated.with_columns(apart.fill_null(False).cast(pl.Int64).cum_sum().over(key).alias("turn"))


def _linked(stated: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """(one, other): the tops of the legs that share a key, each with the first of them."""
    linked = stated.select(pl.col("top").min().over(key).alias("one"), pl.col("top").alias("other"))
    return linked.filter(pl.col("one") != pl.col("other"))


def _no_edges() -> pl.DataFrame:
    return pl.DataFrame(schema={"one": pl.Int64, "other": pl.Int64})


def components(rows: Ints, edges: list[pl.DataFrame]) -> Ints:
    """For each of some rows, in order, the smallest row that it is linked with, over any number of links (`one`, `other`)."""
    linked = pl.concat([_no_edges(), *edges])
    if linked.is_empty():
        return rows
    one, other = np.searchsorted(rows, linked["one"].to_numpy()), np.searchsorted(rows, linked["other"].to_numpy())
    label = np.arange(len(rows))
    while True:
        before = label.copy()
        smallest = np.minimum(label[one], label[other])
        np.minimum.at(label, one, smallest)
        np.minimum.at(label, other, smallest)
        label = label[label]
        if (label == before).all():
            return rows[label]
