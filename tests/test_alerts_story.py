"""One story: what each flip is told as, to whom, and in which order."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from notice_rows import HOUR, NOW, Clock, due, emptied, flip, put_in, receiver, tried

from alerts import dead_letters, outbox, silence_rows, silences
from alerts.couriers import Couriers
from alerts.notice_types import type_of
from alerts.outbox import Attempt
from alerts.silences import Snooze
from queries.store import Store


@pytest.fixture
def store(kept: Store) -> Store:
    return emptied(kept)


@pytest.mark.parametrize(
    ("state", "action", "kind"),
    [
        ("off_recommended", "disable", "lever.disable"),
        ("off_recommended", None, "lever.disable"),
        ("off_recommended", "shorten", "lever.adjust"),
        ("off_recommended", "restore_precision", "lever.adjust"),
        ("probation", "enable", "lever.enable"),
        ("probation", "keep", "lever.resolved"),
        ("off", "keep", "lever.resolved"),
        ("on", "keep", "lever.resolved"),
        ("on", None, "lever.resolved"),
        ("on", "widen", "lever.widen"),
    ],
)
def test_a_flip_is_told_as_what_it_asks_for(state: str, action: str | None, kind: str) -> None:
    assert type_of(state, action) == kind


def test_what_asks_for_something_goes_to_all_and_what_ends_it_to_who_was_told(store: Store) -> None:
    for state, action in (("off_recommended", "shorten"), ("probation", "enable"), ("on", "widen"), ("off", "keep"), ("probation", "keep")):
        flip(store, f"{state} {action}", state, 1, action, segment=f'{{"model":"{state} {action}"}}')
    assert set(due(store)) == {"off_recommended shorten", "probation enable", "on widen"}


@pytest.mark.parametrize(("state", "action"), [("on", "keep"), ("off", "keep"), ("probation", "keep")])
def test_each_end_of_a_recommendation_is_told_once(store: Store, state: str, action: str) -> None:
    flip(store, "bad", "off_recommended", 3)
    put_in(store)
    tried(store, "delivered")
    flip(store, "over", state, 2, action)
    assert due(store) == ["over"]
    assert due(store, receiver("second")) == []
    put_in(store)
    tried(store, "delivered")
    flip(store, "later", "on", 1)
    assert due(store) == [], "the end was told already"


def test_a_stream_that_was_ended_once_is_ended_again(store: Store) -> None:
    for hours, state in enumerate(("off_recommended", "on", "off_recommended", "on", "probation", "off")):
        name = flip(store, f"{hours} {state}", state, 9 - hours)
        assert due(store) == [name]
        put_in(store)
        tried(store, "delivered")


def test_an_enable_that_was_told_is_ended_too(store: Store) -> None:
    flip(store, "back", "probation", 3, "enable")
    put_in(store)
    tried(store, "delivered")
    flip(store, "on", "on", 1)
    assert due(store) == ["on"]


def test_an_end_is_told_however_late(store: Store) -> None:
    flip(store, "bad", "off_recommended", 99)
    outbox.put_in(store, receiver(), NOW - 98 * HOUR, NOW - 98 * HOUR, caught_up=True)
    tried(store, "delivered")
    flip(store, "good", "on", 90)
    assert due(store) == ["good"]


def test_an_end_goes_to_who_was_told_whatever_it_is_routed_by(store: Store) -> None:
    flip(store, "bad", "off_recommended", 3, severity="critical")
    pager = receiver(severity="critical")
    put_in(store, pager)
    tried(store, "delivered")
    flip(store, "good", "on", 1, severity="warning")
    assert due(store, pager) == ["good"]


def test_advice_to_widen_neither_hides_an_end_nor_outlives_a_recommendation(store: Store) -> None:
    flip(store, "bad", "off_recommended", 5)
    put_in(store)
    tried(store, "delivered")
    flip(store, "good", "on", 3)
    flip(store, "widen", "on", 2, "widen")
    assert due(store) == ["good", "widen"]
    flip(store, "worse", "off_recommended", 1)
    assert due(store) == ["good", "worse"], "an end between two recommendations is told"


def test_a_policy_in_shadow_notifies_nobody_but_ends_what_it_told_before(store: Store) -> None:
    flip(store, "bad", "off_recommended", 3, shadow=True)
    assert due(store) == []
    flip(store, "told", "off_recommended", 3, policy="q")
    put_in(store)
    tried(store, "delivered")
    flip(store, "over", "on", 1, policy="q", shadow=True)
    assert due(store) == ["over"]


def test_what_was_put_in_goes_out_and_its_end_follows_it(store: Store) -> None:
    flip(store, "bad", "off_recommended", 3)
    put_in(store)
    tried(store, "retrying")
    flip(store, "good", "on", 2)
    assert put_in(store) == 0
    assert tried(store, "delivered", now=NOW + HOUR) == ["bad"]
    assert put_in(store, now=NOW + HOUR) == 1
    assert tried(store, "delivered", now=NOW + HOUR) == ["good"]


def test_of_a_stream_the_older_notice_goes_first_and_does_not_wait_for_its_schedule(store: Store) -> None:
    flip(store, "first", "off_recommended", 3)
    put_in(store)
    tried(store, "retrying", again_s=36_000.0)
    flip(store, "second", "off_recommended", 1)
    flip(store, "elsewhere", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store, now=NOW + HOUR)
    items = outbox.waiting(store, "oncall")
    assert [(item.flip_id, item.next_attempt_at) for item in items] == [("first", NOW + HOUR), ("elsewhere", NOW + HOUR)]
    tried(store, "delivered", now=NOW + HOUR)
    assert [item.flip_id for item in outbox.waiting(store, "oncall")] == ["second"]


def test_a_stream_whose_older_notice_fails_again_is_not_tried_in_a_loop(store: Store) -> None:
    flip(store, "first", "off_recommended", 3)
    put_in(store)
    tried(store, "retrying")
    flip(store, "second", "off_recommended", 1)
    put_in(store)
    tried(store, "retrying")
    assert [(item.flip_id, item.next_attempt_at) for item in outbox.waiting(store, "oncall")] == [("first", NOW + HOUR)]
    tried(store, "failed")
    assert [item.flip_id for item in outbox.waiting(store, "oncall")] == ["second"]


def test_a_replay_that_is_asked_for_during_an_attempt_is_not_lost(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    put_in(store)
    tried(store, "retrying")
    [item] = outbox.waiting(store, "oncall")
    [row] = store.rows("select delivery_id from deliveries where outcome = 'retrying'")
    outbox.replay(store, row["delivery_id"], NOW)
    outbox.record(store, item, "oncall", Attempt(NOW, NOW, "failed", 500))
    [again] = outbox.waiting(store, "oncall")
    assert (again.webhook_id, again.attempt, again.tries) == (item.webhook_id, 2, 0)
    outbox.record(store, again, "oncall", Attempt(NOW, NOW, "failed", 500))
    assert outbox.waiting(store, "oncall") == []


def test_what_was_given_up_is_sent_again_in_order_but_not_what_is_superseded(store: Store) -> None:
    flip(store, "old", "off_recommended", 5)
    put_in(store)
    tried(store, "failed")
    flip(store, "new", "off_recommended", 3)
    put_in(store)
    tried(store, "delivered")
    for name, hours in (("b", 1), ("a", 2)):
        flip(store, name, "off_recommended", hours, segment=f'{{"model":"{name}"}}')
    put_in(store)
    tried(store, "failed")
    ids = {row["webhook_id"] for row in store.rows("select distinct webhook_id from deliveries")}
    assert dead_letters.replay_all(store, "oncall", NOW) == (2, 1)
    assert dead_letters.replay_all(store, "oncall", NOW) == (0, 1), "those that wait already are not put in twice"
    assert [item.flip_id for item in outbox.waiting(store, "oncall")] == ["a", "b"]
    assert {row["webhook_id"] for row in store.rows("select distinct webhook_id from deliveries")} == ids


def test_a_receiver_that_is_gone_comes_back_by_a_replay_and_gets_what_waited(store: Store) -> None:
    flip(store, "a", "off_recommended", 2)
    flip(store, "b", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store)
    outbox.record(store, outbox.waiting(store, "oncall")[0], "oncall", Attempt(NOW, NOW, "gone", 410))
    assert outbox.waiting(store, "oncall") == []
    assert dead_letters.replay_all(store, "oncall", NOW) == (1, 0)
    later = NOW + timedelta(seconds=1)
    assert tried(store, "delivered", now=later) == ["a"]
    assert [item.flip_id for item in outbox.waiting(store, "oncall")] == ["b"]


def test_a_replay_to_a_receiver_that_is_gone_does_not_wait_behind_what_it_does_not_want(store: Store) -> None:
    flip(store, "first", "off_recommended", 3)
    put_in(store)
    tried(store, "retrying")
    flip(store, "second", "off_recommended", 2)
    put_in(store)
    flip(store, "elsewhere", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store)
    [item] = [item for item in outbox.waiting(store, "oncall") if item.flip_id == "elsewhere"]
    outbox.record(store, item, "oncall", Attempt(NOW, NOW, "gone", 410))
    assert outbox.waiting(store, "oncall") == [], "neither what it was to be tried again with, nor what follows that"
    [row] = store.rows("select delivery_id from deliveries where flip_id = 'second'")
    outbox.replay(store, row["delivery_id"], NOW)
    assert [item.flip_id for item in outbox.waiting(store, "oncall")] == ["second"]


def test_couriers_look_again_when_a_silence_ends_by_itself(store: Store) -> None:
    clock = Clock()
    couriers = Couriers(store, [receiver()], clock, {})
    flip(store, "bad", "off_recommended", 1)
    silence_rows.add(store, silences.snoozed("bad", Snooze(for_s=600.0), NOW))
    assert [couriers.hand_over(NOW, caught_up=True) for _ in range(2)] == [0, 0]
    clock.forward(600)
    assert [couriers.hand_over(NOW, caught_up=True) for _ in range(2)] == [1, 0]
    couriers.stop()


@pytest.mark.parametrize("seed", range(2))
def test_whatever_happens_while_a_receiver_is_away_its_story_alternates_and_ends_as_the_stream_does(store: Store, seed: int) -> None:
    rng, is_open, heard = random.Random(seed), False, []
    for minute in range(600, 586, -1):
        opens = not is_open if rng.random() < 0.7 else is_open
        state, action = rng.choice(
            (("off_recommended", "disable"), ("probation", "enable")) if opens else (("on", "keep"), ("off", "keep"))
        )
        if opens != is_open:
            flip(store, f"{state} {minute}", state, minute / 60, action)
        is_open, is_up = opens, rng.random() < 0.5
        if rng.random() < 0.8:
            put_in(store)
        heard += tried(store, "delivered") if is_up else tried(store, "retrying", again_s=0.0) and []
    for _ in range(6):
        put_in(store)
        heard += tried(store, "delivered")
    begins = [name.startswith(("off_recommended", "probation")) for name in heard]
    assert begins == [place % 2 == 0 for place in range(len(begins))]
    assert (begins[-1:] or [False]) == [is_open]
    assert len(set(heard)) == len(heard)
