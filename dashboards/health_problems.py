"""What a server says of itself and of what arrives in, what needs somebody's attention out: in words, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dashboards import theme
from dashboards.arriving import BEHIND_S, is_loading
from dashboards.health_coverage import Dialect

OUTCOMES = ("stored", "duplicate", "rejected", "dropped", "pending")
PRESSURE = 2  # times the free space below which exports are refused: from there on the oldest rows go
MOST_LISTED = 12
HOUR_S = 3600
_ORDER = ("bad", "warn")
Told = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """One thing that is not as it should be, and the section of the page that has more of it."""

    css: str
    text: str
    section: str


def problems(
    told: Told, state: Told, storage: Told, dialects: Sequence[Dialect], newest_at: datetime | None, now: datetime
) -> list[Problem]:
    """What is not as it should be."""
    found = [
        *_server(state, storage),
        *_ledger(told["ledger"]),
        *_freshness(newest_at, seen_at(told), now),
        *_sources(told),
        *_late(told),
        *_values(told),
        *(
            Problem("warn", f"{gap.names[0]} cannot be computed of requests of {dialect.name}: {gap.why}", "coverage")
            for dialect in dialects
            for gap in dialect.core
            if gap.state == "missing"
        ),
    ]
    return sorted(found, key=lambda one: _ORDER.index(one.css))


def moment(text: str | datetime | None) -> datetime | None:
    """A time as JSON has it."""
    return datetime.fromisoformat(text) if isinstance(text, str) else text


def difference(row: Told) -> int:
    """By how many items a row of the ledger does not add up: 0 where each that was received became something."""
    return int(row["received"]) - sum(int(row[name]) for name in OUTCOMES)


def _server(state: Told, storage: Told) -> Iterator[Problem]:
    for name, text in state["errors"].items():
        yield Problem("bad", f"{name} fails: {text}", "server")
    for name, text in state.get("warnings", {}).items():
        yield Problem("warn", f"{name}: {text}", "server")
    if storage["free_bytes"] < PRESSURE * storage["min_free_bytes"]:
        free, least = theme.size(storage["free_bytes"]), theme.size(storage["min_free_bytes"])
        yield Problem("warn", f"the disk has {free} free: below {least} exports are refused, and the oldest rows go already", "storage")


def _ledger(ledger: Sequence[Told]) -> Iterator[Problem]:
    for row in ledger:
        who, lost = f"{row['signal']} of {row['sender']}", row["rejected"] + row["dropped"]
        if gap := difference(row):
            yield Problem(
                "bad", f"{who}: {theme.count(abs(gap))} items received and {'not accounted for' if gap > 0 else 'told twice'}", "ledger"
            )
        if lost and row["signal"] != "scrapes":
            why = "; ".join(reason["reason"] for reason in row["reasons"][:2])
            said = f"{who}: {theme.count(lost)} of {theme.count(row['received'])} rejected or dropped"
            yield Problem("warn", f"{said}{': ' + why if why else ''}", "ledger")


def seen_at(told: Told) -> datetime | None:
    """When anything last came from any sender."""
    return max((at for row in told["senders"] if (at := moment(row["newest_arrival_at"])) is not None), default=None)


def _freshness(newest_at: datetime | None, arrived_at: datetime | None, now: datetime) -> Iterator[Problem]:
    if newest_at is None:
        yield Problem("warn", "nothing has arrived yet", "freshness")
    elif (age_s := (now - newest_at).total_seconds()) > BEHIND_S and not is_loading(newest_at, arrived_at, now):
        yield Problem("bad", f"the newest data is {theme.age(age_s)} old", "freshness")


def _sources(told: Told) -> Iterator[Problem]:
    for row in told["senders"]:
        if row["said"]:
            yield Problem("warn", f"{row['sender']}: {row['said']}", "freshness")
    failing: dict[str, list[str]] = {}
    for row in told["scrapes"]:
        if row["is_failing"]:
            failing.setdefault(row["reason"], []).append(row["sender"])
    for reason, senders in failing.items():
        yield Problem("warn", f"{_listed(senders)}: {reason}", "freshness")
    if silent := [row["replica"] or "a replica without a name" for row in told["replicas"] if row["stands"] == "silent"]:
        are = "is" if len(set(silent)) == 1 else "are"
        yield Problem("warn", f"{_listed(silent)} {are} silent: no request in {_lately(told)}", "freshness")
    for row in told["sampling"]:
        if row["state"] in ("sampled", "few"):  # with more spans than the counter counts nothing is missing
            share = theme.percent(row["fraction"])
            yield Problem(
                "warn", f"{row['replica']} sends spans of {share} of its requests{': ' + row['why'] if row['why'] else ''}", "sampling"
            )
    if unread := sum(row["spans"] for row in told["unknown"]):
        yield Problem("warn", f"{theme.count(unread)} spans of {_lately(told)} are read by no dialect", "sampling")


def _late(told: Told) -> Iterator[Problem]:
    """Requests that were settled before the samples came which say what they met."""
    rows = [row for row in told["late_samples"] if row["column"] == "batch_at_admission"]
    if rows:
        many, who = theme.count(sum(row["requests"] for row in rows)), _listed([row["replica"] for row in rows])
        said = f"{many} requests of {who} were settled before their samples came, so their batch is unknown"
        yield Problem("warn", f"{said}: send samples no later than spans", "coverage")


def _values(told: Told) -> Iterator[Problem]:
    if aside := sum(row["values"] for row in told["quarantine"]):
        said = f"{theme.count(aside)} impossible values of {_lately(told)} were set aside, and are in no number"
        yield Problem("warn", said, "quarantine")
    doubted: dict[tuple[str, str, str], list[Told]] = {}
    for row in told["suspicions"]:
        if row["severity"] != "noted":
            doubted.setdefault((row["trap"], row["column"], row["severity"]), []).append(row)
    for (_, column, severity), rows in doubted.items():
        yield Problem("warn", f"{column} of {_listed([row['replica'] for row in rows])} is {severity}: {rows[0]['seen']}", "quarantine")


def _lately(told: Told) -> str:
    """The period that was looked at: the last hour, or less where an hour holds very much."""
    since, until = moment(told["since"]), moment(told["until"])
    seconds = (until - since).total_seconds() if since and until else HOUR_S
    return "the last hour" if round(seconds) == HOUR_S else f"the last {theme.age(seconds)}"


def _listed(names: Sequence[str]) -> str:
    several = sorted(set(names))
    return ", ".join(several[:3]) + (f" and {len(several) - 3} more" if len(several) > 3 else "")
