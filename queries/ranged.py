"""A relation and a period in, SQL over its hot rows and over those parts alone that hold rows of the period out.

A view opens every part that is listed, which is work that grows with history; what looks only at what is new asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from queries import files, of_traces
from queries.parts import stored_sql, whole_sql
from queries.store import Store, Transaction


def relation(store: Store, transaction: Transaction, name: str, since: datetime, until: datetime) -> str:
    """A query for rows of `spans` or `requests` that holds all that began from `since` to `until`, and perhaps more."""
    return _whole(store, name, of_traces.parts_of_period(transaction, name, since, until))


def view(store: Store, transaction: Transaction, name: str, since: datetime, until: datetime) -> None:
    """Makes the same, for this transaction, the view `near_spans` or `near_requests`."""
    _make_view(store, transaction, name, of_traces.parts_of_period(transaction, name, since, until))


def view_of_traces(
    store: Store, transaction: Transaction, name: str, since: datetime, until: datetime, match: str = of_traces.MEANT
) -> None:
    """Makes it of the hot rows and those parts alone that hold rows of `working_traces`."""
    near = of_traces.parts_of_period(transaction, name, since, until)
    _make_view(store, transaction, name, of_traces.parts_that_hold(store, transaction, name, near, match))


def overlapping(store: Store, transaction: Transaction, since: datetime, until: datetime) -> str:
    """A query for rows of `requests` that holds all that were under way at some time from `since` to `until`, and perhaps more.

    Of a part of older versions it is not known when its last request ended: an hour after its last began is taken.
    """
    found = transaction.frame(
        "select \"file\" from parts where relation = 'requests' and coalesce(last_end, until + interval 1 hour) >= $since "
        'and coalesce(first_start, since) <= $until order by since, "file"',
        {"since": since, "until": until},
    )
    return f"select * from ({_stored(store, 'requests', found['file'].to_list())})"


def newest_since(transaction: Transaction, name: str, limit_rows: int) -> datetime | None:
    """Since when the parts hold about `limit_rows` of their newest rows, by what is listed of them; None where they hold no more."""
    found: datetime | None = transaction.frame(files.question("newest_parts_since"), {"relation": name, "limit_rows": limit_rows}).item()
    return found


def _stored(store: Store, name: str, files: Sequence[str]) -> str:
    return stored_sql(f"{name}_hot", [store.parts / name / file for file in files])


def _whole(store: Store, name: str, files: Sequence[str]) -> str:
    return whole_sql(name, f"({_stored(store, name, files)})")


def _make_view(store: Store, transaction: Transaction, name: str, files: Sequence[str]) -> None:
    transaction.execute(f"create or replace temp view near_{name} as {_whole(store, name, files)}")
