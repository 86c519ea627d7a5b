"""Heartbeats: sent while judging runs, under an id of their own, and never queued."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import msgspec
import polars as pl
import pytest
from notice_rows import NOW, SECRET, Clock, emptied, flip, put_in, receiver, route, tried
from standardwebhooks import Webhook

from alerts import deliver, heartbeat
from alerts.couriers import Couriers
from alerts.heartbeat import Beat, Judging, is_due
from alerts.policy import shipped
from queries.store import Store

SECOND = timedelta(seconds=1)
JUDGED = Judging(NOW, NOW - 60 * SECOND)


@pytest.fixture
def store(kept: Store) -> Store:
    return emptied(kept)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    got: list[tuple[str, Any]] = []

    def send(_route: Any, webhook_id: str, text: str, _now: Any) -> int:
        got.append((webhook_id, json.loads(text)))
        return 204

    monkeypatch.setattr(deliver, "send", send)
    return got


def failing(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    def send(*_: Any) -> int:
        msg = f"answered {status}"
        raise deliver.DeliveryError(msg, permanent=False, status_code=status)

    monkeypatch.setattr(deliver, "send", send)


def last(judged: int, started: int, outcome: str = "delivered") -> Beat:
    return Beat(NOW + judged * SECOND, NOW + started * SECOND, NOW + started * SECOND, outcome)


def judged(after_s: int) -> Judging:
    return Judging(NOW + after_s * SECOND, NOW)


@pytest.mark.parametrize(
    ("before", "ran", "now", "expected"),
    [
        (None, 0, 0, True),
        (last(0, 0), 60, 60, True),
        (last(0, 0), 59, 59, False),
        (last(0, 0), 0, 600, False),
        (last(0, 0, "failed"), 1, 30, False),
        (last(500, 500), 10, 10, True),
    ],
    ids=["first", "time has come", "not yet", "judging is stuck", "not sooner after a failure", "clock set back"],
)
def test_one_is_due_when_its_time_has_come_and_judging_ran_since(before: Beat | None, ran: int, now: int, expected: bool) -> None:
    assert is_due(before, judged(ran), 60.0, NOW + now * SECOND) is expected


def test_it_says_when_judging_ran_how_far_and_how_much_is_open(store: Store, sent: list[tuple[str, Any]]) -> None:
    heartbeat.beat(store, route(receiver()), JUDGED, lambda: NOW)
    [(webhook_id, body)] = sent
    assert webhook_id.startswith("msg_")
    assert (body["type"], body["timestamp"]) == ("evaluator.heartbeat", "2026-03-05T09:00:00Z")
    assert body["data"] == {
        "judged_at": "2026-03-05T09:00:00Z",
        "watermark": "2026-03-05T08:59:00Z",
        "streams": 0,
        "open_recommendations": 0,
        "shadow_recommendations": 0,
        "frozen": 0,
    }


def test_what_policies_in_shadow_recommend_is_counted_apart(store: Store) -> None:
    policies = [msgspec.structs.replace(policy, shadow=policy.lever == "kv_quantization") for policy in shipped()]
    with store.write() as transaction:
        for policy in policies:
            row = {"policy": policy.name, "version": "1", "lever": policy.lever, "owner": "o", "body": "{}", "loaded_at": NOW}
            transaction.insert("policies", pl.DataFrame([row | {"shadow": policy.shadow}]))
            said = {"policy": policy.name, "policy_version": "1", "lever": policy.lever, "segment": "{}", "verdict": "disable"}
            said |= {"action": "disable", "reason_code": "harm", "reason": "r", "state": "off_recommended", "streak": 0}  # type: ignore[dict-item]
            times = dict.fromkeys(("decided_at", "block_ended_at", "state_since"), NOW)
            transaction.insert("current_verdicts", pl.DataFrame([said | times]))
    data = heartbeat.message(store, JUDGED, NOW).data
    with store.write() as transaction:
        for table in ("policies", "current_verdicts"):
            transaction.execute(f"delete from {table}")
    assert (data["streams"], data["open_recommendations"], data["shadow_recommendations"]) == (12, 11, 1)


def test_each_has_an_id_of_its_own_and_only_the_newest_is_kept(
    store: Store, sent: list[tuple[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    heartbeat.beat(store, route(receiver()), JUDGED, clock)
    clock.forward(60)
    heartbeat.beat(store, route(receiver()), JUDGED, clock)
    assert len({webhook_id for webhook_id, _ in sent}) == 2
    failing(monkeypatch, 503)
    clock.forward(60)
    heartbeat.beat(store, route(receiver()), JUDGED, clock)
    [row] = store.rows("select started_at, outcome, status_code, error from heartbeats")
    assert row == {"started_at": clock.now, "outcome": "failed", "status_code": 503, "error": "answered 503"}
    assert store.rows("select * from deliveries") == [], "a heartbeat never waits"


def test_a_receiver_that_answers_410_gets_none_until_something_gets_through(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, 410)
    gone = heartbeat.beat(store, route(receiver()), JUDGED, lambda: NOW)
    assert heartbeat.is_gone(store, "oncall", gone)
    flip(store, "bad", "off_recommended", 1)
    put_in(store)
    tried(store, "delivered", now=NOW + SECOND)
    assert not heartbeat.is_gone(store, "oncall", gone)


def test_couriers_send_one_each_time_judging_ran_and_none_while_it_does_not(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, sends, ended = Clock(), threading.Semaphore(0), threading.Event()
    bodies: list[str] = []

    def send(_route: Any, webhook_id: str, text: str, _now: Any) -> int:
        bodies.append(f"{webhook_id} {text}")
        sends.release()
        return 204

    monkeypatch.setattr(deliver, "send", send)
    couriers = Couriers(store, [receiver(heartbeat_s=60.0), receiver("quiet")], clock, {})
    couriers.start()
    try:
        couriers.note_judging(Judging(clock.now, None))
        assert sends.acquire(timeout=5)
        clock.forward(61)
        couriers.note_judging(Judging(NOW, None))
        couriers.note_judging(Judging(NOW, None))
        assert not ended.wait(0.05)
        assert len(bodies) == 1, "judging has not run since"
        couriers.note_judging(Judging(clock.now, None))
        assert sends.acquire(timeout=5)
    finally:
        couriers.stop()
    assert len({body.split()[0] for body in bodies}) == 2


def test_a_heartbeat_is_signed_like_a_notice(store: Store) -> None:
    got: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(request)
        return httpx.Response(204)

    to = route(receiver())._replace(client=httpx.Client(transport=httpx.MockTransport(answer)))
    clock = Clock(datetime.now(UTC))
    heartbeat.beat(store, to, Judging(clock.now, None), clock)
    read = Webhook(SECRET).verify(got[0].content.decode(), dict(got[0].headers))
    assert (read["type"], read["data"]["watermark"]) == ("evaluator.heartbeat", None)
