"""How a relation's hot rows and its sealed parts read as one: the SQL that the store's views and the sandbox's share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sealed:
    """A relation whose old hours are sealed. `unit` is what a newer hot row replaces as a whole; empty where rows never change."""

    relation: str
    unit: str

    @property
    def hot(self) -> str:
        """The table of its hot rows."""
        return f"{self.relation}_hot"


SEALED = {"spans": Sealed("spans", ""), "requests": Sealed("requests", "trace_id, request_id")}


def relation_sql(relation: str, hot: str, files: Iterable[Path | str]) -> str:
    """The rows of a relation: those of `hot` (a table or a reader) and of its part files, each unit once, the hot one first."""
    listed = ", ".join(quoted(file) for file in files)
    if not listed:
        return f"select * from {hot}"
    parts = f"read_parquet([{listed}], union_by_name = true)"
    unit = SEALED[relation].unit
    kept = f" where ({unit}) not in (select ({unit}) from {hot})" if unit else ""
    return f"select * from {hot} union all by name select * from (select * from {parts}{kept})"


def quoted(text: Path | str) -> str:
    """A path as an SQL string."""
    return "'" + str(text).replace("'", "''") + "'"
