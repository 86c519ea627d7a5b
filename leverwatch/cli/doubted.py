"""A report's period in, what of its values was set aside or is suspect out, in words: a report must not look whole where it is not."""

from __future__ import annotations

from datetime import datetime

from leverwatch.connection import Connection
from queries import files
from queries.report import moment

MOST_SENTENCES = 5


def told(connection: Connection, since: str | None, until: str | None, now: datetime) -> list[str]:
    """A sentence for each column and trap, those of most values first.

    Raises:
        ReportError, SqlError: a time that cannot be read; the store cannot be asked.
    """
    period = {name: moment(text, now).isoformat() if text else None for name, text in (("since", since), ("until", until))}
    rows = connection.ask(files.question("doubted"), period).frame().rows()
    sentences = [_sentence(*row) for row in rows[:MOST_SENTENCES]]
    left = len(rows) - MOST_SENTENCES
    return [*sentences, f"and {left} more such columns and traps: `leverwatch doctor` has them"] if left > 0 else sentences


def _sentence(severity: str, column: str, trap: str | None, upstream: str | None, count: int) -> str:
    named = f": {trap}" if trap else ""
    source = f" ({upstream})" if upstream else ""
    if severity == "quarantined":
        values = "1 value" if count == 1 else f"{count:,} values"
        return f"{values} of {column} in this period {'was' if count == 1 else 'were'} set aside as impossible{named}{source}"
    return f"{column} of {count:,} request{'' if count == 1 else 's'} in this period is suspect{named}{source}"
