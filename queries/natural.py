"""A kind of natural experiment in, the statement out that gives its two sides' sums: three questions, one inside the other."""

from __future__ import annotations

from queries import files


def statement(kind: str) -> str:
    """The SQL of `natural_<kind>.sql` over marked requests, summed up; parameters $lever, $since, $until, $block_s.

    One row per metric, side (`treated`, `without`), stratum, replica and block. Raises UnknownQuestionError with the known names.
    """
    marked, sided, sums = (files.question(f"natural_{name}") for name in ("marked", kind, "sums"))
    return f"with marked as (\n{marked}\n), sided as (\n{sided}\n), answered as (\n{sums}\n)\nfrom answered\norder by all"
