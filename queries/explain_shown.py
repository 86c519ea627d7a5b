"""Two sets and one key in, the SQL out that shows how the key lies in both, for people to read and run. Nothing here runs it."""

from __future__ import annotations

from queries.explain import Comparison, looked
from queries.explain_blocks import RATIOS

SHOWN_VALUES = 200


def expression(key: str) -> str:
    """A key of `explain` over columns of `requests`."""
    kind, _, name = key.partition(".")
    if kind in ("lever", "arm") and name:
        return f"{kind}s['{_quoted(name)}']"
    if kind == "flag" and name:
        return f"coalesce(list_contains(flags, '{_quoted(name)}'), false)"
    return f"date_trunc('{key}', started_at)" if key in ("hour", "day") else f'"{key}"'


def of_values(asked: Comparison, key: str) -> str:
    """One row per value of the key: how many requests of each set have it, and which share; those that differ most first."""
    counts = [f"count(*) filter (where {looked(name)}) as requests_{name}" for name in ("a", "b")]
    shares = [f"requests_{name} / sum(requests_{name}) over () as share_{name}" for name in ("a", "b")]
    return (
        f"with {asked.sets},\n"
        f"counted as (select {expression(key)} as value, {', '.join(counts)} from sets, sizes group by 1),\n"
        f"shares as (select *, {', '.join(shares)} from counted)\n"
        "select value, requests_a, requests_b, share_a, share_b, share_a - share_b as gap\nfrom shares\nwhere requests_a + requests_b > 0\n"
        f"order by abs(gap) desc, value\nlimit {SHOWN_VALUES}"
    )


def of_numbers(asked: Comparison, key: str) -> str:
    """One row per set: how many requests have the number, its mean, median and 95th percentile."""
    of = expression(key)
    num, den, known = RATIOS.get(key, (of, "1", "true"))
    counted = f"{num} is not null and {known}"
    mean = f"sum({num}) filter (where {counted}) / sum({den}) filter (where {counted}) as mean"
    rows = [
        f"select '{name.upper()}' as set_name, count(*) as requests, count({of}) as known, {mean}, "
        f"quantile_cont({of}, 0.5) as median, quantile_cont({of}, 0.95) as p95\nfrom sets, sizes\nwhere {looked(name)}"
        for name in ("a", "b")
    ]
    return f"with {asked.sets}\n" + "\nunion all\n".join(rows) + "\norder by set_name"


def _quoted(text: str) -> str:
    return text.replace("'", "''")
