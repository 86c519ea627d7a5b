from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest
from judged_history import BAD, BAND, BLOCK, GOOD, SEGMENT, T0, end, play, policy, put

from alerts import backtest as module
from alerts.backtest import backtest
from alerts.backtest_told import Backtest
from alerts.chain import Policy
from alerts.run import run
from queries.store import Store

OTHER = '{"model":"other"}'
GAINS = [GOOD, BAD, BAD, BAD, BAND, *[GOOD] * 20, BAD, BAD, BAD]
JUDGED = ("policies", "verdicts", "current_verdicts", "flips")


def tried(store: Store, *policies: Policy, **period: datetime) -> Backtest:
    return backtest(store, policies or (policy(),), **period)


def verdicts(found: Backtest) -> list[tuple[str, int]]:
    return [(one.verdict, (one.decided_at - T0) // BLOCK) for one in found.changes]


def live(store: Store, policies: list[Policy], blocks: int) -> list[dict[str, Any]]:
    """What a live server says of the same blocks as they close, reduced to changes of verdict."""
    held = store.frame("select * from effects")
    with store.write() as transaction:
        transaction.execute("delete from effects")
    for block in range(1, blocks + 1):
        with store.write() as transaction:
            transaction.insert("effects", held.filter(pl.col("until") == end(block)))
        run(store, policies, end(block), end(block))
    asked = (
        "select policy, segment, verdict, decided_at from verdicts"
        " qualify verdict is distinct from lag(verdict) over (partition by policy, segment order by decided_at)"
        " order by decided_at, policy, segment"
    )
    return store.rows(asked)


def test_each_change_of_verdict_is_told_once_with_its_block_and_reason(store: Store) -> None:
    play(store, GAINS)
    found = tried(store)
    assert verdicts(found) == [("keep", 1), ("disable", 4), ("keep", 16), ("disable", 28)]
    assert "net ITL 31 ms against 27 ms in control, gain -16 % (-22..-9 %), 24 blocks" in found.changes[1].reason


def test_history_is_judged_as_a_live_run_judges_it(store: Store) -> None:
    play(store, GAINS)
    play(store, [BAND, GOOD, *[BAD] * 9], start=3, segment=OTHER)
    policies = [policy(), policy(name="shy", minimum_blocks=30)]
    told = [
        {"policy": one.policy, "segment": one.segment, "verdict": one.verdict, "decided_at": one.decided_at}
        for one in tried(store, *policies).changes
    ]
    assert sorted(told, key=str) == sorted(live(store, policies, len(GAINS)), key=str)
    assert len(told) > 6


def test_nothing_is_written_and_the_live_streams_stay(store: Store) -> None:
    play(store, [BAD, BAD])
    run(store, [policy()], end(2), end(2))
    before = {table: store.rows(f"select * from {table}") for table in JUDGED}
    versions = {table: store.version(table) for table in JUDGED}
    play(store, [BAD] * 3, start=3)
    assert [one.reason_code for one in tried(store).recommendations] == ["harm"]
    assert {table: store.rows(f"select * from {table}") for table in JUDGED} == before
    assert {table: store.version(table) for table in JUDGED} == versions


def test_a_recommendation_has_its_beginning_its_end_and_what_followed(store: Store) -> None:
    play(store, GAINS)
    first, last = tried(store).recommendations
    assert (first.fired_at, first.ended_at, first.state_after) == (end(4), end(16), "on")
    assert (last.fired_at, last.ended_at, last.state_after) == (end(28), None, "")
    assert (first.action, first.severity, first.shadow, first.reason_code) == ("disable", "warning", False, "harm")


def test_a_shadowed_policy_tells_what_it_would_have_said(store: Store) -> None:
    play(store, [BAD] * 3)
    [one] = tried(store, policy(shadow=True, severity="critical")).recommendations
    assert (one.shadow, one.severity) == (True, "critical")


def test_a_period_begins_streams_anew_and_ends_with_its_last_block(store: Store) -> None:
    play(store, GAINS)
    found = tried(store, since=end(1), until=end(4))
    assert verdicts(found) == [("keep", 2), ("disable", 4)]
    assert (found.streams[0].first_block_at, found.streams[0].last_block_at, found.streams[0].blocks) == (end(2), end(4), 3)


def test_slices_of_history_give_what_the_whole_gives(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    play(store, GAINS)
    whole = tried(store)
    monkeypatch.setattr(module, "SLICE_EFFECTS", 1)
    assert tried(store) == whole


def test_a_stream_that_stops_while_others_go_on_is_frozen(store: Store) -> None:
    play(store, [GOOD] * 3)
    play(store, [GOOD] * 30, segment=OTHER)
    changes = [one for one in tried(store).changes if one.segment == SEGMENT]
    assert [(one.verdict, one.decided_at) for one in changes] == [("keep", end(1)), ("frozen", end(3) + timedelta(minutes=65))]


def test_what_could_not_be_told_is_counted_with_its_commonest_reason(store: Store) -> None:
    play(store, [GOOD] * 2)
    play(store, [GOOD] * 5, start=3, n_b=40)
    [stream] = tried(store).streams
    assert (stream.blocks, stream.verdicts) == (7, {"insufficient": 5, "keep": 2})
    assert stream.undecided_code == "few_requests"
    assert "40 in control" in stream.undecided_reason


def test_a_premise_that_nobody_watched_is_decided_by_its_value_and_that_is_said(store: Store) -> None:
    play(store, [None] * 8, value_a=1.1)
    found = tried(store)
    assert [one.reason_code for one in found.recommendations] == ["premise_lost.acceptance_length"]
    assert any(note.startswith("speculation-net-itl: acceptance length below 1.25") and "by its value" in note for note in found.notes)


def test_a_premise_that_was_watched_is_decided_by_its_evidence(store: Store) -> None:
    lost = {"threshold": 1.25, "is_above": False, "log_m": 0.0}
    play(store, [None] * 8, value_a=1.1, premise_evidence=[lost])
    found = tried(store)
    assert not found.recommendations
    assert not any("acceptance length" in note for note in found.notes)


def test_a_trigger_whose_metric_history_lacks_is_named(store: Store) -> None:
    play(store, [GOOD])
    unread = "speculation-net-itl: the trigger premise_lost of batch_at_admission had no number in this history and could not fire"
    assert unread in tried(store).notes


def test_what_operators_switched_off_by_themselves_is_told_by_segment(store: Store) -> None:
    play(store, [GOOD])
    settings = ["('r1', null, 'ngram', 0)", "('r1', 'control', 'off', 1)", "('r1', null, 'ngram', 2)", "('r1', null, 'off', 3)"]
    with store.write() as transaction:
        transaction.execute("insert into cell_segments by name select 1 as segment_id, $segment as segment", {"segment": SEGMENT})
        transaction.execute("insert into cell_series values (1, 1, 'speculation', 'treated', 'r1', '', false)")
        transaction.execute(
            "insert into lever_settings select r, 'speculation', arm, setting, $t::timestamptz + to_hours(h)"
            f" from (values {', '.join(settings)}) as s(r, arm, setting, h)",
            {"t": T0.isoformat()},
        )
    [switch] = tried(store).switches
    assert (switch.segment, switch.replica, switch.switched_at) == (SEGMENT, "r1", T0 + timedelta(hours=3))


def test_levers_that_interact_are_recommended_one_at_a_time(store: Store) -> None:
    lesser = policy(name="kv", lever="kv_quantization", revalidates=("speculation",), goes_before=())
    for block in range(1, 6):
        put(store, block, BAD)
        put(store, block, (-0.12, -0.05), lever="kv_quantization")
    found = tried(store, policy(), lesser)
    assert [one.policy for one in found.recommendations] == ["speculation-net-itl"]
    assert {one.verdict for one in found.changes if one.policy == "kv"} == {"keep", "conflicted"}


def test_without_history_nothing_is_judged(store: Store) -> None:
    assert tried(store) == Backtest()
