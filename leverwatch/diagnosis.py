"""What `leverwatch doctor` says, typed: findings per replica and dialect, and what became of everything that was sent."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column of `requests`: the share of requests that have it (0..1), and where some lack it, why and what brings it."""

    column: str
    group: str
    state: Literal["complete", "partial", "missing"]
    coverage: float
    why: str = ""


class Core(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One core metric: how many requests count for it, the share that has its inputs (0..1), what the others lack, and why.

    `unasked` says which requests are not asked for it, where its engine does not say it of some.
    """

    metric: str
    state: Literal["computed", "missing", "not_applicable"]
    requests: int
    coverage: float
    lacks: tuple[str, ...] = ()
    why: str = ""
    unasked: str = ""


class Sampled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spans of a replica held against its counter of requests: a `fraction` (0..1) sent one; totals times `weight`."""

    replica: str
    state: str
    spans: int
    counted: int
    fraction: float
    weight: float | None
    why: str = ""


class Replica(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One replica in one dialect. `stands` says what is heard of it: requests, parts of others', start-up, samples alone; or silence.

    `unserved` requests were refused or given up before an engine said a word of them: they are not among `requests`, and nothing is asked
    of them. Where a replica has no others, it stands for these alone.
    """

    replica: str | None
    dialect: str | None
    version: str | None
    stands: Literal["requests", "unserved", "parts", "housekeeping", "samples", "silent"]
    roles: tuple[str, ...]
    requests: int
    spans: int
    last_seen_at: datetime
    last_seen_age_s: float
    core: tuple[Core, ...] = ()
    columns: tuple[Column, ...] = ()
    sampled: Sampled | None = None
    unserved: int = 0


class Sender(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sender's clock: its newest span end against its newest arrival, and what is odd about that; `behind_s` below 0 is ahead."""

    sender: str
    newest_end_at: datetime
    newest_arrival_at: datetime
    behind_s: float
    said: str


class Scrape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scrape target: whether its newest scrape failed, and how."""

    sender: str
    is_failing: bool
    last_scraped_at: datetime | None
    last_failed_at: datetime | None
    reason: str


class Unknown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spans that no dialect reads, by scope and service."""

    scope: str | None
    service: str | None
    spans: int


class Freshness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How new what is known is: newest event and arrival with their age, and what still waits."""

    newest_event_at: datetime | None
    newest_event_age_s: float | None
    newest_arrival_at: datetime | None
    pending: dict[str, int]
    unassembled: int


class Diagnosis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `doctor` says. `status`: 0, 1 a core metric cannot be computed of a replica with requests, 3 no requests in the period.

    `late_samples`: per replica and column the requests that were settled before the samples came that would have said it.
    """

    status: int
    since: datetime
    until: datetime
    now: datetime
    requests: int
    freshness: Freshness
    replicas: list[Replica]
    sampling: list[Sampled]
    unknown: list[Unknown]
    quarantine: list[dict[str, Any]]
    suspicions: list[dict[str, Any]]
    control: list[dict[str, Any]]
    late_samples: list[dict[str, Any]]
    senders: list[Sender]
    scrapes: list[Scrape]
    ledger: list[dict[str, Any]]
