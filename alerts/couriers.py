"""One thread a receiver, so that one receiver's trouble never delays another: the store in, deliveries and heartbeats out."""

from __future__ import annotations

import functools
import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from alerts import deliver, known_receivers, outbox, silence_rows
from alerts.credentials import secret_of
from alerts.deliver import Clock, Route, Tried
from alerts.heartbeat import Heartbeats, Judging
from alerts.receivers import Receiver, distinct
from queries.store import Store

POLL_S = 5.0

log = logging.getLogger(__name__)


class Couriers:
    """The threads that carry waiting notices. Starting takes up what an earlier process left waiting.

    Raises:
        ReceiverError: two receivers share a name, or a secret cannot be had.
    """

    def __init__(
        self,
        store: Store,
        receivers: Sequence[Receiver],
        clock: Clock,
        environ: Mapping[str, str],
        seed: int = 0,
        told: Callable[[Tried], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._stopping = threading.Event()
        self._routes = [
            Route(receiver, secret_of(receiver, environ), deliver.client(), random.Random(f"{seed} {receiver.name}"), read, told)  # noqa: S311
            for receiver in distinct(receivers)
            for read in (functools.partial(secret_of, receiver, environ),)
        ]
        self._called = [threading.Event() for _ in self._routes]
        self._threads = [
            threading.Thread(target=self._carry, args=(route, called), name=f"courier {route.receiver.name}", daemon=True)
            for route, called in zip(self._routes, self._called, strict=True)
        ]
        self._heartbeats = Heartbeats(store, self._routes, clock)
        self._seen: dict[str, tuple[object, ...]] = {}
        self._newcomers: set[str] | None = None

    def start(self) -> None:
        """Starts a thread for each receiver."""
        for thread in self._threads:
            thread.start()
        self._heartbeats.start()

    def hand_over(self, newest_watermark: datetime, *, caught_up: bool) -> int:
        """Puts the flips that are due into the outbox and wakes who has something to carry; gives how many."""
        number, now = 0, self._clock()
        if self._newcomers is None:
            names = [route.receiver.name for route in self._routes]
            self._newcomers = set(known_receivers.newcomers(self._store, names, now))
        seen = (caught_up, *self._changes(now))
        for route, called in zip(self._routes, self._called, strict=True):
            if self._seen.get(route.receiver.name) == seen:
                continue
            name = route.receiver.name
            is_new = name in self._newcomers
            put_in = outbox.put_in(self._store, route.receiver, newest_watermark, now, caught_up=caught_up, is_new=is_new)
            self._seen[name] = seen
            if caught_up:
                self._newcomers.discard(name)
            number += put_in
            if put_in:
                called.set()
        return number

    def note_judging(self, judging: Judging) -> None:
        """Takes note that judging ran: what heartbeats tell."""
        self._heartbeats.note(judging)

    def wake(self) -> None:
        """Makes every thread look at what waits now."""
        for called in self._called:
            called.set()

    def stop(self, timeout_s: float = deliver.TIMEOUT_S) -> None:
        """Ends the threads after the attempts in hand; what does not end in time is taken up again at the next start."""
        self._stopping.set()
        self.wake()
        self._heartbeats.stop()
        deadline = time.monotonic() + timeout_s
        for thread in (*self._threads, *self._heartbeats.threads):
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        for route in self._routes:
            route.client.close()

    def _changes(self, now: datetime) -> tuple[object, ...]:
        """What can make another flip due: new rows, and silences that begin or end. Time alone makes none due."""
        lasting = (silence.silence_id for silence in silence_rows.since(self._store, now) if silence.state(now) == "active")
        return (*(self._store.version(relation) for relation in ("flips", "deliveries", "silences")), *lasting)

    def _carry(self, route: Route, called: threading.Event) -> None:
        while not self._stopping.is_set():
            called.clear()
            pause_s = POLL_S
            try:
                due = deliver.deliver_waiting(self._store, route, self._clock)
                if due is not None:
                    pause_s = min(max((due - self._clock()).total_seconds(), 0.05), POLL_S)
            except Exception:
                # A thread that died would drop every later notice without a word: say it and try again.
                if not self._stopping.is_set():
                    said, name = "receiver %s: carrying notices failed; trying again in %s s", route.receiver.name
                    log.exception(said, name, POLL_S, extra={"receiver": name})
            called.wait(pause_s)
