"""How many requests of an hour ran on which replicas in, which of them are settled together out: no replica is in two shares.

What is settled of a request follows from what ran on its replicas. Two that serve pairs together stay together, and so do those of one
model, which are held against each other, as long as a share holds them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from pipeline.joining import components

SERVED = ("replica", "prefill_replica", "decode_replica")
NO_REPLICA = "model "  # how the home of a request begins that names no replica; no replica's name has this form by itself
_COUNTED = {"home": pl.String, "model": pl.String, **dict.fromkeys(SERVED, pl.String), "requests": pl.Int64}


def home() -> pl.Expr:
    """The replica that a request is settled with; of one that names none, its model in the place of it."""
    return pl.coalesce(*SERVED, pl.lit(NO_REPLICA) + pl.col("model").fill_null(""))


def counted(requests: pl.DataFrame) -> pl.DataFrame:
    """One row per model and the replicas that served together: how many requests (columns home, model, SERVED, requests)."""
    return requests.with_columns(home().alias("home")).group_by("home", "model", *SERVED).agg(pl.len().cast(pl.Int64).alias("requests"))


def packed(counts: pl.DataFrame, most: int) -> Mapping[str, int]:
    """The share of each home and replica, of rows of `counted`. A share has `most` requests, or what belongs together and is more."""
    whole = (
        pl.concat([pl.DataFrame(schema=_COUNTED), counts.select(list(_COUNTED))])
        .group_by(list(_COUNTED)[:-1])
        .agg(pl.col("requests").sum())
    )
    if whole.is_empty():
        return {}
    names, together = _together(whole)
    sizes, models = _sizes(whole, names, together)
    shares: dict[int, int] = {}
    held: list[int] = []
    for group in sorted(models, key=lambda one: (-sum(sizes[of] for of in one), min(one))):
        fits = sum(sizes[of] for of in group) <= most
        for bundle in [group] if fits else [[of] for of in sorted(group, key=lambda of: (-sizes[of], of))]:
            size = sum(sizes[of] for of in bundle)
            place = next((place for place, has in enumerate(held) if has + size <= most), len(held))
            held[place:] = [*held[place:], 0] if place == len(held) else held[place:]
            held[place] += size
            shares.update(dict.fromkeys(bundle, place))
    return {name: shares[of] for name, of in zip(names, together, strict=True)}


def _together(counts: pl.DataFrame) -> tuple[list[str], list[int]]:
    """(the names of homes and replicas, for each the number of the first that it serves with)."""
    linked = pl.concat([counts.select(pl.col("home").alias("one"), pl.col(name).alias("other")) for name in ("home", *SERVED)]).drop_nulls()
    names = pl.concat([linked["one"], linked["other"]]).unique().sort()
    numbered = linked.select(pl.col(name).replace_strict(names, np.arange(len(names)), return_dtype=pl.Int64) for name in ("one", "other"))
    edges = numbered.filter(pl.col("one") != pl.col("other")).unique()
    return names.to_list(), components(np.arange(len(names)), [edges]).tolist()


def _sizes(counts: pl.DataFrame, names: list[str], together: list[int]) -> tuple[dict[int, int], list[list[int]]]:
    """(the requests of what serves together, what of it serves models in common)."""
    number = dict(zip(names, together, strict=True))
    sizes, of_model = dict.fromkeys(together, 0), dict[str | None, set[int]]()
    for name, model, requests in counts.select("home", "model", "requests").iter_rows():
        sizes[number[name]] += requests
        of_model.setdefault(model, set()).add(number[name])
    firsts = sorted(sizes)
    places = {of: place for place, of in enumerate(firsts)}
    edges = [(places[min(some)], places[of]) for model, some in of_model.items() if model is not None for of in some]
    found = components(np.arange(len(firsts)), [pl.DataFrame(edges, {"one": pl.Int64, "other": pl.Int64}, orient="row")])
    groups: dict[int, list[int]] = {}
    for of, first in zip(firsts, found.tolist(), strict=True):
        groups.setdefault(first, []).append(of)
    return sizes, [*groups.values()]
