"""Flips with whole notices, deliveries that got through and did not, and silences, made up for the tests of the notices page."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from dashboards_rows import FLEETS, HOSTILE, NOTICE, NOW

from pipeline.segments import canonical
from queries.store import Store

AT = NOW - timedelta(hours=3)
HOUR = timedelta(hours=1)
WHOLE = NOTICE | {
    "evidence": [
        {
            "metric": "net_itl_s",
            "treated": 0.0276,
            "control": 0.024,
            "gain": -0.15,
            "interval": [-0.2, -0.1],
            "n_treated": 4120,
            "n_control": 1010,
            "blocks": 36,
            "basis": "control",
            "coverage": 1.0,
            "note": HOSTILE,
        },
        {"metric": HOSTILE, "treated": None, "control": None, "gain": None, "interval": [None, None], "blocks": 0},
    ],
    "ledger": {"rows": [], "said": "4 ms saved, 9 ms spent"},
    "after_check": None,
    "steps": ["Shorten the drafts.", f"Not {HOSTILE}."],
    "impact": {"requests_per_hour": 1240.0, "share_of_segment": 0.84, "share_of_all": 0.063, "lost_s_per_1k_requests": 420.0},
    "served_by": {"engines": ["vllm"], "arm": "treated", "replicas": ["r1", "r2", HOSTILE], "more_replicas": 4},
}


def add(store: Store) -> None:
    """Notices of every kind, beside whatever rows there are."""
    other, odd = canonical(FLEETS[0].keys), canonical(FLEETS[4].keys)
    flips = [
        _flip("f3", odd, "on", "off_recommended", AT, HOSTILE, action="shorten", severity="critical"),
        _flip(
            "f4", other, "on", "off_recommended", AT - HOUR, "no harm meant", action="disable", severity="info", shadow=True, policy="trial"
        ),
        _flip("f5", other, "off_recommended", "on", AT, "it pays again", action="enable", severity="info", shadow=True, policy="trial"),
        _flip("f6", '{"model":"long ago"}', "on", "off_recommended", NOW - timedelta(days=20), "old", lever="tensor_parallel"),
    ]
    sent = [
        _sent("e1", "f3", "w3", 1, "retrying", AT, 503, "busy", AT + HOUR),
        _sent("e2", "f3", "w3", 2, "failed", AT + HOUR, None, HOSTILE),
        _sent("e3", "test", "w4", 1, "delivered", AT, 200),
        _sent("e4", "f3", "w5", 0, "pending", AT, upcoming_at=AT, receiver="chat"),
    ]
    with store.write() as transaction:
        transaction.insert("flips", pl.DataFrame(flips, infer_schema_length=None))
        transaction.insert("deliveries", pl.DataFrame(sent, infer_schema_length=None))
        transaction.insert("silences", pl.DataFrame([_silence("a" * 32, model="*script*"), _silence("b" * 32, hours=-2)]))


def _flip(flip_id: str, segment: str, before: str, after: str, at: datetime, reason: str, **more: Any) -> dict[str, Any]:
    row = {"flip_id": flip_id, "policy": "speculation", "lever": "speculation", "segment": segment, "state_before": before}
    row |= {"state_after": after, "decided_at": at, "reason": reason, "notice": json.dumps(WHOLE)}  # type: ignore[dict-item]
    return {**row, "action": "disable", "severity": "warning", "shadow": False, **more}


def _sent(
    delivery_id: str,
    flip_id: str,
    webhook_id: str,
    attempt: int,
    outcome: str,
    at: datetime,
    status_code: int | None = None,
    error: str | None = None,
    upcoming_at: datetime | None = None,
    receiver: str = "oncall",
) -> dict[str, Any]:
    named = {"delivery_id": delivery_id, "flip_id": flip_id, "webhook_id": webhook_id, "receiver": receiver, "attempt": attempt}
    ended_at = None if outcome == "pending" else at
    said = {"outcome": outcome, "error": error, "next_attempt_at": upcoming_at}
    return {**named, "started_at": at, "ended_at": ended_at, "status_code": status_code, **said}


def _silence(silence_id: str, model: str | None = None, hours: float = 5) -> dict[str, Any]:
    said = {"lever": "speculation", "policy": None, "receiver": None, "flip_id": None, "created_by": "somebody", "comment": HOSTILE}
    times = {"starts_at": NOW - 4 * HOUR, "ends_at": NOW + hours * HOUR, "created_at": NOW - 4 * HOUR, "ended_at": None}
    return {"silence_id": silence_id, **said, **times, "segment": json.dumps({"model": model}) if model else None}
