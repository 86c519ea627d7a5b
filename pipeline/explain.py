"""Counts of each key's values in two sets of requests in, the keys ranked by how much they tell the sets apart out.

A distance is the largest difference of shares: over sets of values for a key of texts (total variation), over thresholds for a number
(Kolmogorov-Smirnov). Two samples of one and the same traffic differ too. `chance` is a distance that they pass, in any key, in one
comparison of a hundred at most: the mean distance of equal sets in the normal limit, and above it what sums of so few requests stray,
by the inequalities of Borell and Bernstein; for a number no more than that of Dvoretzky, Kiefer and Wolfowitz. Requests are taken to be
independent of each other; where they come in bursts, a distance little above chance says less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pipeline import mechanisms

ALPHA = 0.01
DEFINES, BY_CHANCE = "defines the sets", "no more than chance"
OWN = "what {} does by itself"
SCHEMA = {
    "key": pl.String, "condition": pl.String, "share_a": pl.Float64, "share_b": pl.Float64, "distance": pl.Float64, "chance": pl.Float64,
    "difference": pl.Float64, "median_a": pl.Float64, "median_b": pl.Float64, "p95_a": pl.Float64, "p95_b": pl.Float64, "n_a": pl.Int64,
    "n_b": pl.Int64, "coverage_a": pl.Float64, "coverage_b": pl.Float64, "requests_a": pl.Int64, "requests_b": pl.Int64,
    "sampled": pl.Boolean, "note": pl.String,
}  # fmt: skip

Counts = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many requests the sets hold, how many of them were looked at, how many are in both sets and in neither."""

    a: int
    b: int
    looked_a: int
    looked_b: int
    both: int
    neither: int


@dataclass(frozen=True, slots=True)
class _Found:
    """What differs most of a key, and by how much."""

    condition: str
    share_a: float
    share_b: float
    distance: float
    chance: float


def sizes(counted: pl.DataFrame) -> Sizes:
    """The sizes that `counted` (rows of `queries.explain.comparison`) states."""
    said = {row["key"]: (row["count_a"], row["count_b"]) for row in counted.filter(pl.col("kind") == "sets").to_dicts()}
    return Sizes(*said["size"], *said["looked_at"], *said["left"])


def ranked(counted: pl.DataFrame, defining: Collection[str] = ()) -> pl.DataFrame:
    """One row per key, those that differ most first, then what the sets' own lever does, what defines the sets, and what differs by chance.

    `condition` is what differs most, `share_a` and `share_b` the shares of the sets for which it holds. `difference` is the distance beyond
    chance, 0 where there is none, 1 where the sets have nothing in common. Medians and 95th percentiles are in the key's own unit, and
    exact to 1 %.
    """
    of = sizes(counted)
    keys = counted.filter(pl.col("kind").is_in(["value", "bin"])).partition_by("key", as_dict=True, maintain_order=True)
    log_odds = math.log(max(len(keys), 1) / ALPHA)
    levers = mechanisms.own(defining)
    rows = [_row(str(key), rows, of, log_odds, _by_nature(str(key), defining, levers)) for (key,), rows in keys.items()]
    order = pl.col("note").fill_null("").replace_strict({"": 0, DEFINES: 2, BY_CHANCE: 3}, default=1)
    return pl.DataFrame(rows, schema=SCHEMA).sort(order, -pl.col("difference"), -pl.col("distance"), "key")


def _by_nature(key: str, defining: Collection[str], levers: Mapping[str, str]) -> str | None:
    """Why a key differs whatever the traffic is; None where nothing says that it does."""
    if key in defining or f"{key.partition('.')[0]}." in defining:
        return DEFINES
    return OWN.format(levers[key].replace("_", " ")) if key in levers else None


def _row(key: str, counted: pl.DataFrame, of: Sizes, log_odds: float, note: str | None) -> dict[str, object]:
    is_number = counted["kind"][0] == "bin"
    found = _number(key, counted, of, log_odds) if is_number else _values(key, counted, of, log_odds)
    known_a, known_b = int(counted["count_a"].sum()), int(counted["count_b"].sum())
    difference = max(0.0, (found.distance - found.chance) / (1 - found.chance)) if found.chance < 1 else 0.0
    if difference == 0 and note != DEFINES:
        note = BY_CHANCE
    return {
        "key": key, "condition": found.condition, "share_a": found.share_a, "share_b": found.share_b, "distance": found.distance,
        "chance": min(found.chance, 1.0), "difference": difference, "n_a": known_a, "n_b": known_b,
        "coverage_a": known_a / of.looked_a, "coverage_b": known_b / of.looked_b, "requests_a": of.a, "requests_b": of.b,
        "sampled": (of.looked_a, of.looked_b) != (of.a, of.b), "note": note,
        **(_spread(counted) if is_number else {}),
    }  # fmt: skip


def _values(key: str, counted: pl.DataFrame, of: Sizes, log_odds: float) -> _Found:
    """A key of texts: total variation over its values, of which none (null) is one."""
    named = counted.filter(pl.col("value").is_not_null()).sort("value")
    others = counted.filter(pl.col("value").is_null())
    a, b = _with_rest(named["count_a"], others["count_a"], of.looked_a), _with_rest(named["count_b"], others["count_b"], of.looked_b)
    shares_a, shares_b = a / of.looked_a, b / of.looked_b
    gaps = np.abs(shares_a - shares_b)
    gaps[-2] = 0.0  # the values counted together have no name
    place = int(np.argmax(gaps))
    condition = condition_of(key, named["value"][place] if place < len(named) else None)
    distance = float(np.abs(shares_a - shares_b).sum() / 2)
    return _Found(condition, float(shares_a[place]), float(shares_b[place]), distance, chance(a, b, log_odds))


def _with_rest(named: pl.Series, others: pl.Series, total: int) -> Counts:
    """The counts of the named values, of all others, and of none."""
    counted, unnamed = int(named.sum()), int(others.sum())
    return np.array([*named, unnamed, total - counted - unnamed], np.int64)


def _number(key: str, counted: pl.DataFrame, of: Sizes, log_odds: float) -> _Found:
    """A number: the largest difference over thresholds of those that have it, or of having it at all."""
    counted = counted.sort("upper")
    a, b = counted["count_a"].to_numpy(), counted["count_b"].to_numpy()
    known_a, known_b = int(a.sum()), int(b.sum())
    having = _Found(
        f'{key} is not null', known_a / of.looked_a, known_b / of.looked_b, abs(known_a / of.looked_a - known_b / of.looked_b),
        chance(np.array([known_a, of.looked_a - known_a]), np.array([known_b, of.looked_b - known_b]), log_odds),
    )  # fmt: skip
    if not known_a or not known_b:
        return having
    above_a, above_b = 1 - a.cumsum() / known_a, 1 - b.cumsum() / known_b
    place = int(np.argmax(np.abs(above_a - above_b)))
    spread = 1 / known_a + 1 / known_b
    by_chance = min(chance(a, b, log_odds), math.sqrt((log_odds + math.log(2)) * spread / 2))
    upper, distance = counted["upper"][place], float(abs(above_a[place] - above_b[place]))
    found = _Found(f"{key} > {_digits(upper)}", float(above_a[place]), float(above_b[place]), distance, by_chance)
    return having if having.distance - having.chance > max(0.0, found.distance - found.chance) else found


def _spread(counted: pl.DataFrame) -> dict[str, float | None]:
    """The median and the 95th percentile of both sets: the largest number of the bin that they lie in."""
    counted, found = counted.sort("upper"), {}
    for which in ("a", "b"):
        below = counted[f"count_{which}"].cum_sum()
        for name, share in (("median", 0.5), ("p95", 0.95)):
            inside = counted["upper"].filter(below >= share * (below[-1] or math.inf))
            found[f"{name}_{which}"] = inside[0] if len(inside) else None
    return found


def chance(a: Counts, b: Counts, log_odds: float) -> float:
    """A total variation that the counts of two samples of one distribution pass with a probability of exp(-`log_odds`) at most."""
    n_a, n_b = int(a.sum()), int(b.sum())
    if not n_a or not n_b:
        return math.inf
    shares: Reals = (a + b) / (n_a + n_b)
    spread = 1 / n_a + 1 / n_b
    mean = math.sqrt(spread / (2 * math.pi)) * float(np.sqrt(shares * (1 - shares)).sum())
    largest = float(shares.max())
    variance = largest * (1 - largest) if largest >= 0.5 else 0.25  # of the set of values that varies most
    return mean + math.sqrt(2 * log_odds * variance * spread) + log_odds / (3 * min(n_a, n_b))


def condition_of(key: str, value: str | None) -> str:
    """The condition over columns of `requests` that a key has a value; None is null."""
    kind, _, name = key.partition(".")
    if kind == "flag":
        return f"list_contains(flags, {_quoted(name)})" if value else f"not coalesce(list_contains(flags, {_quoted(name)}), false)"
    told = f"{kind}s[{_quoted(name)}]" if kind in ("lever", "arm") and name else key
    told = f"date_trunc('{key}', started_at)" if key in ("hour", "day") else told
    return f"{told} is null" if value is None else f"{told} = {_quoted(value)}"


def _digits(number: float) -> str:
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**53 else repr(number)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
