"""The spans of a request in, each with everything that it says for reading out: long texts cut, nothing left out in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dashboards import theme

LONGEST = 400
MOST = 120
Row = Mapping[str, Any]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True)
class Span:
    """One span: a title, what it was read as, and its attributes, resource, events and links as (name, text)."""

    span_id: str
    title: str
    facts: list[str]
    signals: Pairs
    attributes: Pairs
    resource: Pairs
    events: Pairs
    links: Pairs
    is_error: bool


def spans(rows: Sequence[Row]) -> list[Span]:
    """The spans in their order."""
    return [_span(row) for row in rows]


def cut(text: Any) -> str:
    """A stranger's text, at most so long; says how much was cut."""
    told = str(text)
    return told if len(told) <= LONGEST else f"{told[:LONGEST]}… ({len(told):,} characters)"


def _span(row: Row) -> Span:
    facts = [
        f"{row['role'] or 'role unknown'} of {row['dialect'] or 'no known dialect'}",
        f"{row['started_at'].astimezone(UTC):%H:%M:%S.%f} UTC for {theme.shown(row['duration_s'], 's')}",
        f"kind {row['kind']}, status {cut(row['status'])}{': ' + cut(row['status_message']) if row['status_message'] else ''}",
        f"replica {cut(row['replica'] or 'unknown')}, sent by {cut(row['sender'])}",
        f"scope {cut(row['scope'] or 'none')}, service {cut(row['service'] or 'none')}",
        f"span {row['span_id']} of trace {row['trace_id']}, below {row['parent_span_id'] or 'none'}",
    ]
    signals = {name: value for name, value in (row["signals"] or {}).items() if value is not None}
    marks = {f"lever {name}": value for name, value in (row["levers"] or {}).items()}
    marks |= {f"arm {name}": value for name, value in (row["arms"] or {}).items()}
    return Span(
        row["span_id"],
        cut(row["name"]),
        facts,
        _pairs((signals | marks).items()),
        _pairs(sorted(row["attributes"].items())),
        _pairs(sorted(row["resource"].items())),
        _pairs(_event(event) for event in row["events"] or ()),
        _pairs((f"{link['trace_id']} {link['span_id']}", _listed(link["attributes"])) for link in row["links"] or ()),
        row["status"] == "error",
    )


def _event(event: Row) -> tuple[str, str]:
    at = datetime.fromtimestamp(event["time_unix_nano"] / 1e9, UTC)
    return f"{event['name']} at {at:%H:%M:%S.%f}", _listed(event["attributes"])


def _listed(attributes: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} = {value}" for name, value in (attributes or {}).items())


def _pairs(items: Iterable[tuple[Any, Any]]) -> Pairs:
    """Names and texts, cut; what is beyond the most that are shown is counted."""
    told = [(cut(name), cut(value)) for name, value in items]
    return told if len(told) <= MOST else [*told[:MOST], ("and more", f"{len(told) - MOST:,} not shown")]
