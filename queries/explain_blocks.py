"""Two sets of requests and their percentiles of some keys in, one SQL statement out that adds both sets up by block.

Nothing here runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queries.explain import Comparison, looked

BLOCK_S = 300
RATIOS = {"tpot_s": ("decode_s", "(output_tokens - 1)", "output_tokens >= 2")}
"""Keys whose mean is a ratio of sums: numerator, denominator, and of which requests."""
SHARES = (0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A key, and each set's percentiles of it by SHARES, in its own unit; None where a set has no such number."""

    key: str
    a: tuple[float | None, ...]
    b: tuple[float | None, ...]


def statement(asked: Comparison, keys: Sequence[Thresholds]) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters; it may only be run by `queries.sandbox`, since the sets are a stranger's text.

    One row per block of 300 s: `block`, and of each set its first and last start (`first_a`, `last_a`); then of the key at each place, such
    as `k0_num_a`: sums of numerator and denominator, how many values there are (`k0_n_a`), and how many are at most the first and the
    second percentile (`k0_below0_a`).
    """
    params: dict[str, Any] = {}
    items = [
        f"{how}(case when is_{which} then started_at end) as {end}_{which}"
        for which in "ab"
        for how, end in (("min", "first"), ("max", "last"))
    ]
    for place, one in enumerate(keys):
        for which, limits in (("a", one.a), ("b", one.b)):
            items += _sums(f"k{place}", one.key, which)
            for number, limit in enumerate(limits):
                name = f"k{place}_limit{number}_{which}"
                params[name] = limit
                counted = f'case when is_{which} and "{one.key}" <= ${name}::double then 1 end'
                items.append(f"count({counted})::double as k{place}_below{number}_{which}")
    chosen = f"select *, {looked('a')} as is_a, {looked('b')} as is_b from sets, sizes where {looked('a')} or {looked('b')}"
    block = f"time_bucket(to_seconds({BLOCK_S}), started_at)"
    sql = f"with {asked.sets}, chosen as ({chosen}) select {block} as block, {', '.join(items)} from chosen group by 1 order by 1"
    return sql, {**asked.params, **params}


def _sums(name: str, key: str, which: str) -> list[str]:
    # No `filter (where ...)`: each would have a copy of every column of a chunk, which for 13 keys is more than a sandbox's 1 GiB.
    num, den, known = RATIOS.get(key, (f'"{key}"', "1", "true"))
    here = f"case when is_{which} and {num} is not null and {known} then"
    return [
        f'count(case when is_{which} then "{key}" end)::double as {name}_n_{which}',
        f"coalesce(sum({here} {num} end), 0)::double as {name}_num_{which}",
        f"coalesce(sum({here} {den} end), 0)::double as {name}_den_{which}",
    ]


def limits(row: Mapping[str, Any]) -> Thresholds:
    """The thresholds of a row of `explain`: both sets' medians and 95th percentiles."""
    return Thresholds(row["key"], (row["median_a"], row["p95_a"]), (row["median_b"], row["p95_b"]))
