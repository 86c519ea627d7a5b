"""Policies that leave or enter the shadow, are removed, renamed or come back: who was told hears of each, once."""

from __future__ import annotations

import json

import msgspec
import pytest
from told_streams import BAD, BLOCK, GOOD, POLICY, SHADOW, at, effects, judge, play, stream, told

from alerts import heartbeat, outbox
from alerts.heartbeat import Judging
from alerts.policy import shipped
from alerts.receivers import Receiver
from alerts.run import run
from queries.store import Store

OTHER = next(policy for policy in shipped() if policy.lever == "kv_quantization")
TO = Receiver(name="oncall", url="http://127.0.0.1:9/hook", secret="whsec_c2VjcmV0")
RENAMED = msgspec.structs.replace(POLICY, name="mine")


def newest_flip(store: Store) -> dict[str, object]:
    return store.rows("select * from flips order by decided_at desc limit 1")[0]


def hand_over(store: Store) -> int:
    """Puts in what is due, and sends nothing: the receiver is down."""
    return outbox.put_in(store, TO, at(5), at(5), caught_up=True)


def test_what_was_recommended_in_the_shadow_is_told_once_when_its_policy_leaves_it(store: Store) -> None:
    play(store, range(1, 6), BAD, SHADOW)
    assert told(store) == []
    play(store, range(6, 7), BAD, POLICY)
    flip = newest_flip(store)
    assert (flip["state_before"], flip["state_after"], flip["action"]) == ("off_recommended", "off_recommended", "disable")
    assert (flip["decided_at"], flip["shadow"]) == (at(6), False)
    assert str(flip["reason"]).endswith("judged in the shadow since 2026-03-04T00:15:00Z, and told from now on")
    assert told(store) == [("lever.disable", "harm")]
    play(store, range(7, 10), BAD, POLICY)
    assert told(store) == []
    assert len(store.rows("select * from flips")) == 2
    assert stream(store)["cause"] == "harm"


def test_what_cannot_be_read_or_recovers_is_not_told_for_the_first_time(store: Store) -> None:
    play(store, range(1, 6), BAD, SHADOW)
    effects(store, 6, BAD, coverage=0.2)
    judge(store, 6, POLICY)
    play(store, range(7, 9), GOOD, POLICY)
    assert stream(store)["reason_code"] == "recovering"
    assert told(store) == []
    play(store, range(9, 10), BAD, POLICY)
    assert told(store) == [("lever.disable", "harm")]


def test_what_recovered_before_its_policy_left_the_shadow_is_never_told(store: Store) -> None:
    play(store, range(1, 6), BAD, SHADOW)
    play(store, range(6, 20), GOOD, SHADOW)
    play(store, range(20, 24), GOOD, POLICY)
    assert stream(store)["state"] == "on"
    assert told(store) == []


def test_a_policy_that_goes_into_the_shadow_ends_what_was_told_and_judges_on(store: Store) -> None:
    play(store, range(1, 6), BAD)
    assert told(store) == [("lever.disable", "harm")]
    judge(store, 5, SHADOW)
    flip = newest_flip(store)
    assert (flip["state_before"], flip["state_after"]) == ("off_recommended", "off_recommended")
    assert json.loads(str(flip["notice"]))["state_after"] == "off_recommended"
    assert told(store) == [("lever.resolved", "shadowed")]
    play(store, range(6, 9), BAD, SHADOW)
    assert judge(store, 8, SHADOW) == 0
    assert (told(store), stream(store)["state"]) == ([], "off_recommended")
    play(store, range(9, 10), BAD, POLICY)
    assert told(store) == [("lever.disable", "harm")]


def test_a_stream_goes_into_the_shadow_without_any_new_block(store: Store) -> None:
    play(store, range(1, 6), BAD)
    told(store)
    judge(store, 40, POLICY)
    assert stream(store)["reason_code"] == "stale"
    judge(store, 41, SHADOW)
    assert told(store) == [("lever.resolved", "shadowed")]


def test_nobody_who_was_not_told_hears_of_the_shadow(store: Store) -> None:
    play(store, range(1, 6), BAD, SHADOW)
    judge(store, 5, SHADOW)
    assert [row["state_after"] for row in store.rows("select state_after from flips")] == ["off_recommended"]


def test_a_removed_policy_resolves_what_was_told_and_its_streams_leave(store: Store) -> None:
    play(store, range(1, 6), BAD, POLICY, OTHER)
    told(store)
    judge(store, 5, OTHER)
    flip = newest_flip(store)
    assert (flip["state_before"], flip["state_after"], flip["decided_at"]) == ("off_recommended", "on", at(5) + BLOCK / 300)
    notice = json.loads(str(flip["notice"]))
    assert (notice["reason_code"], notice["evidence"], notice["commands"], notice["query"]) == ("policy_removed", [], [], None)
    assert (notice["flip_id"], notice["steps"], notice["served_by"], notice["impact"]) == (flip["flip_id"], [], None, None)
    assert str(flip["flip_id"]) in notice["links"]["flip"]
    assert store.rows("select * from current_verdicts") == []
    assert len(store.rows("select * from verdicts")) > 0, "what was said stays"
    counts = heartbeat.message(store, Judging(at(5), at(5)), at(5)).data
    assert (counts["streams"], counts["open_recommendations"]) == (0, 0)
    assert told(store) == [("lever.resolved", "policy_removed")]
    assert judge(store, 5, OTHER) == 0


def test_a_receiver_that_is_down_meanwhile_gets_one_end(store: Store) -> None:
    play(store, range(1, 4), BAD)
    assert [kind for kind, _ in told(store)] == ["lever.disable"]
    judge(store, 3, SHADOW)
    hand_over(store)
    judge(store, 3, OTHER)
    assert told(store) == [("lever.resolved", "shadowed")]
    assert told(store) == []


def test_a_policy_that_goes_into_the_shadow_and_back_while_a_receiver_is_down_is_one_story(store: Store) -> None:
    play(store, range(1, 4), BAD)
    hand_over(store)
    judge(store, 3, SHADOW)
    assert hand_over(store) == 0, "it was told of nothing yet that could end"
    play(store, range(4, 5), BAD)
    assert hand_over(store) == 2
    assert [told(store) for _ in range(4)] == [
        [("lever.disable", "harm")],
        [("lever.resolved", "shadowed")],
        [("lever.disable", "harm")],
        [],
    ]


def test_an_end_between_two_recommendations_is_told_to_who_was_told_of_the_first(store: Store) -> None:
    play(store, range(1, 4), BAD)
    told(store)
    judge(store, 3, SHADOW)
    play(store, range(4, 5), BAD)
    assert [told(store) for _ in range(3)] == [[("lever.resolved", "shadowed")], [("lever.disable", "harm")], []]
    assert told(store, name="another") == [("lever.disable", "harm")], "who heard of nothing hears of no end"
    assert told(store, name="another") == []


def test_a_renamed_policy_is_removed_and_a_new_one_that_judges_from_the_first_block(store: Store) -> None:
    play(store, range(1, 6), BAD)
    told(store)
    judge(store, 5, RENAMED)
    assert sorted(told(store)) == [("lever.disable", "harm"), ("lever.resolved", "policy_removed")]
    assert (stream(store)["policy"], stream(store)["state"]) == ("mine", "off_recommended")


def test_a_policy_that_comes_back_starts_anew_behind_what_it_judged(store: Store) -> None:
    play(store, range(1, 6), BAD, POLICY, OTHER)
    told(store)
    judge(store, 5, OTHER)
    told(store)
    effects(store, 6, BAD)
    judge(store, 6, POLICY, OTHER)
    assert (stream(store)["state"], stream(store)["reason_code"], stream(store)["streak"]) == ("on", "harm_pending", 1)
    judge(store, 6, POLICY, OTHER, since=at(0))
    assert told(store) == []
    play(store, range(7, 9), BAD, POLICY, OTHER)
    assert told(store) == [("lever.disable", "harm")]


def test_streams_of_a_removed_policy_that_are_on_leave_without_a_word(store: Store) -> None:
    play(store, range(1, 4), GOOD)
    judge(store, 3, OTHER)
    assert store.rows("select * from current_verdicts") == []
    assert store.rows("select * from flips") == []


def test_a_run_without_any_policy_ends_nothing(store: Store) -> None:
    play(store, range(1, 6), BAD)
    before = stream(store)
    run(store, (), at(5), at(5))
    assert stream(store) == before


def test_work_on_a_folder_that_no_server_does_ends_nothing(store: Store) -> None:
    play(store, range(1, 6), BAD, POLICY, OTHER)
    judge(store, 5, OTHER, closes=False)
    assert stream(store)["state"] == "off_recommended"
    judge(store, 5, POLICY, OTHER)
    assert [row["state_after"] for row in store.rows("select state_after from flips")] == ["off_recommended"]


def test_everything_that_ends_is_written_in_the_run_s_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    play(store, range(1, 6), BAD, POLICY, OTHER)
    before = {table: store.rows(f"select * from {table}") for table in ("flips", "current_verdicts", "policies", "removed_policies")}

    def broken(*_: object) -> int:
        msg = "power cut"
        raise RuntimeError(msg)

    monkeypatch.setattr("alerts.closings.log.warning", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        judge(store, 5, OTHER)
    assert {table: store.rows(f"select * from {table}") for table in before} == before
