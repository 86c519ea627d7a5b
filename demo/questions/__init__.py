"""Questions that a scenario's truth answers: plain SQL over the product's tables, filled in for a lever, a segment and a period.

A question gives one row with one column, `value`. What it is filled with: `$lever`, `$segment` (a condition), `$since` and `$until`.
"""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from importlib import resources

from demo.scenarios.layout import Scenario, Truth


class QuestionError(ValueError):
    """A question is unknown."""


def names() -> tuple[str, ...]:
    """The names of all questions, sorted."""
    return tuple(sorted(entry.name.removesuffix(".sql") for entry in resources.files(__name__).iterdir() if entry.name.endswith(".sql")))


def filled(truth: Truth, since: datetime, until: datetime) -> str:
    """The SQL that tells the truth's value over a period. Raises QuestionError."""
    if truth.question not in names():
        msg = f"question {truth.question!r} is unknown; known: {', '.join(names())}"
        raise QuestionError(msg)
    text = (resources.files(__name__) / f"{truth.question}.sql").read_text(encoding="utf-8")
    conditions = [f"{key} = {_quoted(value)}" for key, value in truth.segment.items()] or ["true"]
    fill = {"lever": _quoted(truth.lever), "segment": " and ".join(conditions), "since": _moment(since), "until": _moment(until)}
    return string.Template(text).substitute(fill)


def periods(scenario: Scenario, truth: Truth, began: datetime) -> dict[str, tuple[datetime, datetime]]:
    """The periods in which the truth is one thing: `before`, and `after` where something changes, from when it has changed fully.

    The first half hour is left out: what is cached and queued has to come about.
    """
    began_at, ended_at = began + timedelta(minutes=30), began + timedelta(hours=scenario.hours)
    if truth.from_hour is None:
        return {"before": (began_at, ended_at)}
    changed_at = began + timedelta(hours=truth.from_hour)
    over_hours = max(
        (change.from_hour + change.over_hours for change in scenario.changes if change.from_hour <= truth.from_hour), default=0.0
    )
    settled_at = began + timedelta(hours=max(over_hours, truth.from_hour)) + timedelta(minutes=30)
    return {"before": (began_at, changed_at), "after": (settled_at, ended_at)}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _moment(at: datetime) -> str:
    return f"timestamptz '{at.astimezone(UTC).isoformat()}'"
