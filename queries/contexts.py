"""The statement that gives a lever's time per output token by the length of the context: two questions, one inside the other."""

from __future__ import annotations

from queries import files


def statement(requests: str | None = None) -> str:
    """The SQL; parameters $lever, $since, $until, $block_s, and $names and $edges of the buckets. One row per arm, bucket and block.

    `requests` is a query that stands for the view of this name, such as one of `queries.ranged`.
    """
    marked, sums = (files.question(name) for name in ("natural_marked", "break_even_contexts"))
    near = f"requests as (\n{requests}\n), " if requests else ""
    return f"with {near}marked as (\n{marked}\n)\n{sums}"
