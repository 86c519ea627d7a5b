"""How a relation's hot rows and its sealed parts read as one: the SQL that the store's views and the sandbox's share.

A span's reals are kept as such in `numbers`, its other attributes as text, and a join key that is the request id is kept once. Readers see
`signals` and `attributes` as they were; to make the latter of its two parts takes some 10 µs a span, so the parts are there too, as `texts`
and `numbers`. What was stored before, without these columns, reads the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from queries.provenance_digits import DIGITS

SEALED = ("spans", "requests")
_STORED = f"columns(lambda name: name <> '{DIGITS}')"  # what only reports read (queries/provenance_digits.py)
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
), attributes as texts, numbers from """


def relation_sql(relation: str, hot: str, files: Iterable[Path | str]) -> str:
    """The rows of a relation: those of `hot` (a table or a reader) and of its part files. No row stands in both."""
    return whole_sql(relation, f"({stored_sql(hot, files)})")


def stored_sql(hot: str, files: Iterable[Path | str]) -> str:
    """The same with the columns as they are stored."""
    by_layout: dict[str, list[str]] = {}
    for file in files:
        by_layout.setdefault(layout_of(Path(file).stem), []).append(quoted(file))
    readers = [f"read_parquet([{', '.join(some)}], union_by_name = {not layout})" for layout, some in by_layout.items()]
    return " union all by name ".join([f"select * from {hot}", *(f"select {_STORED} from {reader}" for reader in readers)])


def layout_of(stem: str) -> str:
    """What a part's name says of its columns: parts that say the same have the same, and one of them is opened to know them all.

    Names are `<hour>-<layout>-<number>`; older ones say nothing.
    """
    named = stem.split("-")
    return named[1] if len(named) > 2 else ""


def whole_sql(relation: str, stored: str) -> str:
    """Stored rows of a relation, `stored` being a name or a query in brackets, with the columns that readers see."""
    return f"{_WHOLE_SPANS.strip() if relation == 'spans' else 'select * from'} {stored}"


def quoted(text: Path | str) -> str:
    """A path as an SQL string."""
    return "'" + str(text).replace("'", "''") + "'"
