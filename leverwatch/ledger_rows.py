"""The stored ledger and what waits in the spool in, rows and metrics of what became of everything received out."""

from __future__ import annotations

from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from leverwatch.engine_room import EngineRoom
from queries import files

OUTCOMES = ("stored", "duplicate", "rejected", "dropped", "pending")
NOTHING: dict[str, Any] = {"received": 0, "stored": 0, "duplicate": 0, "rejected": 0, "dropped": 0, "late": 0, "reasons": []}


def ledger_rows(room: EngineRoom, sender: str | None) -> list[dict[str, Any]]:
    """One row per sender and signal: received = stored + duplicate + rejected + dropped + pending, in items.

    A partition of Kafka has `lag_messages`: how many it holds that were not read yet.
    """
    waiting = {key: count for key, count in room.loader.waiting.counts().items() if sender in (None, key[0])}
    stored = {(row["sender"], row["signal"]): row for row in room.store.rows(files.question("ledger"), {"sender": sender})}
    lags = {key: lag for key, lag in room.lags().items() if sender in (None, key[0])}
    rows: list[dict[str, Any]] = []
    for key in sorted(stored.keys() | waiting.keys() | lags.keys()):
        row = NOTHING | {"sender": key[0], "signal": key[1]} | stored.get(key, {})
        count = waiting.get(key, 0)
        lag = {"lag_messages": lags[key]} if key in lags else {}
        rows.append(row | {"received": row["received"] + count, "pending": count, "pending_bytes": room.spool.backlog_bytes} | lag)
    return rows


def pending(room: EngineRoom) -> dict[str, int]:
    """Items that were acknowledged and are not loaded yet, by signal."""
    found: dict[str, int] = {}
    for (_, signal), count in room.loader.waiting.counts().items():
        found[signal] = found.get(signal, 0) + count
    return found


def ledger_sums(room: EngineRoom) -> dict[str, dict[str, int]]:
    """What became of everything received, by signal: received = stored + duplicate + rejected + dropped + pending, in items."""
    waits = pending(room)
    sums = {row.pop("signal"): row for row in room.store.rows(files.question("ledger_sums"))}
    for signal in waits.keys() - sums.keys():
        sums[signal] = dict.fromkeys(("received", *OUTCOMES[:-1]), 0)
    return {
        signal: row | {"received": row["received"] + waits.get(signal, 0), "pending": waits.get(signal, 0)}
        for signal, row in sorted(sums.items())
    }


def item_family(rows: list[dict[str, Any]]) -> Family:
    """The ledger as a family of Prometheus: the items of every signal."""
    items = GaugeMetricFamily("leverwatch_items", "Items of every signal by what became of them.", labels=["signal", "outcome"])
    for signal in sorted({row["signal"] for row in rows}):
        for outcome in OUTCOMES:
            items.add_metric([signal, outcome], sum(row[outcome] for row in rows if row["signal"] == signal))
    return items
