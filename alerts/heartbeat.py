"""Heartbeats: when judging last ran in, a signed `evaluator.heartbeat` to each receiver that asks for it out.

One is sent only if judging has run since the last one, so a judge that is stuck, fails or is dead falls silent, and whoever waits for the
next heartbeat notices. None is ever queued: while a receiver is away its heartbeats are lost, and the next one is new.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import polars as pl

from alerts import canonical, deliver, outbox, payload, wording
from alerts.deliver import DeliveryError, Route
from alerts.payload import Message
from queries.store import Store

POLL_S = 5.0
_GONE = 410
_STREAMS = """
select count(*) as streams,
    count(*) filter (where state = 'off_recommended' and not coalesce(p.shadow, false)) as open_recommendations,
    count(*) filter (where state = 'off_recommended' and p.shadow) as shadow_recommendations,
    count(*) filter (where verdict = 'frozen') as frozen
from current_verdicts join policies p using (policy, lever)
"""
_HEARD = "select 1 from deliveries where receiver = $receiver and outcome = 'delivered' and ended_at > $since limit 1"

log = logging.getLogger(__name__)


class Judging(NamedTuple):
    """When judging last ran through without an error, and the newest event time then."""

    judged_at: datetime
    watermark: datetime | None


class Beat(NamedTuple):
    """The newest heartbeat to a receiver."""

    judged_at: datetime
    started_at: datetime
    ended_at: datetime
    outcome: str


def message(store: Store, judging: Judging, now: datetime) -> Message:
    """What a heartbeat says: when judging ran, how far data goes, how many streams there are and how many of them recommend something.

    What policies in shadow recommend is counted apart: nobody was told of it.
    """
    watermark = None if judging.watermark is None else wording.utc(judging.watermark)
    counts = store.rows(_STREAMS)[0]
    return Message("evaluator.heartbeat", now, {"judged_at": wording.utc(judging.judged_at), "watermark": watermark, **counts})


def is_due(last: Beat | None, judging: Judging, every_s: float, now: datetime) -> bool:
    """Whether the next heartbeat is due: judging has run since the last one, and its time has come, or the clock was set back."""
    if last is None:
        return True
    waited_s = (now - last.started_at).total_seconds()
    return judging.judged_at != last.judged_at and (waited_s >= every_s or waited_s < 0)


def last(store: Store, receiver: str) -> Beat | None:
    """The newest heartbeat to a receiver; None where there was none."""
    rows = store.rows("select judged_at, started_at, ended_at, outcome from heartbeats where receiver = $receiver", {"receiver": receiver})
    return Beat(**rows[0]) if rows else None


def beat(store: Store, route: Route, judging: Judging, clock: Callable[[], datetime]) -> Beat:
    """Sends a heartbeat once, under an id of its own, and stores what came of it in the place of the one before."""
    started_at, name = clock(), route.receiver.name
    webhook_id = f"msg_{canonical.digest(['heartbeat', name, wording.utc(started_at)])[:32]}"
    status, error = None, None
    try:
        status = deliver.send(route, webhook_id, payload.text(message(store, judging, started_at)), started_at)
        outcome = "delivered"
    except DeliveryError as failed:
        outcome, status, error = "gone" if failed.status_code == _GONE else "failed", failed.status_code, str(failed)
    done = Beat(judging.judged_at, started_at, clock(), outcome)
    keep(store, name, webhook_id, done, status, error)
    return done


def keep(store: Store, receiver: str, webhook_id: str, newest: Beat, status_code: int | None, error: str | None) -> None:
    """Stores what came of a heartbeat in the place of the one before."""
    row = {"receiver": receiver, "webhook_id": webhook_id, **newest._asdict(), "status_code": status_code, "error": error}
    kinds = {"status_code": pl.Int64(), "error": pl.String()}
    with store.write() as transaction:
        transaction.execute("delete from heartbeats where receiver = $receiver", {"receiver": receiver})
        transaction.insert("heartbeats", pl.DataFrame([row], schema_overrides=kinds))


def is_gone(store: Store, receiver: str, last: Beat | None) -> bool:
    """Whether a receiver wants nothing more: it answered 410 to a notice or heartbeat, and nothing has got through to it since."""
    if last is not None and last.outcome == "gone" and not store.rows(_HEARD, {"receiver": receiver, "since": last.ended_at}):
        return True
    return outbox.stopped(store, receiver)


class Heartbeats:
    """One thread for each receiver that asks for heartbeats, beside its courier: neither waits for the other."""

    def __init__(self, store: Store, routes: Sequence[Route], clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._judging: Judging | None = None
        self._stopping = threading.Event()
        asked = [(route, route.receiver.heartbeat_s) for route in routes]
        self._routes = [(route, every_s, threading.Event()) for route, every_s in asked if every_s is not None]
        self.threads = [
            threading.Thread(target=self._carry, args=carried, name=f"heartbeat {carried[0].receiver.name}", daemon=True)
            for carried in self._routes
        ]

    def start(self) -> None:
        """Begins; nothing is sent before the first `note`."""
        for thread in self.threads:
            thread.start()

    def note(self, judging: Judging) -> None:
        """Takes note that judging ran."""
        self._judging = judging
        for _, _, called in self._routes:
            called.set()

    def stop(self) -> None:
        """Lets the threads end after the heartbeat in hand."""
        self._stopping.set()
        for _, _, called in self._routes:
            called.set()

    def _carry(self, route: Route, every_s: float, called: threading.Event) -> None:
        while not self._stopping.is_set():
            called.clear()
            judging, name = self._judging, route.receiver.name
            try:
                newest = last(self._store, name)
                if judging and is_due(newest, judging, every_s, self._clock()) and not is_gone(self._store, name, newest):
                    beat(self._store, route, judging, self._clock)
            except Exception:
                if not self._stopping.is_set():
                    log.exception("receiver %s: its heartbeat failed; trying again in %s s", name, POLL_S)
                    self._stopping.wait(POLL_S)
            called.wait()
