"""Kinds of natural experiments in, the statement out that gives both sides' sums of each: questions, one inside the other."""

from __future__ import annotations

from queries import files

ROWS_COMPARED = 1_000_000


def every(requests: int) -> int:
    """Of how many requests one is compared: all of a day of up to `ROWS_COMPARED`, of a larger one so few that about so many are left."""
    return max(1, -(-requests // ROWS_COMPARED))


def statement(*kinds: str, one_in: int = 1) -> str:
    """The SQL of each `natural_<kind>.sql` over the same marked requests, one in so many by a hash of when they began, summed up.

    Parameters: $lever, $since, $until, $block_s, $keys (of segments). One row per experiment, segment, metric, side (`treated`,
    `without`), stratum, block and, of rollouts, replica. Requests are read once. Raises UnknownQuestionError with the known names.
    """
    marked = files.question("natural_marked")
    if one_in > 1:
        marked = f"select * from (\n{marked}\n) where hash(started_at) % {int(one_in)} = 0"
    tables = [f"marked as materialized (\n{marked}\n)"]
    tables += [f"{kind} as (\n{files.question(f'natural_{kind}')}\n)" for kind in kinds]
    sides = " union all by name ".join(f"select *, '{kind}' as experiment from {kind}" for kind in kinds)
    tables += [f"sided as ({sides})", f"answered as (\n{files.question('natural_sums')}\n)"]
    return f"with {', '.join(tables)}\nfrom answered\norder by all"
