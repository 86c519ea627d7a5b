"""The alerts' HTTP face: the store in, verdicts, flips, deliveries, receivers and silences out, as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from fastapi import APIRouter

from alerts import api_answers, api_receivers, api_silences, outbox
from alerts.api_answers import Lever, Limit, Since, Until
from alerts.levers import Action, State, Verdict
from alerts.outbox import Outcome
from alerts.receivers import Receiver
from alerts.shown import shown
from queries import files
from queries.store import Store

Clock = Callable[[], datetime]


def router(store: Store, clock: Clock, wake: Callable[[], None] = lambda: None, receivers: Sequence[Receiver] = ()) -> APIRouter:
    """The routes of alerts; `wake` is called when something waits to be carried, `receivers` are the configured ones."""
    routes = APIRouter(tags=["alerts"])
    _add_decisions(routes, store, clock)
    _add_deliveries(routes, store, clock, wake)
    api_receivers.add(routes, store, clock, wake, receivers)
    api_silences.add(routes, store, clock, wake, tuple(receiver.name for receiver in receivers))
    return routes


def _add_decisions(routes: APIRouter, store: Store, clock: Clock) -> None:
    @routes.get("/api/verdicts")
    def verdicts(
        lever: Lever = None,
        policy: str | None = None,
        verdict: Verdict | None = None,
        state: State | None = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = 1000,
    ) -> Any:
        """What every stream's latest judging said, disabled ones first; `shadow` where its policy tells nobody."""
        more = {"lever": lever, "policy": policy, "verdict": verdict, "state": state, "limit": limit}
        return _rows(store, "list_verdicts", clock(), since, until, more)

    @routes.get("/api/flips")
    def flips(
        flip_id: str | None = None,
        lever: Lever = None,
        policy: str | None = None,
        state: State | None = None,
        action: Action | None = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = 100,
    ) -> Any:
        """State changes and advice to widen, newest first, each with the notice that went out; `state` is the one after."""
        more = {"flip_id": flip_id, "lever": lever, "policy": policy, "state": state, "action": action, "limit": limit}
        return _rows(store, "list_flips", clock(), since, until, more)


def _add_deliveries(routes: APIRouter, store: Store, clock: Clock, wake: Callable[[], None]) -> None:
    @routes.get("/api/deliveries")
    def deliveries(
        flip_id: str | None = None,
        receiver: str | None = None,
        outcome: Outcome | None = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = 100,
    ) -> Any:
        """Attempts and what waits, newest first; with `outcome`, the notices that stand so now, such as `failed`: those given up.

        What waits is not sent before `held_until`, where its receiver asked for nothing until then.
        """
        now = clock()
        more = {"flip_id": flip_id, "receiver": receiver, "outcome": outcome, "limit": limit, "now": now}
        return _rows(store, "list_deliveries", now, since, until, more)

    @routes.post("/api/deliveries/{delivery_id}/replay", status_code=202)
    def replay(delivery_id: str) -> Any:
        """Sends a delivery's notice again, under the same webhook id; not before `held_until`, where its receiver asked to wait."""
        row = outbox.replay(store, delivery_id, clock())
        if row is None:
            return api_answers.error(
                "delivery_not_found", f"there is no delivery {delivery_id!r}", "GET /api/deliveries lists them", status=404
            )
        wake()
        return shown({**row, "held_until": outbox.held_until(store, row["receiver"], clock())})


def _rows(store: Store, question: str, now: datetime, since: str | None, until: str | None, more: dict[str, Any]) -> Any:
    try:
        asked = api_answers.filters(now, since, until, more)
    except ValueError as wrong:
        return api_answers.error("invalid", str(wrong))
    return [shown(row) for row in store.rows(files.question(question), asked)]
