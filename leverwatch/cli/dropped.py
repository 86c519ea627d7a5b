"""A report's period in, what retention dropped of it out, in words: a report must not be taken for whole where it is not."""

from __future__ import annotations

from datetime import datetime

from leverwatch.connection import Connection
from queries.report import moment

_ASKED = (
    'select min(since) as since, max(until) as until, sum("rows")::bigint as held, reason from retention_log '
    "where relation = 'requests' and until > $since::timestamptz and ($until::timestamptz is null or since < $until::timestamptz) "
    "group by reason order by since"
)
_REASONS = {"age": "for their age", "size": "for their size", "disk": "because the disk was nearly full", "lost": "as lost"}


def told(connection: Connection, since: str | None, until: str | None, now: datetime) -> list[str]:
    """A sentence for each reason for which requests of a period were dropped. Without `since` everything stored is meant: none.

    Raises:
        ReportError, SqlError: a time that cannot be read; the store cannot be asked.
    """
    if not since:
        return []
    period = {"since": moment(since, now).isoformat(), "until": moment(until, now).isoformat() if until else None}
    return [_sentence(*row) for row in connection.ask(_ASKED, period).frame().rows()]


def _sentence(first: datetime, last: datetime, held: int, reason: str) -> str:
    period = f"from {first:%Y-%m-%dT%H:%MZ} to {last:%Y-%m-%dT%H:%MZ}"
    why = _REASONS.get(reason, reason)
    if held == 1:
        return f"1 request of this period, {period}, was dropped {why.replace('their', 'its')}"
    return f"{held:,} requests of this period, {period}, were dropped {why}"
