"""A receiver that is added hears what stands already, once, and not what was before; whatever happens at its start."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from notice_rows import NOW, flip, receiver

from alerts import silence_rows, silences
from alerts.couriers import Couriers
from alerts.receivers import Receiver
from alerts.silences import Asked
from queries.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    with opened.write() as transaction:
        transaction.insert(
            "policies",
            pl.DataFrame(
                [{"policy": "p", "version": "1", "lever": "speculation", "owner": "o", "body": "{}", "loaded_at": NOW, "shadow": False}]
            ),
        )
    yield opened
    opened.close()


def stands(store: Store, flip_id: str, hours_ago: float, state: str = "off_recommended", now: str | None = None, **changes: Any) -> None:
    """A stream whose newest change is a flip, and which is in its state, or in another one, now."""
    segment = f'{{"model":"{flip_id}"}}'
    flip(store, flip_id, state, hours_ago, segment=segment, **changes)
    row = {"policy": "p", "policy_version": "1", "lever": "speculation", "segment": segment, "verdict": "disable", "action": "disable"}
    row |= {"reason_code": "harm", "reason": "r", "decided_at": NOW, "block_ended_at": NOW, "state": now or state, "state_since": NOW}  # type: ignore[dict-item]
    with store.write() as transaction:
        transaction.insert("current_verdicts", pl.DataFrame([row | {"streak": 0}]))


def start(store: Store, *receivers: Receiver, caught_up: bool = True, now: datetime = NOW) -> dict[str, set[str]]:
    """Starts with these receivers; gives the flips that each has been handed by then, in all."""
    couriers = Couriers(store, receivers, lambda: now, {})
    for _ in range(2):
        couriers.hand_over(now, caught_up=caught_up)
    handed: dict[str, set[str]] = {one.name: set() for one in receivers}
    for row in store.rows("select receiver, flip_id from deliveries"):
        handed.setdefault(row["receiver"], set()).add(row["flip_id"])
    return handed


def test_a_receiver_that_is_added_hears_what_stands_and_not_the_history(store: Store) -> None:
    start(store, receiver())
    stands(store, "old", 90)
    stands(store, "back", 80, "probation")
    stands(store, "over", 70, "on")
    stands(store, "shadow", 60, shadow=True)
    stands(store, "elsewhere by now", 50, now="off")
    assert start(store, receiver(), receiver("second")) == {"oncall": set(), "second": {"old", "back"}}
    assert len(store.rows("select * from deliveries")) == 2, "once"
    assert start(store, receiver("second")) == {"second": {"old", "back"}}


def test_it_hears_only_what_its_routing_takes_and_nothing_that_is_silenced(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    stands(store, "severe", 80, severity="critical")
    stands(store, "silenced", 80, severity="critical")
    asked = Asked(segment={"model": "silenced"}, for_s=3600.0, comment="not now")
    silence_rows.add(store, silences.planned(asked, NOW))
    wanted = receiver(severity="critical")
    assert start(store, wanted, receiver("other", levers=("disaggregation",))) == {"oncall": {"severe"}, "other": set()}


def test_one_that_does_not_want_what_stands_hears_what_is_decided_later(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    stands(store, "young", 3)
    assert start(store, receiver(standing=False)) == {"oncall": {"young"}}


def test_a_receiver_that_was_away_hears_what_it_has_no_delivery_of(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    assert start(store, receiver()) == {"oncall": {"old"}}
    start(store, receiver("second"))
    stands(store, "meanwhile", 60)
    assert start(store, receiver(), receiver("second")) == {"oncall": {"old", "meanwhile"}, "second": {"old"}}
    assert len(store.rows("select * from deliveries where receiver = 'oncall'")) == 2


def test_at_the_first_start_of_all_history_that_was_loaded_is_not_told(store: Store) -> None:
    stands(store, "old", 90)
    stands(store, "young", 3)
    assert start(store, receiver()) == {"oncall": {"young"}}
    assert start(store, receiver()) == {"oncall": {"young"}}


def test_a_receiver_stays_new_until_judging_has_caught_up(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    assert start(store, receiver(), caught_up=False) == {"oncall": set()}
    assert start(store, receiver()) == {"oncall": {"old"}}


def test_a_crash_before_the_notice_is_put_in_leaves_the_receiver_new(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    start(store)
    stands(store, "old", 90)

    def broken(*_: object) -> int:
        msg = "power cut"
        raise RuntimeError(msg)

    with monkeypatch.context() as patched:
        patched.setattr("alerts.delivery_rows.insert", broken)
        with pytest.raises(RuntimeError, match="power cut"):
            start(store, receiver())
    assert start(store, receiver()) == {"oncall": {"old"}}


def test_the_id_is_the_one_that_everybody_else_who_has_it_would_get_again(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    start(store, receiver())
    [first] = store.rows("select webhook_id from deliveries")
    with store.write() as transaction:
        transaction.execute("delete from deliveries")
    start(store)
    start(store, receiver())
    assert store.rows("select webhook_id from deliveries") == [first]


def silenced(store: Store, began_hours_ago: float, for_hours: float) -> None:
    """A silence of everything that is over by now."""
    asked = Asked(lever="*", for_s=for_hours * 3600.0, comment="maintenance")
    silence_rows.add(store, silences.planned(asked, NOW - timedelta(hours=began_hours_ago)))


def test_the_end_of_a_silence_tells_no_standing_recommendation_to_one_that_does_not_want_them(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    silenced(store, 3, 1)
    assert start(store, receiver(standing=False), receiver("second")) == {"oncall": set(), "second": {"old"}}
    assert start(store, receiver(standing=False), receiver("second")) == {"oncall": set(), "second": {"old"}}


def test_the_end_of_a_silence_tells_no_history_that_was_loaded_before_the_first_start(store: Store) -> None:
    stands(store, "old", 90)
    silenced(store, 3, 1)
    assert start(store, receiver()) == {"oncall": set()}


def test_what_stands_and_is_silenced_while_a_receiver_is_added_is_told_once_the_silence_is_over(store: Store) -> None:
    start(store)
    stands(store, "old", 90)
    silence = silence_rows.add(store, silences.planned(Asked(lever="*", for_s=3600.0, comment="not now"), NOW))
    later = NOW + timedelta(minutes=1)
    assert start(store, receiver(), receiver("second", standing=False), now=later) == {"oncall": set(), "second": set()}
    silence_rows.end(store, silence.silence_id, later + timedelta(minutes=1))
    after = later + timedelta(minutes=2)
    assert start(store, receiver(), receiver("second", standing=False), now=after) == {"oncall": {"old"}, "second": set()}


def test_what_was_decided_during_a_silence_is_told_after_it_to_whoever_was_there(store: Store) -> None:
    start(store, receiver(standing=False), now=NOW - timedelta(hours=60))
    stands(store, "held", 40)
    silenced(store, 50, 48)
    assert start(store, receiver(standing=False)) == {"oncall": {"held"}}
