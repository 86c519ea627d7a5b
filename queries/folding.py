"""The ledger's rows in, fewer of them with the same sums out: a row a batch becomes one a minute, and after a week one a day."""

from __future__ import annotations

from datetime import datetime, timedelta

from queries import files
from queries.store import Store

OPEN_FOR = timedelta(minutes=10)  # batches of a minute that was received longer ago are all loaded, as a rule
DAYS_AFTER = timedelta(days=7)


def fold_next(store: Store, now: datetime) -> int:
    """Folds the oldest hour that has several rows for a minute, or the oldest day that has them for a day; gives how many rows went.

    Ages count back from the newest row. One transaction; 0 when nothing is to be folded.
    """
    newest = store.rows("select max(minute) as newest from ingest_entries")[0]["newest"]
    if newest is None:
        return 0
    newest = min(newest, now)
    return _fold(store, "hour", "minute", newest - OPEN_FOR, newest - DAYS_AFTER) or _fold(store, "day", "day", newest - DAYS_AFTER, None)


def _fold(store: Store, stretch: str, unit: str, before: datetime, after: datetime | None) -> int:
    """Folds the oldest whole stretch between two moments that has more rows than senders, signals and units."""
    found = store.rows(
        f"select date_trunc('{stretch}', minute) as since from ingest_entries "
        f"where minute < date_trunc('{stretch}', $before::timestamptz) and ($after::timestamptz is null or minute >= $after::timestamptz) "
        f"group by since having count(*) > count(distinct (sender, signal, date_trunc('{unit}', minute))) order by since limit 1",
        {"before": before, "after": after},
    )
    if not found:
        return 0
    since = found[0]["since"]
    period = {"since": since, "until": since + timedelta(**{f"{stretch}s": 1})}
    with store.write() as transaction:
        transaction.execute(files.question("ledger_folded"), period | {"unit": unit})
        removed = transaction.execute("delete from ingest_entries where minute >= $since and minute < $until", period)
        kept = transaction.execute("insert into ingest_entries by name select * from folded")
        transaction.execute("drop table folded")
    return removed - kept
