"""Which notices go out together, and that grouping loses none."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import alert_letters
import pytest
from alert_letters import NOW, Clock, Hook, flip, put_in

from alerts import outbox
from alerts.batches import batches
from alerts.channels import Route
from alerts.deliver import deliver_waiting
from alerts.outbox import Waiting
from alerts.receivers import Receiver
from alerts.silences import FlipKeys
from queries.store import Store


@pytest.fixture
def to(hook: Hook) -> Iterator[Route]:
    with alert_letters.client() as client:
        yield alert_letters.route(Receiver(name="chat", kind="chat", url=hook.url, group_wait_s=30.0), hook.url, client)


def waiting(webhook_id: str, lever: str = "speculation", attempt: int = 0, after_s: float = 0.0, **segment: str) -> Waiting:
    at = NOW + timedelta(seconds=after_s)
    return Waiting(webhook_id, webhook_id, attempt, attempt, at, at, keys=FlipKeys(webhook_id, "p", lever, segment))


def ids(items: list[Waiting], most: int = 9, **changes: Any) -> list[tuple[list[str], float]]:
    usual: dict[str, Any] = {"name": "chat", "kind": "chat", "url": "https://h.example", "group_wait_s": 30.0}
    found = batches(items, Receiver(**usual | changes), most)
    return [([item.webhook_id for item in batch.items], (batch.due_at - NOW).total_seconds()) for batch in found]


def test_new_notices_wait_until_the_first_of_them_has_waited_long_enough() -> None:
    assert ids([waiting("a"), waiting("b", after_s=20)]) == [(["a", "b"], 30.0)]


def test_notices_are_grouped_by_the_keys_that_were_asked_for() -> None:
    items = [waiting("a", model="x"), waiting("b", "disaggregation", model="x"), waiting("c", model="y")]
    assert ids(items, group_by=("lever",)) == [(["a", "c"], 30.0), (["b"], 30.0)]
    assert ids(items, group_by=("model",)) == [(["a", "b"], 30.0), (["c"], 30.0)]


def test_without_a_wait_and_for_kinds_that_do_not_group_each_goes_by_itself() -> None:
    assert ids([waiting("a"), waiting("b")], group_wait_s=0.0) == [(["a"], 0.0), (["b"], 0.0)]
    items = batches([waiting("a"), waiting("b")], Receiver(name="h", url="http://h", secret="whsec_AAAA"))
    assert [len(batch.items) for batch in items] == [1, 1]


def test_a_group_that_is_too_large_for_a_message_becomes_several() -> None:
    assert ids([waiting(name) for name in "abc"], most=2) == [(["a", "b"], 30.0), (["c"], 30.0)]


def test_what_was_tried_together_is_tried_again_together_and_new_ones_apart() -> None:
    items = [waiting("a", attempt=1, after_s=5), waiting("b", attempt=1, after_s=5), waiting("c"), waiting("d", attempt=1, after_s=7)]
    assert ids(items) == [(["a", "b"], 5.0), (["d"], 7.0), (["c"], 30.0)]


def test_a_test_goes_at_once() -> None:
    item = Waiting(outbox.TEST_FLIP, "t", 0, 0, NOW, NOW)
    assert ids([item, waiting("a")]) == [(["t"], 0.0), (["a"], 30.0)]


def test_notices_of_one_wait_are_one_message_and_each_is_marked_delivered(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    flip(store, NOW, "f1", segment={"model": "a"})
    flip(store, NOW, "f2", segment={"model": "b"})
    assert put_in(store, to.receiver, clock.now) == 2
    assert deliver_waiting(store, to, clock) == NOW + timedelta(seconds=30)
    assert hook.got == []
    clock.forward(30)
    assert deliver_waiting(store, to, clock) is None
    assert ["2 notices: disable speculation (2)" in body["text"] for body in hook.bodies] == [True]
    assert outcomes(store) == [("f1", 1, "delivered"), ("f2", 1, "delivered")]


def test_a_message_that_fails_is_sent_again_whole_although_more_came_meanwhile(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    hook.answers = [(500, {}, ""), (200, {}, "ok")]
    for name in ("f1", "f2"):
        flip(store, NOW, name, segment={"model": name})
    put_in(store, to.receiver, clock.now)
    clock.forward(30)
    again_at = deliver_waiting(store, to, clock)
    assert again_at is not None
    flip(store, NOW, "f3", segment={"model": "f3"})
    put_in(store, to.receiver, clock.now)
    clock.forward(7)
    deliver_waiting(store, to, clock)
    first, second = hook.bodies
    assert first == second
    clock.forward(30)
    assert deliver_waiting(store, to, clock) is None
    assert outcomes(store)[-1] == ("f3", 1, "delivered")


def test_a_restart_within_the_wait_loses_nothing_and_changes_no_time(tmp_path: Path, hook: Hook, to: Route) -> None:
    clock, first = Clock(), Store(tmp_path / "data")
    flip(first, NOW, "f1")
    put_in(first, to.receiver, clock.now)
    clock.forward(10)
    deliver_waiting(first, to, clock)
    first.close()
    second = Store(tmp_path / "data")
    assert deliver_waiting(second, to, clock) == NOW + timedelta(seconds=30)
    clock.forward(20)
    deliver_waiting(second, to, clock)
    second.close()
    assert len(hook.got) == 1


def test_a_notice_that_cannot_be_made_fails_alone(store: Store, hook: Hook, to: Route) -> None:
    clock = Clock()
    for name in ("f1", "f2"):
        flip(store, NOW, name, segment={"model": name}, **({"policy_version": "z" * 30_000} if name == "f1" else {}))
    put_in(store, to.receiver, clock.now)
    clock.forward(30)
    deliver_waiting(store, to, clock)
    assert outcomes(store) == [("f1", 1, "failed"), ("f2", 1, "delivered")]
    assert len(hook.got) == 1


def outcomes(store: Store) -> list[tuple[str, int, str]]:
    rows = store.rows("select flip_id, attempt, outcome from deliveries where outcome not in ('pending', 'retrying') order by flip_id")
    return [(row["flip_id"], row["attempt"], row["outcome"]) for row in rows]
