"""An id in, the request with it, its spans, and what is usual in its segment out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dashboards.choice import Choice, ChoiceError
from dashboards.reader import Reader
from pipeline.segments import JUDGING_KEYS
from queries import files
from queries.report import moment

NEAR = timedelta(hours=1)  # around a time that the link names
FIRST = timedelta(hours=24)  # what is looked through before everything is
AROUND = timedelta(minutes=5)  # of a request, in which its spans lie
SEGMENT_OF = timedelta(minutes=5)  # before and behind it, whose requests are its company
EXAMPLES_OF, EXAMPLES = timedelta(hours=1), 5
DEFAULT_SINCE = "1h"  # what is listed of a longer period is its last hour
LONGEST_ID = 300
EVER = datetime.min.replace(year=1970).astimezone()
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Found:
    """A request, the others of the same id or trace, its spans, what was set aside of it, and the medians of its company (`n` of them)."""

    row: Row
    others: Sequence[Row]
    spans: Sequence[Row]
    aside: Sequence[Row]
    company: Row


def looked_up(query: Mapping[str, str], until: datetime) -> tuple[str, datetime | None]:
    """(the id that a URL asks for, about when the request began). Raises ChoiceError, queries.report.ReportError."""
    text, at = query.get("id", "").strip(), query.get("at", "")
    if len(text) > LONGEST_ID:
        msg = f"id of {len(text)} characters: at most {LONGEST_ID} are taken"
        raise ChoiceError(msg)
    return text, moment(at, until) if at else None


def found(reader: Reader, text: str, at: datetime | None, until: datetime) -> Found | None:
    """The request with this id, or the newest of the trace with it; None where there is none."""
    rows = _rows(reader, text, at, until)
    if not rows:
        return None
    row = min(rows, key=lambda one: abs(one["started_at"] - at)) if at else rows[0]
    around = {"since": row["started_at"] - AROUND, "until": (row["ended_at"] or row["started_at"]) + AROUND}
    ids = {"trace_id": row["trace_id"], "request_id": row["request_id"]}
    spans = reader.frame(files.question("page_request_spans"), around | ids).to_dicts()
    aside = reader.frame(files.question("page_request_quarantine"), ids | {"started_at": row["started_at"]}).to_dicts()
    company = reader.frame(files.question("page_request_segment"), company_of(row)).to_dicts()[0]
    return Found(row, [one for one in rows if one is not row], spans, aside, company)


def company_of(row: Row) -> dict[str, Any]:
    """The parameters of `page_request_segment`: the requests of its segment around its time."""
    period = {"since": row["started_at"] - SEGMENT_OF, "until": row["started_at"] + SEGMENT_OF}
    return {**period, **{key: row[key] for key in JUDGING_KEYS}}


def examples_of(chosen: Choice) -> dict[str, Any]:
    """The parameters of `page_request_examples`: the last hour of what is chosen."""
    keys = {key: chosen.keys.get(key) for key in (*JUDGING_KEYS, "temperature_bucket", "tenant")}
    return {**keys, "since": max(chosen.since, chosen.until - EXAMPLES_OF), "until": chosen.until, "rows": EXAMPLES}


def _rows(reader: Reader, text: str, at: datetime | None, until: datetime) -> list[dict[str, Any]]:
    """Looks near the time that is known; else through the newest day, then through everything."""
    ends = until + FIRST
    steps = [(at - NEAR, at + NEAR)] if at else []
    for since, before in (*steps, (until - FIRST, ends), (EVER, until - FIRST)):
        when = reader.frame(files.question("page_request_when"), {"id": text, "since": since, "until": before})["started_at"].to_list()
        if when:
            near = {"since": min(when), "until": max(when) + timedelta(microseconds=1)}
            return reader.frame(files.question("page_request"), {"id": text, **near}).to_dicts()
    return []
