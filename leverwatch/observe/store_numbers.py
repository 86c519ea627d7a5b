"""A store in, what stands in it of judging, notices and requests set aside out, as families; asked anew after a change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family

from leverwatch.observe.counts import levels
from leverwatch.prometheus_labels import bounded
from pipeline import jobs
from queries import files
from queries.store import Store

JUDGED = "select max(block_ended_at) as until from current_verdicts"
BEATS = "select receiver, ended_at, outcome from heartbeats"


class StoreNumbers:
    """The numbers that stand in one store. Safe from any thread. `receivers` are those that are configured."""

    def __init__(self, store: Store, receivers: Sequence[str]) -> None:
        self._store, self._receivers = store, receivers

    def families(self, now: datetime) -> Iterator[Family]:
        """All of them."""
        yield from self._of_judging(now)
        yield from self._of_notices()
        rows = self._store.unchanged_rows("quarantine", files.question("scrape_quarantine"))
        says = "Requests and traces that are set aside and kept, by the column whose value is impossible or odd."
        yield levels("leverwatch_quarantined", says, ("column",), (((bounded(row["column"]),), row["n"]) for row in rows))

    def _of_judging(self, now: datetime) -> Iterator[Family]:
        lag = GaugeMetricFamily("leverwatch_watermark_lag_seconds", "Seconds that event time is behind the clock; absent without any data.")
        mark = jobs.watermark(self._store)
        if mark is not None:
            lag.add_metric([], (now - mark).total_seconds())
        yield lag
        judged = GaugeMetricFamily(
            "leverwatch_judged_until_timestamp_seconds", "The end of the newest block that a verdict stands on, in seconds since 1970."
        )
        until = self._store.unchanged_rows("current_verdicts", JUDGED)[0]["until"]
        if until is not None:
            judged.add_metric([], until.timestamp())
        yield judged
        flips = self._store.unchanged_rows("flips", files.question("scrape_flips"))
        labeled = {(bounded(row["policy"]), row["lever"], row["state_after"]): row for row in flips}
        labels = ("policy", "lever", "state")
        says = "Flips that the store holds, by the state that streams flipped to."
        yield levels("leverwatch_flips", says, labels, ((key, row["flips"]) for key, row in labeled.items()))
        says = "When the newest flip was decided, in seconds since 1970 of event time."
        newest = ((key, row["decided_at"].timestamp()) for key, row in labeled.items())
        yield levels("leverwatch_newest_flip_timestamp_seconds", says, labels, newest)

    def _of_notices(self) -> Iterator[Family]:
        rows = {row["receiver"]: row for row in self._store.unchanged_rows("deliveries", files.question("scrape_deliveries"))}
        beats = {row["receiver"]: row for row in self._store.unchanged_rows("heartbeats", BEATS) if row["receiver"] in self._receivers}
        none = {"waiting": 0, "given_up": 0, "is_stopped": False, "oldest_put_in_at": None}
        every = {name: rows.get(name, none) for name in self._receivers}

        def family(name: str, says: str, value: Callable[[Mapping[str, Any]], float | None]) -> Family:
            found = {(receiver,): value(row) for receiver, row in every.items()}
            return levels(f"leverwatch_{name}", says, ("receiver",), ((key, one) for key, one in found.items() if one is not None))

        yield family("deliveries_waiting", "Notices that wait for a receiver.", lambda row: row["waiting"])
        says = "When the oldest notice that waits was put in, in seconds since 1970; absent where none waits."
        yield family("delivery_oldest_waiting_timestamp_seconds", says, lambda row: _instant(row["oldest_put_in_at"]))
        says = "Notices that were given up and stay so until somebody replays them."
        yield family("deliveries_given_up", says, lambda row: row["given_up"])
        says = "1 where a receiver answered 410 and gets nothing more until a replay is delivered."
        yield family("receiver_stopped", says, lambda row: float(row["is_stopped"]))
        says = "When the newest heartbeat was sent, in seconds since 1970; of receivers that ask for them."
        sent = (((name,), row["ended_at"].timestamp()) for name, row in beats.items())
        yield levels("leverwatch_heartbeat_timestamp_seconds", says, ("receiver",), sent)
        got = (((name,), float(row["outcome"] == "delivered")) for name, row in beats.items())
        yield levels("leverwatch_heartbeat_delivered", "1 where the newest heartbeat was delivered, else 0.", ("receiver",), got)


def lake_families(store: Store, now: datetime) -> Iterator[Family]:
    """How a lake's worker stands, as a server that follows the lake knows it."""
    rows = store.rows("select ended_at, failed from lake_rounds order by ended_at desc limit 1")
    age = GaugeMetricFamily("leverwatch_lake_round_age_seconds", "Seconds since the newest round of `leverwatch work` ended.")
    failed = GaugeMetricFamily("leverwatch_lake_round_failed_tasks", "Tasks that failed in that round.")
    if rows:
        age.add_metric([], max(now - rows[0]["ended_at"], timedelta(0)).total_seconds())
        failed.add_metric([], len(rows[0]["failed"] or ()))
    yield from (age, failed)


def _instant(at: datetime | None) -> float | None:
    return None if at is None else at.timestamp()
