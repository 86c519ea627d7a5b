"""How a relation's hot rows and its sealed parts read as one: the SQL that the store's views and the sandbox's share."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SEALED = ("spans", "requests")


def relation_sql(hot: str, files: Iterable[Path | str]) -> str:
    """The rows of a relation: those of `hot` (a table or a reader) and of its part files. No row stands in both."""
    listed = ", ".join(quoted(file) for file in files)
    if not listed:
        return f"select * from {hot}"
    return f"select * from {hot} union all by name select * from read_parquet([{listed}], union_by_name = true)"


def quoted(text: Path | str) -> str:
    """A path as an SQL string."""
    return "'" + str(text).replace("'", "''") + "'"
