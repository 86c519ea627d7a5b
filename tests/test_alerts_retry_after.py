"""A receiver that asks to wait: its whole queue waits, also over a restart, and no other's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from notice_hooks import Hooks
from notice_rows import NOW, Clock, flip, put_in, receiver, route

from alerts import outbox
from alerts.deliver import Route, deliver_waiting
from queries.store import Store


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with Hooks() as hooks:
        yield hooks


def waiting(store: Store, to: Route, *names: str) -> None:
    for name in names:
        flip(store, name, "off_recommended", 1, segment=f'{{"model":"{name}"}}')
    put_in(store, to.receiver)


def test_what_a_receiver_asks_for_with_retry_after_holds_for_its_whole_queue(store: Store, hooks: Hooks) -> None:
    hooks.answers["oncall"] = ["429 retry-after=120", "204"]
    to, clock = route(receiver(url=hooks.url("oncall"))), Clock()
    waiting(store, to, "a", "b", "c")
    assert deliver_waiting(store, to, clock) == NOW + timedelta(seconds=120)
    assert len(hooks.got["oncall"]) == 1, "the two that were due as well were not sent"
    clock.forward(119)
    assert deliver_waiting(store, to, clock) == NOW + timedelta(seconds=120)
    assert len(hooks.got["oncall"]) == 1
    clock.forward(60)
    deliver_waiting(store, to, clock)
    assert sorted(hooks.accepted("oncall")) == sorted(outbox.webhook_id(name, "oncall") for name in "abc")


def test_a_restart_keeps_to_it(tmp_path: Path, hooks: Hooks) -> None:
    hooks.answers["oncall"] = ["503 retry-after=600", "204"]
    to, clock = route(receiver(url=hooks.url("oncall"))), Clock()
    for _ in range(2):
        store = Store(tmp_path)
        waiting(store, to, f"flip-{len(hooks.got['oncall'])}")
        assert deliver_waiting(store, to, clock) == NOW + timedelta(seconds=600)
        store.close()
    assert len(hooks.got["oncall"]) == 1


def test_other_receivers_go_on(store: Store, hooks: Hooks) -> None:
    hooks.answers["busy"] = ["429 retry-after=120"]
    clock = Clock()
    for name in ("busy", "free"):
        to = route(receiver(name, hooks.url(name)))
        if name == "busy":
            waiting(store, to, "a")
        else:
            put_in(store, to.receiver)
        deliver_waiting(store, to, clock)
    assert len(hooks.accepted("free")) == 1


def test_a_refusal_without_retry_after_holds_up_its_notice_alone(store: Store, hooks: Hooks) -> None:
    hooks.answers["oncall"] = ["500", "204"]
    to = route(receiver(url=hooks.url("oncall")))
    waiting(store, to, "a", "b")
    deliver_waiting(store, to, Clock())
    assert len(hooks.accepted("oncall")) == 1


def test_a_clock_that_was_set_back_holds_nobody_up_for_long(store: Store) -> None:
    [one] = [flip(store, "a", "off_recommended", 1)]
    to = receiver()
    put_in(store, to)
    [item] = outbox.waiting(store, "oncall", NOW)
    attempt = outbox.Attempt(NOW, NOW, "retrying", 429, "answered 429", NOW, NOW + timedelta(hours=1))
    outbox.record(store, item, "oncall", attempt)
    assert outbox.held_until(store, "oncall", NOW) == NOW + timedelta(hours=1)
    assert outbox.held_until(store, "oncall", NOW - timedelta(days=30)) is None
    assert item.flip_id == one
