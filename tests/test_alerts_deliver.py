from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from standardwebhooks import Webhook

from alerts import deliver, outbox, payload
from alerts.couriers import Couriers
from alerts.deliver import DeliveryError, Route, deliver_waiting, retry_after_s, wait_s
from alerts.receivers import DEFAULT_SCHEDULE_S, Receiver
from queries.store import Store

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Hook:
    """A receiver on loopback: answers as told, one answer a request, the last one for good; keeps what it got."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, dict[str, str]]] = [(204, {})]
        self.got: list[tuple[dict[str, str], str]] = []
        self.open = threading.Event()
        self.open.set()
        hook = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                hook.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                hook.open.wait(10)
                status, headers = hook.answers.pop(0) if len(hook.answers) > 1 else hook.answers[0]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.open.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.got]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def client() -> Iterator[Any]:
    with deliver.client() as client:
        yield client


def receiver(url: str, name: str = "oncall", **changes: Any) -> Receiver:
    return Receiver(name=name, url=url, secret=SECRET, **changes)


def seeded(seed: int) -> random.Random:
    return random.Random(seed)


def route(url: str, client: Any, **changes: Any) -> Route:
    return Route(receiver(url, **changes), SECRET, client, seeded(7))


def flip(store: Store, clock: Clock, flip_id: str = "f1", state: str = "off_recommended", notice: dict[str, Any] | None = None) -> None:
    row = {"flip_id": flip_id, "policy": "p", "lever": "speculation", "segment": json.dumps({"model": flip_id}), "state_before": "on"}
    data = json.dumps(notice or {"flip_id": flip_id, "reason": "net ITL 31 ms against 27 ms"})
    rows = pl.DataFrame([row | {"state_after": state, "decided_at": clock.now, "reason": "r", "notice": data}])
    with store.write() as transaction:
        transaction.insert("flips", rows)


def put_in(store: Store, to: Route | Receiver, clock: Clock) -> None:
    outbox.put_in(store, to.receiver if isinstance(to, Route) else to, clock.now, clock.now, caught_up=True)


def attempts(store: Store) -> list[tuple[int, str, int | None]]:
    rows = store.rows("select attempt, outcome, status_code from deliveries order by attempt, outcome = 'pending' desc")
    return [(row["attempt"], row["outcome"], row["status_code"]) for row in rows]


def test_a_notice_is_delivered_signed_and_verified_by_the_reference_verifier(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    assert deliver_waiting(store, to, clock) is None
    [(headers, body)] = hook.got
    read = Webhook(SECRET).verify(body, headers)
    assert read == {
        "type": "lever.disable",
        "timestamp": clock.now.isoformat().replace("+00:00", "Z"),
        "data": {"flip_id": "f1", "reason": "net ITL 31 ms against 27 ms"},
    }
    assert headers["content-type"] == "application/json"
    assert attempts(store) == [(0, "pending", None), (1, "delivered", 204)]


def test_a_body_that_was_changed_is_not_verified(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    [(headers, body)] = hook.got
    with pytest.raises(Exception, match="No matching signature"):
        Webhook(SECRET).verify(body.replace("31 ms", "30 ms"), headers)


def test_after_a_500_the_same_id_comes_again_and_then_no_more(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    hook.answers = [(500, {}), (204, {})]
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    due = deliver_waiting(store, to, clock)
    assert due is not None
    assert 5.0 <= (due - clock.now).total_seconds() <= 6.0
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 1, "nothing is sent before its time"
    clock.forward(6)
    assert deliver_waiting(store, to, clock) is None
    clock.forward(86400)
    deliver_waiting(store, to, clock)
    assert hook.ids == [outbox.webhook_id("f1", "oncall")] * 2
    assert hook.got[0][1] == hook.got[1][1]
    assert attempts(store) == [(0, "pending", None), (1, "retrying", 500), (2, "delivered", 204)]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honored(store: Store, clock: Clock, hook: Hook, client: Any, status: int) -> None:
    hook.answers = [(status, {"retry-after": "120"}), (204, {})]
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    due = deliver_waiting(store, to, clock)
    assert due is not None
    assert (due - clock.now).total_seconds() >= 120


def test_410_stops_the_receiver(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    hook.answers = [(410, {})]
    to = route(hook.url, client)
    flip(store, clock, "f1")
    flip(store, clock, "f2")
    put_in(store, to, clock)
    assert deliver_waiting(store, to, clock) is None
    flip(store, clock, "f3")
    put_in(store, to, clock)
    clock.forward(86400)
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 1
    assert outbox.stopped(store, "oncall")


def test_a_refused_connection_is_tried_again_and_its_error_holds_neither_url_nor_secret(store: Store, clock: Clock, client: Any) -> None:
    to = route("http://127.0.0.1:1/token-in-the-path", client)
    flip(store, clock)
    put_in(store, to, clock)
    assert deliver_waiting(store, to, clock) is not None
    [row] = store.rows("select outcome, status_code, error from deliveries where attempt = 1")
    assert (row["outcome"], row["status_code"]) == ("retrying", None)
    assert row["error"].startswith("ConnectError: ")
    assert "token-in-the-path" not in row["error"]
    assert SECRET not in row["error"]


def test_redirects_are_not_followed(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    hook.answers = [(302, {"location": hook.url})]
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 1
    assert attempts(store)[-1] == (1, "retrying", 302)


def test_at_the_end_of_the_schedule_a_notice_has_failed(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    hook.answers = [(500, {})]
    to = route(hook.url, client, retry_schedule_s=(5.0, 10.0))
    flip(store, clock)
    put_in(store, to, clock)
    for _ in range(5):
        deliver_waiting(store, to, clock)
        clock.forward(20)
    assert attempts(store) == [(0, "pending", None), (1, "retrying", 500), (2, "retrying", 500), (3, "failed", 500)]


def test_the_default_schedule_makes_ten_attempts_over_75_hours() -> None:
    assert len(DEFAULT_SCHEDULE_S) + 1 == 10
    assert sum(DEFAULT_SCHEDULE_S) == (75 * 60 + 35) * 60 + 5


def test_jitter_only_lengthens_a_wait_and_is_the_same_for_the_same_seed() -> None:
    error = DeliveryError("answered 500", permanent=False)
    waits = [wait_s((10.0,), 0, error, seeded(seed)) for seed in range(50)]
    assert all(wait is not None and 10.0 <= wait <= 12.0 for wait in waits)
    assert len(set(waits)) > 40
    assert waits == [wait_s((10.0,), 0, error, seeded(seed)) for seed in range(50)]


def test_retry_after_is_read_as_seconds_or_as_a_date() -> None:
    now = datetime(2026, 3, 4, tzinfo=UTC)
    assert retry_after_s("30", now) == 30.0
    assert retry_after_s(f"Mon, 01 Jan 2026 00:00:00 +{'9' * 20}", now) == 0.0
    assert retry_after_s(format_datetime(now + timedelta(minutes=2), usegmt=True), now) == 120.0
    assert retry_after_s("soon", now) == 0.0
    assert retry_after_s(None, now) == 0.0
    assert retry_after_s("99999999", now) == 86400.0


def test_after_a_crash_before_the_attempt_the_notice_goes_out_once_with_the_same_id(tmp_path: Path, clock: Clock, hook: Hook) -> None:
    first = Store(tmp_path / "data")
    flip(first, clock)
    put_in(first, receiver(hook.url), clock)
    [row] = first.rows("select webhook_id from deliveries")
    first.close()

    second = Store(tmp_path / "data")
    with deliver.client() as client:
        to = route(hook.url, client)
        put_in(second, to, clock)
        deliver_waiting(second, to, clock)
        deliver_waiting(second, to, clock)
    assert hook.ids == [row["webhook_id"]]
    second.close()


def test_after_a_crash_before_the_record_the_same_id_and_body_come_again(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    [item] = outbox.waiting(store, "oncall")
    deliver.send(to, item.webhook_id, payload.body(store, item, "oncall"), clock.now)
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 2
    assert len(set(hook.ids)) == 1
    assert len({body for _, body in hook.got}) == 1


def test_a_replay_sends_the_same_id_and_body_again(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    [row] = store.rows("select delivery_id from deliveries where outcome = 'delivered'")
    outbox.replay(store, row["delivery_id"], clock.now)
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 2
    assert len(set(hook.ids)) == 1


def test_taking_back_goes_out_as_resolved(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock)
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    clock.forward(3600)
    with store.write() as transaction:
        transaction.execute(
            "insert into flips by name select 'f2' as flip_id, policy, lever, segment, state_after as state_before, 'on' as state_after,"
            " $now as decided_at, reason, notice from flips",
            {"now": clock.now},
        )
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    assert [json.loads(body)["type"] for _, body in hook.got] == ["lever.disable", "lever.resolved"]


def test_a_test_notice_is_signed_and_tried_once(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    hook.answers = [(500, {})]
    to = route(hook.url, client)
    outbox.put_in_test(store, to.receiver, clock.now)
    assert deliver_waiting(store, to, clock) is None
    [(headers, body)] = hook.got
    assert Webhook(SECRET).verify(body, headers)["type"] == "test"
    assert attempts(store) == [(0, "pending", None), (1, "failed", 500)]


def test_a_notice_that_would_be_too_long_leaves_its_explanations_out_and_says_so(
    store: Store, clock: Clock, hook: Hook, client: Any
) -> None:
    notice = {"flip_id": "f1", "causal_chain": {"because": "x" * 15_000}, "rollback": {"steps": ["y" * 8_000]}, "reason": "kept"}
    to = route(hook.url, client)
    flip(store, clock, notice=notice)
    put_in(store, to, clock)
    deliver_waiting(store, to, clock)
    [(_, body)] = hook.got
    assert len(body.encode()) < 20_000
    assert json.loads(body)["data"] == notice | {"causal_chain": None, "left_out": ["causal_chain"]}


def test_a_notice_that_cannot_be_made_short_enough_fails_for_good(store: Store, clock: Clock, hook: Hook, client: Any) -> None:
    to = route(hook.url, client)
    flip(store, clock, notice={"flip_id": "f1", "policy": "z" * 30_000})
    put_in(store, to, clock)
    assert deliver_waiting(store, to, clock) is None
    assert hook.got == []
    assert attempts(store)[-1] == (1, "failed", None)


def test_a_slow_receiver_does_not_delay_another(store: Store, clock: Clock, hook: Hook) -> None:
    slow = Hook()
    slow.open.clear()
    couriers = Couriers(store, [receiver(slow.url, "slow"), receiver(hook.url, "quick")], clock, {})
    flip(store, clock, "f1")
    try:
        couriers.start()
        assert couriers.hand_over(clock.now, caught_up=True) == 2
        assert eventually(lambda: len(slow.got) == 1)
        flip(store, clock, "f2")
        couriers.hand_over(clock.now, caught_up=True)
        assert eventually(lambda: len(hook.got) == 2)
        assert len(slow.got) == 1
        slow.open.set()
        assert eventually(lambda: len(slow.got) == 2)
    finally:
        slow.close()
        couriers.stop()


def test_couriers_take_up_what_an_earlier_process_left_waiting(store: Store, clock: Clock, hook: Hook) -> None:
    flip(store, clock)
    put_in(store, receiver(hook.url), clock)
    couriers = Couriers(store, [receiver(hook.url)], clock, {})
    couriers.start()
    assert eventually(lambda: outbox.waiting(store, "oncall") == [])
    couriers.stop()
    assert len(hook.got) == 1


def test_a_courier_that_meets_an_error_says_so_and_goes_on(
    store: Store, clock: Clock, hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real, failed = outbox.waiting, threading.Event()

    def once_broken(*args: Any) -> Any:
        if not failed.is_set():
            failed.set()
            msg = "store busy"
            raise RuntimeError(msg)
        return real(*args)

    monkeypatch.setattr(outbox, "waiting", once_broken)
    monkeypatch.setattr("alerts.couriers.POLL_S", 0.01)
    flip(store, clock)
    couriers = Couriers(store, [receiver(hook.url)], clock, {})
    couriers.start()
    couriers.hand_over(clock.now, caught_up=True)
    assert eventually(lambda: len(hook.got) == 1)
    couriers.stop()
    assert "receiver oncall: carrying notices failed" in caplog.text
    assert SECRET not in caplog.text


def eventually(claim: Any, timeout_s: float = 5.0) -> bool:
    """Whether a claim comes true within a time; looks again every few milliseconds."""
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.005)):
        if claim():
            return True
        pause.wait(0.005)
    return False


def test_a_notice_whose_names_are_longer_than_a_body_is_cut_and_not_lost() -> None:
    long = "\U0001f600" * 4000
    segment = {"model": long, "hardware": "h100"}
    data = {"flip_id": "f", "segment": segment, "reason": long, "query": {"sql": long}, "links": {"page": long, "flip": "http://here/f"}}
    body = payload.text(payload.Message("lever.disable", datetime(2026, 3, 4, tzinfo=UTC), data))
    told = json.loads(body)["data"]
    assert len(body.encode()) < payload.LIMIT_BYTES
    assert (told["flip_id"], told["links"], told["segment"]["hardware"]) == ("f", {"flip": "http://here/f"}, "h100")
    assert told["left_out"] == ["query", "ends of texts"]
    assert told["segment"]["model"].endswith("…")
