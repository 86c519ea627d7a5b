"""A server's own answers, made up for the page tests: as `/api/doctor`, `/api/storage` and `/readyz` give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dashboards_rows import HOSTILE, NOW


def column(name: str, state: str = "complete", coverage: float = 1.0, why: str = "") -> dict[str, Any]:
    """One column of a replica's diagnosis."""
    return {"column": name, "group": "tokens", "state": state, "coverage": coverage, "why": why}


def core(name: str, state: str = "computed", coverage: float = 1.0, why: str = "") -> dict[str, Any]:
    """One core metric of a replica's diagnosis."""
    return {"metric": name, "state": state, "requests": 10, "coverage": coverage, "lacks": [], "why": why}


def replica(name: str, requests: int, **parts: Any) -> dict[str, Any]:
    """One replica of a diagnosis."""
    return {"replica": name, "dialect": "vllm", "stands": "requests", "requests": requests, "columns": [], "core": [], **parts}


def entry(sender: str, **counts: Any) -> dict[str, Any]:
    """A row of the ledger: nothing but what is stated became of what the sender sent."""
    nothing = dict.fromkeys(("received", "stored", "duplicate", "rejected", "dropped", "pending", "late"), 0)
    return {"sender": sender, "signal": "traces", **nothing, "reasons": [], **counts}


def diagnosis(**parts: Any) -> dict[str, Any]:
    """A diagnosis with nothing in it but what is stated."""
    lists: dict[str, Any] = {
        name: [] for name in ("replicas", "sampling", "unknown", "quarantine", "suspicions", "senders", "scrapes", "ledger", "late_samples")
    }
    fresh = {"newest_event_at": (NOW - timedelta(seconds=4)).isoformat(), "unassembled": 0}
    return {"since": (NOW - timedelta(hours=1)).isoformat(), "until": NOW.isoformat(), "freshness": fresh, **lists, **parts}


QUIET_STORAGE: dict[str, Any] = {"holdings": [], "free_bytes": 50_000_000_000, "min_free_bytes": 1_000_000_000, "dropped": []}
QUIET_STATE: dict[str, Any] = {"errors": {}, "backlog_bytes": 0}
FULL = diagnosis(
    ledger=[
        entry(HOSTILE, received=10, stored=8, rejected=1, reasons=[{"reason": HOSTILE, "items": 1}]),
        entry("here", received=5, stored=5),
    ],
    replicas=[
        replica("a", 30, columns=[column("queue_s", "partial", 0.5, HOSTILE)], core=[core("cache_hit_rate", "missing", 0.0, "turn it on")])
    ],
    quarantine=[{"column": "cached_tokens", "reason": HOSTILE, "values": 2, "trap": "skips", "upstream": None}],
)


class MadeHouse:
    """What pages ask of the server, with the answers that it was given."""

    def __init__(self, told: Mapping[str, Any] | None = None, state: Mapping[str, Any] | None = None) -> None:
        self._told, self._state = told or FULL, state or QUIET_STATE

    def diagnosis(self) -> tuple[datetime, Mapping[str, Any]]:
        """The diagnosis."""
        return NOW, self._told

    def storage(self) -> tuple[datetime, Mapping[str, Any]]:
        """A disk with room."""
        return NOW, QUIET_STORAGE

    def state(self) -> Mapping[str, Any]:
        """How the jobs run."""
        return self._state

    def ages(self) -> Mapping[str, str]:
        """How long relations stay."""
        return {"requests": "90d", "spans": "3d"}

    def receivers(self) -> Sequence[Mapping[str, Any]]:
        """Receivers of notices."""
        return [{"name": name, "kind": "webhook", "heartbeat_s": None} for name in ("oncall", "chat", HOSTILE)]

    def remedies(self, engine: str | None) -> Mapping[str, str]:
        """What brings missing columns."""
        return {"queue_s": f"turn it on in {engine}"}
