from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from alerts import outbox
from alerts.outbox import Attempt, Outcome
from alerts.receivers import Receiver
from queries.store import Store

MARK = datetime(2026, 3, 5, tzinfo=UTC)
NOW = datetime(2026, 3, 5, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def receiver(name: str = "oncall", levers: tuple[str, ...] = ()) -> Receiver:
    return Receiver(name=name, url="http://127.0.0.1:9/hook", secret="whsec_c2VjcmV0", levers=levers)


def flip(store: Store, flip_id: str, state: str, hours_before_mark: float, lever: str = "speculation", segment: str = "{}") -> None:
    row = {"flip_id": flip_id, "policy": "p", "lever": lever, "segment": segment, "state_before": "?", "state_after": state}
    row |= {"decided_at": MARK - hours_before_mark * HOUR, "reason": "r", "notice": "{}"}  # type: ignore[dict-item]
    with store.write() as transaction:
        transaction.insert("flips", pl.DataFrame([row]))


def due(store: Store, to: Receiver | None = None, *, caught_up: bool = True) -> list[str]:
    return outbox.due_flips(store, to or receiver(), MARK, NOW, caught_up=caught_up)


def hand_over(store: Store, outcome: Outcome | None, name: str = "oncall") -> None:
    """Puts in what is due and, where an outcome is given, records one attempt at each with it."""
    outbox.put_in(store, receiver(name), MARK, NOW, caught_up=True)
    for item in outbox.waiting(store, name) if outcome else []:
        assert outcome is not None
        outbox.record(store, item, name, Attempt(NOW, NOW, outcome, next_attempt_at=NOW if outcome == "retrying" else None))


def test_of_loaded_history_only_a_lever_that_is_still_bad_is_due_once(store: Store) -> None:
    flip(store, "bad1", "off_recommended", 20)
    flip(store, "good1", "on", 18)
    flip(store, "bad2", "off_recommended", 2)
    flip(store, "bad3", "off_recommended", 5, segment='{"model":"recovered"}')
    flip(store, "good3", "on", 3, segment='{"model":"recovered"}')
    assert due(store) == ["bad2"]
    hand_over(store, None)
    assert due(store) == []


def test_a_flip_older_than_a_day_at_the_newest_watermark_is_not_due(store: Store) -> None:
    flip(store, "old", "off_recommended", 24.01)
    flip(store, "young", "off_recommended", 23.99, segment='{"model":"m"}')
    assert due(store) == ["young"]


def test_nothing_is_due_until_judging_has_caught_up(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    assert due(store, caught_up=False) == []
    assert outbox.put_in(store, receiver(), MARK, NOW, caught_up=False) == 0
    assert outbox.put_in(store, receiver(), MARK, NOW, caught_up=True) == 1


@pytest.mark.parametrize(("outcome", "expected"), [("delivered", ["good"]), ("retrying", []), ("failed", []), (None, [])])
def test_taking_back_is_due_only_to_who_was_told(store: Store, outcome: Outcome | None, expected: list[str]) -> None:
    flip(store, "bad", "off_recommended", 3)
    hand_over(store, outcome)
    flip(store, "good", "on", 1)
    assert due(store) == expected
    assert due(store, receiver("someone-else")) == []


def test_taking_back_is_due_even_if_a_flip_in_between_was_never_handed_over(store: Store) -> None:
    flip(store, "bad1", "off_recommended", 5)
    hand_over(store, "delivered")
    flip(store, "good1", "on", 3)
    flip(store, "bad2", "off_recommended", 2)
    flip(store, "good2", "on", 1)
    assert due(store) == ["good2"]


def test_a_receiver_gets_only_the_levers_it_asks_for(store: Store) -> None:
    flip(store, "spec", "off_recommended", 1)
    flip(store, "cache", "off_recommended", 2, lever="prefix_caching")
    assert due(store) == ["cache", "spec"]
    assert due(store, receiver("cachers", ("prefix_caching",))) == ["cache"]


def test_a_pending_row_stands_before_any_attempt(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    hand_over(store, None)
    [row] = store.rows("select * from deliveries")
    assert (row["outcome"], row["attempt"], row["started_at"], row["next_attempt_at"], row["ended_at"]) == ("pending", 0, NOW, NOW, None)


def test_a_webhook_id_follows_from_flip_and_receiver_alone() -> None:
    assert outbox.webhook_id("f", "oncall") == outbox.webhook_id("f", "oncall")
    assert outbox.webhook_id("f", "oncall") != outbox.webhook_id("f", "other")
    assert outbox.webhook_id("f", "oncall").startswith("msg_")


def test_what_was_delivered_does_not_wait_even_if_the_clock_went_back(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    hand_over(store, None)
    [item] = outbox.waiting(store, "oncall")
    outbox.record(store, item, "oncall", Attempt(NOW - HOUR, NOW - HOUR, "delivered", 204))
    assert outbox.waiting(store, "oncall") == []


def test_a_replay_waits_at_once_under_the_same_id_and_starts_its_schedule_again(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    hand_over(store, "retrying")
    hand_over(store, "failed")
    [first, *_] = store.rows("select delivery_id, webhook_id from deliveries where outcome = 'failed'")
    row = outbox.replay(store, first["delivery_id"], NOW + HOUR)
    [item] = outbox.waiting(store, "oncall")
    assert row is not None
    assert (item.webhook_id, item.attempt, item.tries, item.next_attempt_at) == (first["webhook_id"], 2, 0, NOW + HOUR)


def test_a_replay_of_what_is_not_there_is_none(store: Store) -> None:
    assert outbox.replay(store, "nothing", NOW) is None


def test_a_receiver_that_is_gone_gets_nothing_new_until_a_replay_gets_through(store: Store) -> None:
    flip(store, "bad", "off_recommended", 2)
    hand_over(store, "gone")
    flip(store, "other", "off_recommended", 1, segment='{"model":"m"}')
    assert outbox.stopped(store, "oncall")
    assert outbox.put_in(store, receiver(), MARK, NOW, caught_up=True) == 0
    assert outbox.put_in(store, receiver("second"), MARK, NOW, caught_up=True) == 2

    outbox.replay(store, store.rows("select delivery_id from deliveries where outcome = 'gone'")[0]["delivery_id"], NOW)
    [item] = outbox.waiting(store, "oncall")
    outbox.record(store, item, "oncall", Attempt(NOW + HOUR, NOW + HOUR, "delivered", 204))
    assert not outbox.stopped(store, "oncall")
    assert outbox.put_in(store, receiver(), MARK, NOW, caught_up=True) == 1


def test_what_waited_for_a_receiver_when_it_went_does_not_go_out(store: Store) -> None:
    flip(store, "a", "off_recommended", 2)
    flip(store, "b", "off_recommended", 1, segment='{"model":"m"}')
    hand_over(store, None)
    [first, _] = outbox.waiting(store, "oncall")
    outbox.record(store, first, "oncall", Attempt(NOW, NOW, "gone", 410))
    assert outbox.waiting(store, "oncall") == []
