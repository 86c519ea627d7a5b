"""A period in, what of its values was set aside or is suspect out, in words for the page."""

from __future__ import annotations

from datetime import datetime

from dashboards.reader import Reader
from queries import files

MOST = 3
WHERE_MORE = "leverwatch doctor says where and why"


def told(reader: Reader, since: datetime, until: datetime) -> str:
    """A sentence with the traps that most values of the period fell into; empty where none did."""
    rows = reader.frame(files.question("doubted"), {"since": since, "until": until}).to_dicts()
    if not rows:
        return ""
    named = [f"{row['n']:,} of {row['column']}, {_trap(row)}" for row in rows[:MOST]]
    left = [f"{len(rows) - MOST} more traps"] if len(rows) > MOST else []
    return f"Values set aside or suspect in this period: {'; '.join([*named, *left])}. {WHERE_MORE}."


def _trap(row: dict[str, str | None]) -> str:
    upstream = f" ({row['upstream']})" if row["upstream"] else ""
    return f"{row['trap'] or 'an impossible value'}{upstream}"
