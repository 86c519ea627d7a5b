"""How a relation's hot rows and its sealed parts read as one: the SQL that the store's views and the sandbox's share.

A span's reals are kept as such in `numbers`, beside the other `attributes`, and a join key that is the request id is kept once: readers see
neither, but `attributes` and `signals` as they were. What was stored before, without these columns, reads the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

SEALED = ("spans", "requests")
_WHOLE_SPANS = """
select * exclude (numbers, joins_by_request_id) replace (
    case when joins_by_request_id then struct_update(signals, join_key := signals.request_id) else signals end as signals,
    case
        when coalesce(cardinality(numbers), 0) = 0 then attributes
        else map(
            list_concat(map_keys(attributes), map_keys(numbers)),
            list_concat(map_values(attributes), map_values(numbers)::varchar[])
        )
    end as attributes
) from """


def relation_sql(relation: str, hot: str, files: Iterable[Path | str]) -> str:
    """The rows of a relation: those of `hot` (a table or a reader) and of its part files. No row stands in both."""
    return whole_sql(relation, f"({stored_sql(hot, files)})")


def stored_sql(hot: str, files: Iterable[Path | str]) -> str:
    """The same with the columns as they are stored."""
    listed = ", ".join(quoted(file) for file in files)
    if not listed:
        return f"select * from {hot}"
    return f"select * from {hot} union all by name select * from read_parquet([{listed}], union_by_name = true)"


def whole_sql(relation: str, stored: str) -> str:
    """Stored rows of a relation, `stored` being a name or a query in brackets, with the columns that readers see."""
    return f"{_WHOLE_SPANS.strip() if relation == 'spans' else 'select * from'} {stored}"


def quoted(text: Path | str) -> str:
    """A path as an SQL string."""
    return "'" + str(text).replace("'", "''") + "'"
