"""Silences: what can be asked for, what they hold back from whom, and what goes out when they end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from notice_rows import HOUR, NOW, due, emptied, flip, put_in, receiver, tried

from alerts import outbox, silence_reach, silence_rows, silences
from alerts.silences import Asked, FlipKeys, Silence, SilenceError, Snooze
from queries.store import Store

FLIP = FlipKeys("f", "p", "speculation", {"model": "llama-70b", "input_bucket": "<512"})


@pytest.fixture
def store(kept: Store) -> Store:
    return emptied(kept)


def silence(**asked: Any) -> Silence:
    return silences.planned(Asked(**({"for_s": 3600.0} | asked)), NOW)


@pytest.mark.parametrize(
    ("matchers", "expected"),
    [
        ({"lever": "speculation"}, True),
        ({"lever": "spec*"}, True),
        ({"lever": "prefix_caching"}, False),
        ({"lever": "*", "receiver": "other"}, False),
        ({"policy": "p", "receiver": "oncall"}, True),
        ({"segment": {"model": "llama-*"}}, True),
        ({"segment": {"model": "llama-*", "input_bucket": "<512"}}, True),
        ({"segment": {"model": "llama-*", "hardware": "*"}}, False),
        ({"segment": {"model": "llama-[7]0b"}}, False),
    ],
)
def test_all_that_is_named_has_to_match(matchers: dict[str, Any], expected: bool) -> None:
    assert silence(**matchers).matches(FLIP, "oncall") is expected


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"for_s": 60.0}, "takes lever, policy, segment or receiver"),
        ({"lever": "speculatoin", "for_s": 60.0}, "did you mean 'speculation'"),
        ({"receiver": "oncal", "for_s": 60.0}, "did you mean 'oncall'"),
        ({"segment": {"modle": "m"}, "for_s": 60.0}, "segment key 'modle' is unknown"),
        ({"segment": {"mod*": "m"}, "for_s": 60.0}, "segment key 'mod[*]' is unknown"),
        ({"lever": "*", "starts_at": datetime.max.replace(tzinfo=UTC), "for_s": 60.0}, "a time after its start"),
        ({"lever": "*"}, "takes exactly one of ends_at and for_s, got none"),
        ({"lever": "*", "for_s": 60.0, "ends_at": NOW + HOUR}, "got ends_at and for_s"),
        ({"lever": "*", "ends_at": NOW - HOUR}, "a time after its start"),
        ({"lever": "*", "for_s": 31 * 86_400.0}, "at most 30 days"),
        ({"lever": "*", "for_s": 1e300}, "at most 30 days"),
        ({"lever": "*", "for_s": 60.0, "starts_at": NOW + 999 * HOUR}, "at most 30 days"),
    ],
)
def test_a_silence_that_cannot_be_is_refused_with_what_is_taken(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(SilenceError, match=said):
        silences.planned(Asked(**asked), NOW, ("oncall",))


def test_a_time_without_an_offset_is_utc_and_one_in_the_past_is_now() -> None:
    read = msgspec.json.decode(b'{"lever": "*", "starts_at": "2020-01-01T00:00:00", "ends_at": "2026-03-05T10:00:00"}', type=Asked)
    found = silences.planned(read, NOW)
    assert (found.starts_at, found.ends_at) == (NOW, datetime(2026, 3, 5, 10, tzinfo=UTC))


def test_while_it_lasts_what_recommends_is_not_due_and_afterwards_it_is_if_it_still_stands(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    flip(store, "passing", "off_recommended", 1, segment='{"model":"passing"}')
    silence_rows.add(store, silence(lever="speculation", for_s=7200.0))
    assert due(store) == []
    flip(store, "passed", "on", 0.5, segment='{"model":"passing"}')
    assert due(store, now=NOW + 2 * HOUR) == ["bad"]


def test_of_a_silence_of_days_what_still_stands_is_told_for_a_day_after_its_end(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    silence_rows.add(store, silence(lever="*", for_s=3 * 86_400.0))
    ends = NOW + timedelta(days=3)
    assert due(store, now=ends - HOUR, mark=ends - HOUR) == []
    assert due(store, now=ends + HOUR, mark=ends + HOUR) == ["bad"]
    assert due(store, now=ends + 25 * HOUR, mark=ends + 25 * HOUR) == []


def test_it_holds_what_waits_but_no_end_of_a_recommendation(store: Store) -> None:
    flip(store, "told", "off_recommended", 3)
    put_in(store)
    tried(store, "delivered")
    flip(store, "waits", "off_recommended", 1, segment='{"model":"n"}')
    put_in(store)
    silence_rows.add(store, silence(lever="*"))
    flip(store, "over", "on", 0.5)
    put_in(store)
    assert [item.flip_id for item in outbox.waiting(store, "oncall", NOW)] == ["over"]
    assert {item.flip_id for item in outbox.waiting(store, "oncall", NOW + HOUR)} == {"over", "waits"}


def test_one_receiver_can_be_silenced_alone(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    silence_rows.add(store, silence(receiver="oncall"))
    assert (due(store), due(store, receiver("second"))) == ([], ["bad"])


def test_a_snoozed_flip_is_held_and_no_other_of_its_lever(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    flip(store, "other", "off_recommended", 1, segment='{"model":"n"}')
    silence_rows.add(store, silences.snoozed("bad", Snooze(for_s=3600.0), NOW))
    assert due(store) == ["other"]
    assert due(store, now=NOW + HOUR) == ["bad", "other"]


def test_one_that_is_ended_holds_no_more_and_stays_known(store: Store) -> None:
    flip(store, "bad", "off_recommended", 1)
    one = silence_rows.add(store, silence(lever="*"))
    ended = silence_rows.end(store, one.silence_id, NOW)
    assert ended is not None
    assert (ended.state(NOW), due(store)) == ("ended", ["bad"])
    assert silence_rows.end(store, one.silence_id, NOW + HOUR) == ended
    assert silence_rows.listed(store) == [ended]
    with pytest.raises(SilenceError, match="there is no silence 'nothing'"):
        silence_rows.end(store, "nothing", NOW)


def test_silences_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence_rows, "MOST_STANDING", 1)
    silence_rows.add(store, silence(lever="*"))
    with pytest.raises(SilenceError, match="1 silences stand already"):
        silence_rows.add(store, silence(lever="*"))


def test_the_beginning_of_an_id_ends_a_silence_where_only_one_begins_so(store: Store) -> None:
    for name in ("abcd1111", "abcd2222", "ef001111"):
        silence_rows.add(store, replace(silence(lever="*"), silence_id=name))
    assert silence_rows.end(store, "ef00", NOW).silence_id == "ef001111"
    with pytest.raises(SilenceError, match="2 silences begin with 'abcd': abcd1111, abcd2222; take more of the id"):
        silence_rows.end(store, "abcd", NOW)
    assert silence_rows.end(store, "abcd1", NOW).silence_id == "abcd1111"
    with pytest.raises(SilenceError, match="its first 4 characters or more"):
        silence_rows.end(store, "ef0", NOW)


def test_a_silence_about_nothing_that_was_ever_judged_is_told_so_with_the_nearest(store: Store) -> None:
    flip(store, "a", "off_recommended", 1)
    assert silence_reach.notes(store, silence(policy="p")) == []
    assert silence_reach.notes(store, silence(segment={"model": "m*"})) == []
    nothing = "it is about nothing so far: no policy, lever and segment like that stands or was ever judged"
    assert silence_reach.notes(store, silence(lever="disaggregation")) == [nothing]
    flip(store, "b", "off_recommended", 1, policy="speculation-net-itl", segment='{"model":"llama-70b"}')
    assert silence_reach.notes(store, silence(policy="speculation-netitl")) == [
        nothing,
        "policy 'speculation-netitl': did you mean 'speculation-net-itl'?",
    ]
    assert silence_reach.notes(store, silence(segment={"model": "lama-70b"}))[1:] == ["model 'lama-70b': did you mean 'llama-70b'?"]
    assert silence_reach.notes(store, silence(segment={"model": "lama*"})) == [nothing]


def test_a_silence_over_what_was_told_already_says_so(store: Store) -> None:
    flip(store, "told-of-it", "off_recommended", 1)
    put_in(store)
    assert silence_reach.notes(store, silence(lever="*")) == []
    tried(store, "delivered")
    [note] = silence_reach.notes(store, silence(lever="*"))
    assert note.startswith("1 recommendation that stands was told already (told-of- to oncall): ")
    assert silence_reach.notes(store, silence(lever="*", receiver="other")) == []
    snoozed = silences.snoozed("told-of-it", Snooze(for_s=60.0), NOW)
    assert silence_reach.notes(store, snoozed) == [note]
    flip(store, "over", "on", 0)
    assert silence_reach.notes(store, silence(lever="*")) == []
