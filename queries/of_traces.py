"""The traces of `working_traces` and a period in, where their rows lie out: what is new asks for a few traces among all rows of some hours.

`working_traces` says of each trace between which starts its rows are meant: from `since` to `until`, and from `replaced_since` to
`replaced_until` those that are made anew. Of the period's parts ids and starts are read, all else of those parts alone that hold such rows.

A row is matched by a semi join. With `exists` and a range DuckDB keeps all columns of all rows aside before it looks at the first trace:
minutes, and gigabytes on disk, for an hour of 12 million spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from queries.parts import layout_of, quoted
from queries.store import Store, Transaction

MEANT = "working_traces as w on w.trace_id = {rows}.trace_id and {rows}.started_at between w.since and w.until"
REPLACED = "working_traces as w on w.trace_id = {rows}.trace_id and {rows}.started_at between w.replaced_since and w.replaced_until"
IN_PERIOD = (
    'select "file" from parts where relation = $relation and coalesce(last_start, until) >= $since '
    'and coalesce(first_start, since) <= $until order by since, "file"'
)


def parts_of_period(transaction: Transaction, relation: str, since: datetime, until: datetime) -> list[str]:
    """The parts that may hold rows that began from `since` to `until`, the oldest first."""
    period = {"relation": relation, "since": since, "until": until}
    found: list[str] = transaction.frame(IN_PERIOD, period)["file"].to_list()
    return found


def parts_that_hold(store: Store, transaction: Transaction, relation: str, names: Sequence[str], match: str = MEANT) -> list[str]:
    """Those of some parts that hold rows of the traces, as `match` (`MEANT` or `REPLACED`) means them."""
    by_layout: dict[str, list[str]] = {}
    for name in names:
        by_layout.setdefault(layout_of(Path(name).stem), []).append(quoted(store.parts / relation / name))
    asked = [
        f"select distinct filename from read_parquet([{', '.join(some)}], filename = true, union_by_name = {not layout}) as part "
        f"semi join {match.format(rows='part')}"
        for layout, some in by_layout.items()
    ]
    if not asked:
        return []
    holding = {Path(name).name for name in transaction.frame(" union all ".join(asked))["filename"].to_list()}
    return [name for name in names if name in holding]
