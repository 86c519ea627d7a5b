"""What Alertmanager is pushed, and when: against a hook on loopback and a store."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import alert_letters
import pytest
from alert_letters import NOW, SECRET, Clock, Hook, flip, letter, put_in
from standardwebhooks import Webhook

from alerts import alert_rows, channels_alertmanager, channels_webhook
from alerts.channels import Route
from alerts.deliver import deliver_waiting
from alerts.receivers import Receiver
from queries.store import Store

SEGMENT = '{"hardware":"H200","model":"llama-70b"}'
LATER = NOW + timedelta(hours=1)


@pytest.fixture
def to(hook: Hook) -> Iterator[Route]:
    with alert_letters.client() as client:
        yield alert_letters.route(Receiver(name="am", kind="alertmanager", url=hook.url + "/"), "", client)


def told(store: Store, to: Route, clock: Clock, **changes: Any) -> None:
    """A flip that is stored, handed over and pushed."""
    flip(store, clock.now, **changes)
    put_in(store, to.receiver, clock.now)
    deliver_waiting(store, to, clock)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_an_alert_holds_for_a_quarter_of_an_hour_from_the_push_on() -> None:
    [alert] = alert_rows.alerts(letter(), LATER)
    assert (moment(alert["startsAt"]), moment(alert["endsAt"])) == (NOW, LATER + timedelta(minutes=15))


def test_what_ended_keeps_the_labels_that_it_began_with_and_has_an_end() -> None:
    opened = letter(severity="critical").message
    over = letter("lever.resolved", at=NOW + timedelta(minutes=5), severity="warning", action="keep", reason="recovered", opened=opened)
    [alert] = alert_rows.alerts(over, LATER)
    assert alert["labels"] == alert_rows.labels(opened)
    assert (moment(alert["startsAt"]), moment(alert["endsAt"])) == (NOW, NOW + timedelta(minutes=5))
    assert alert["annotations"]["description"] == "recovered"


def test_advice_that_changes_ends_one_alert_and_begins_another() -> None:
    ended, begun = alert_rows.alerts(letter("lever.adjust", action="shorten", opened=letter().message), LATER)
    assert (ended["labels"]["alertname"], moment(ended["endsAt"]) <= LATER) == ("LeverDisable", True)
    assert (begun["labels"]["alertname"], moment(begun["endsAt"]) > LATER) == ("LeverAdjust", True)


def test_advice_to_widen_stands_until_it_expires() -> None:
    [alert] = alert_rows.alerts(letter("lever.widen", action="widen"), NOW)
    assert (alert["labels"]["alertname"], alert["endsAt"]) == ("LeverWiden", "2026-03-05T02:55:00Z")


@pytest.mark.parametrize("kind", list(alert_rows.NAMES))
def test_every_type_of_notice_makes_an_alert(kind: str) -> None:
    [alert] = alert_rows.alerts(letter(kind), NOW)
    assert alert["labels"]["alertname"].startswith("Lever")
    assert alert["annotations"]["summary"]


def test_the_webhook_body_of_an_alert_that_stands_is_the_same_at_every_attempt_and_signed(hook: Hook, to: Route) -> None:
    receiver = Receiver(name="v4", url=hook.url, format="alertmanager", secret=SECRET)
    route = to._replace(receiver=receiver, secret=SECRET)
    now = datetime.now().astimezone()
    channels_webhook.send(route, [letter()], now)
    channels_webhook.send(route, [letter()], now + timedelta(minutes=1))
    [(_, headers, body), (_, _, again)] = hook.got
    assert body == again
    assert Webhook(SECRET).verify(body, headers)["status"] == "firing"
    assert len(body.encode()) < 20_000


def test_a_webhook_body_may_go_without_a_signature(hook: Hook, to: Route) -> None:
    receiver = Receiver(name="v4", url=hook.url, format="alertmanager")
    channels_webhook.send(to._replace(receiver=receiver), [letter("lever.resolved", opened=letter().message)], LATER)
    [(_, headers, body)] = hook.got
    assert "webhook-signature" not in headers
    assert headers["webhook-id"] == "msg_1"
    assert [(alert["status"], alert["endsAt"]) for alert in json.loads(body)["alerts"]] == [("resolved", "2026-03-04T03:00:00Z")]


def test_the_longest_webhook_body_stays_below_20_kb() -> None:
    long = letter(reason="x" * 18_000, commands=[{"engine": "vllm", "text": "y" * 500}])
    assert len(alert_rows.webhook_body(long, "v4", NOW).encode()) < 20_000


def test_a_recommendation_is_pushed_again_every_minute_while_it_lasts(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    hook.got.clear()
    for _ in range(4):
        clock.forward(30)
        deliver_waiting(store, to, clock)
    assert [path for path, _, _ in hook.got] == ["/api/v2/alerts"] * 2
    assert [moment(alert["endsAt"]) for [alert] in hook.bodies] == [NOW + timedelta(minutes=15 + n) for n in (1, 2)]
    assert store.rows("select receiver, alerts, status_code, error from alert_pushes") == [
        {"receiver": "am", "alerts": 1, "status_code": 200, "error": None}
    ]


def test_a_frozen_recommendation_is_pushed_on_and_says_so(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    alert_letters.stands(store, "off_recommended", "frozen", "no data for 2 h", SEGMENT)
    clock.forward(60)
    deliver_waiting(store, to, clock)
    [alert] = hook.bodies[-1]
    assert alert["annotations"]["description"] == "frozen: no data for 2 h"
    assert moment(alert["endsAt"]) > clock.now


def test_what_is_over_is_ended_once_and_pushed_no_more(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    clock.forward(600)
    hook.got.clear()
    told(store, to, clock, flip_id="f2", state_before="off_recommended", state_after="on", action="keep", severity="warning")
    clock.forward(60)
    deliver_waiting(store, to, clock)
    [[alert]] = hook.bodies
    assert moment(alert["endsAt"]) == NOW + timedelta(seconds=600)
    assert alert["labels"]["severity"] == "critical"


def test_what_a_receiver_was_not_told_of_is_not_pushed(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    picky = to._replace(receiver=Receiver(name="am", kind="alertmanager", url=hook.url, levers=("disaggregation",)))
    told(store, picky, clock)
    clock.forward(60)
    assert deliver_waiting(store, picky, clock) is None
    assert hook.got == []


def test_a_policy_that_is_gone_is_pushed_no_more(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    with store.write() as transaction:
        transaction.execute("delete from policies")
    hook.got.clear()
    clock.forward(60)
    deliver_waiting(store, to, clock)
    assert hook.got == []


def test_where_alertmanager_is_away_the_next_minute_tries_again(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    hook.answers = [(503, {}, "starting"), (200, {}, "")]
    clock.forward(60)
    again_at = deliver_waiting(store, to, clock)
    assert again_at == clock.now + timedelta(minutes=1)
    assert store.rows("select status_code, error from alert_pushes") == [{"status_code": 503, "error": "answered 503: starting"}]
    clock.forward(60)
    deliver_waiting(store, to, clock)
    assert store.rows("select status_code, error from alert_pushes") == [{"status_code": 200, "error": None}]


def test_a_clock_that_was_set_back_does_not_hold_pushes_up(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    told(store, to, clock)
    hook.got.clear()
    clock.forward(-86400)
    deliver_waiting(store, to, clock)
    assert len(hook.got) == 1


def test_a_user_logs_in_with_a_password(hook: Hook) -> None:
    receiver = Receiver(name="am", kind="alertmanager", url=hook.url, username="lw", password="pass word")
    with alert_letters.client() as client:
        channels_alertmanager.send(alert_letters.route(receiver, "pass word", client), [letter()], NOW)
    assert hook.got[0][1]["authorization"] == "Basic " + base64.b64encode(b"lw:pass word").decode()
