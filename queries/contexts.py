"""The statement that gives a lever's time per output token by the length of the context: two questions, one inside the other."""

from __future__ import annotations

from queries import files


def statement() -> str:
    """The SQL; parameters $lever, $since, $until, $block_s, and $names and $edges of the buckets. One row per arm, bucket and block."""
    marked, sums = (files.question(name) for name in ("natural_marked", "break_even_contexts"))
    return f"with marked as (\n{marked}\n)\n{sums}"
