"""Kinds of natural experiments in, the statement out that gives both sides' sums of each: questions, one inside the other."""

from __future__ import annotations

from queries import files


def statement(*kinds: str) -> str:
    """The SQL of each `natural_<kind>.sql` over the same marked requests, summed up.

    Parameters: $lever, $since, $until, $block_s, $keys (of segments). One row per experiment, segment, metric, side (`treated`,
    `without`), stratum, block and, of rollouts, replica. Requests are read once. Raises UnknownQuestionError with the known names.
    """
    tables = [f"marked as materialized (\n{files.question('natural_marked')}\n)"]
    tables += [f"{kind} as (\n{files.question(f'natural_{kind}')}\n)" for kind in kinds]
    sides = " union all by name ".join(f"select *, '{kind}' as experiment from {kind}" for kind in kinds)
    tables += [f"sided as ({sides})", f"answered as (\n{files.question('natural_sums')}\n)"]
    return f"with {', '.join(tables)}\nfrom answered\norder by all"
