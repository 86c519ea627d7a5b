"""Fault injection: whatever receivers and the server itself do, each flip arrives, always under the same id, and none is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from notice_crash import NAME
from notice_hooks import SLOW_S, Hooks
from notice_rows import NOW, Clock, emptied, flip, put_in, receiver, route

from alerts import dead_letters, outbox
from alerts.deliver import Route, deliver_waiting
from queries.store import Store

SHORT_S, LONG_S = SLOW_S / 3, 20.0  # a busy machine may be slow by itself: only who is slow on purpose is not waited for
ONE_THREAD = {**os.environ, "POLARS_MAX_THREADS": "1"}  # many short processes
FAULTS = ["slow", "500", "429 retry-after=120", "503 retry-after=7", "close", "cut", "302 location=/elsewhere", "400"]


@pytest.fixture
def store(kept: Store) -> Store:
    return emptied(kept)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with Hooks() as hooks:
        yield hooks


def carry(store: Store, to: Route, clock: Clock, rounds: int = 12) -> None:
    """Delivers what waits, moving the clock to the next attempt each time."""
    for _ in range(rounds):
        due = deliver_waiting(store, to, clock)
        if due is None:
            return
        clock.now = max(clock.now, due)


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_same_notice_comes_again_until_it_is_taken(store: Store, clock: Clock, hooks: Hooks, fault: str) -> None:
    hooks.answers["oncall"] = [fault, fault, "204"]
    to = route(receiver(url=hooks.url("oncall")), SHORT_S if fault == "slow" else LONG_S)
    flip(store, "bad", "off_recommended", 1)
    put_in(store, to.receiver)
    carry(store, to, clock)
    assert hooks.accepted("oncall") == [outbox.webhook_id("bad", "oncall")]
    assert len({(one.webhook_id, one.body) for one in hooks.got["oncall"]}) == 1
    assert len(hooks.got["oncall"]) == 3
    wait_s = (clock.now - NOW).total_seconds()
    assert wait_s >= (305.0 if "120" not in fault else 420.0), "the schedule, or what the receiver asks for where that is longer"


def test_an_answer_that_breaks_off_after_its_status_was_an_answer(store: Store, clock: Clock, hooks: Hooks) -> None:
    hooks.answers["oncall"] = ["cut body"]
    to = route(receiver(url=hooks.url("oncall")))
    flip(store, "bad", "off_recommended", 1)
    put_in(store, to.receiver)
    carry(store, to, clock)
    assert len(hooks.got["oncall"]) == 1


def test_what_a_receiver_that_answers_410_did_not_get_it_gets_once_it_is_back(store: Store, clock: Clock, hooks: Hooks) -> None:
    hooks.answers["oncall"] = ["410", "204"]
    to = route(receiver(url=hooks.url("oncall")))
    for name in ("a", "b"):
        flip(store, name, "off_recommended", 1, segment=f'{{"model":"{name}"}}')
    put_in(store, to.receiver)
    carry(store, to, clock)
    assert hooks.accepted("oncall") == []
    flip(store, "c", "off_recommended", 0.5, segment='{"model":"c"}')
    put_in(store, to.receiver)
    dead_letters.replay_all(store, "oncall", clock())
    carry(store, to, clock)
    put_in(store, to.receiver)
    carry(store, to, clock)
    assert sorted(hooks.accepted("oncall")) == sorted(outbox.webhook_id(name, "oncall") for name in "abc")


def test_a_receiver_that_is_away_for_an_hour_gets_everything_once_in_order(store: Store, clock: Clock) -> None:
    with Hooks() as before:
        port = before.port
    to = route(receiver(url=f"http://127.0.0.1:{port}/oncall"))
    for number, (state, segment) in enumerate([("off_recommended", "m"), ("off_recommended", "n"), ("on", "m"), ("off_recommended", "m")]):
        flip(store, f"f{number}", state, 1 - number / 4, segment=f'{{"model":"{segment}"}}')
        put_in(store, to.receiver, clock())
        while clock.now < NOW and deliver_waiting(store, to, clock):
            clock.forward(300)
        deliver_waiting(store, to, clock)
    clock.forward(3600)
    with Hooks(port) as back:
        carry(store, to, clock)
        flip(store, "end", "on", -1)
        put_in(store, to.receiver, clock())
        carry(store, to, clock)
        expected = [outbox.webhook_id(name, "oncall") for name in ("f0", "f2", "f3", "end")]
        got = back.accepted("oncall")
    assert [one for one in got if one in expected] == expected
    assert sorted(got) == sorted([*expected, outbox.webhook_id("f1", "oncall")])


def test_receivers_of_every_kind_of_fault_get_each_flip_in_order_and_no_other_id(store: Store, clock: Clock, hooks: Hooks) -> None:
    faults = [*FAULTS, "204"]
    waits_s = [SHORT_S if fault == "slow" else LONG_S for fault in faults]
    routes = [route(receiver(f"r{number}", hooks.url(f"r{number}")), wait_s) for number, wait_s in enumerate(waits_s)]
    for number, fault in enumerate(faults):
        hooks.answers[f"r{number}"] = [fault, "204", fault, "204"]
    for name, state, hours in (("bad", "off_recommended", 3), ("good", "on", 2), ("worse", "off_recommended", 1)):
        flip(store, name, state, hours)
        for to in routes:
            put_in(store, to.receiver, clock())
            carry(store, to, clock)
    for to in routes:
        expected = [outbox.webhook_id(name, to.receiver.name) for name in ("bad", "good", "worse")]
        assert hooks.accepted(to.receiver.name) == expected


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hooks, list[dict[str, Any]]]:
    """What the receiver got, and what was stored, of servers that were killed at one step each and started again."""
    script, folder = Path(__file__).with_name("notice_crash.py"), tmp_path_factory.mktemp("crashed")
    with Hooks() as hooks:
        hooks.answers["answer"] = ["kill", "204"]
        asked = [sys.executable, str(script), str(folder), hooks.url("").rstrip("/")]
        done = subprocess.run(asked, check=True, timeout=120, capture_output=True, text=True, env=ONE_THREAD)
    return hooks, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_server_that_is_killed_at_any_step_tells_each_flip_under_one_id(crashed: tuple[Hooks, list[dict[str, Any]]]) -> None:
    hooks, cases = crashed
    assert len(cases) >= 10, "before and after the commits of flip, notice and attempt, and the post; one amid the answer; one whole"
    for case in cases:
        expected = outbox.webhook_id(case["flips"][0], NAME)
        assert {one.webhook_id for one in hooks.got[case["case"]]} == {expected}, case
        assert (len(case["flips"]), case["delivered"], case["waiting"]) == (1, [expected], 0), case
    assert len({case["flips"][0] for case in cases}) == 1, "what is decided again after a crash is the same flip"


def test_only_a_crash_between_a_post_and_the_record_of_it_sends_a_notice_again(crashed: tuple[Hooks, list[dict[str, Any]]]) -> None:
    hooks, cases = crashed
    numbers = sorted(len(hooks.got[case["case"]]) for case in cases)
    assert numbers == [1] * (len(cases) - 3) + [2] * 3, "amid the answer, after it, and before the commit of the attempt"
    assert all(len({one.body for one in posts}) == 1 for posts in hooks.got.values())
