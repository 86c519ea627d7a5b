from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from effect_evidence import evident_row

from alerts import streams
from alerts.chain import Policy
from alerts.outcome import Outcome
from alerts.policy import parse, shipped, shipped_text
from alerts.run import run
from queries.store import Store

T0 = datetime(2026, 3, 4, tzinfo=UTC)
NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
SEGMENT = '{"hardware":"h100","model":"m"}'
POLICIES = [policy for policy in shipped() if policy.lever == "speculation"]
TABLES = ("policies", "verdicts", "current_verdicts", "flips")
GOOD, BAD, BAND = (0.1, 0.2), (-0.22, -0.09), (0.01, 0.04)


def effects(store: Store, block: int, gain: tuple[float, float], segment: str = SEGMENT, start: datetime = T0, **changes: Any) -> None:
    """The rows that the pipeline appends for one segment when a block closes."""
    until = start + block * BLOCK
    common = {"lever": "speculation", "segment": segment, "arm_a": "treated", "since": until - 24 * BLOCK, "until": until}
    common |= {"blocks": 24, "n_a": 4000, "n_b": 400, "method": "test", "evidence": None, "coverage": 1.0, "note": None}
    control = common | {"arm_b": "control", "value_a": 0.031, "value_b": 0.027, "basis": "control"}
    alone = common | {"arm_b": None, "n_b": 0, "value_b": None, "gain": None, "gain_low": None, "gain_high": None, "basis": "premise"}
    rows = [
        control | {"metric": "net_itl_s", "gain": sum(gain) / 2, "gain_low": gain[0], "gain_high": gain[1]} | changes,
        control | {"metric": "ttft_s", "gain": 0.0, "gain_low": -0.02, "gain_high": 0.02},
        alone | {"metric": "acceptance_length", "value_a": 2.4},
    ]
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([evident_row(row) for row in rows], infer_schema_length=None))


def judge(store: Store, block: int, policies: list[Policy] = POLICIES) -> int:
    return run(store, policies, NOW, T0 + block * BLOCK)


def play(store: Store, gains: list[tuple[float, float]], start: int = 1) -> None:
    for block, gain in enumerate(gains, start):
        effects(store, block, gain)
        judge(store, block)


def content(store: Store) -> dict[str, list[dict[str, Any]]]:
    return {table: store.rows(f"select * from {table} order by all") for table in TABLES}


def test_a_first_run_writes_the_policies_even_without_effects(store: Store) -> None:
    assert judge(store, 0) == len(POLICIES)
    [row] = store.rows("select policy, version, lever, owner, body, loaded_at from policies")
    told = (POLICIES[0].name, POLICIES[0].version, "speculation", NOW)
    assert (row["policy"], row["version"], row["lever"], row["loaded_at"]) == told
    assert json.loads(row["body"])["quality_gate"]["repeats"] == 5


def test_unchanged_input_writes_no_row(store: Store) -> None:
    play(store, [GOOD, BAD, BAD, BAD])
    before = content(store)
    assert judge(store, 4) == 0
    assert run(store, POLICIES, NOW + timedelta(days=3), T0 + 4 * BLOCK) == 0
    assert content(store) == before


def test_harm_for_three_blocks_flips_once_and_is_dated_by_its_block(store: Store) -> None:
    play(store, [GOOD, BAD, BAD, BAD, BAD, BAD])
    [flip] = store.rows("select * from flips")
    assert (flip["state_before"], flip["state_after"]) == ("on", "off_recommended")
    assert flip["decided_at"] == T0 + 4 * BLOCK
    assert "net ITL 31 ms against 27 ms in control, gain -16 % (-22..-9 %), 24 blocks" in flip["reason"]
    assert flip["reason"].endswith("held for 3 blocks of 5 min, up to 00:20 UTC")


def test_blocks_judged_at_once_give_what_blocks_judged_one_by_one_give(store: Store, tmp_path: Path) -> None:
    gains = [GOOD, BAD, BAD, BAD, BAND, *[GOOD] * 20, BAD, BAD, BAD]
    play(store, gains)
    other = Store(tmp_path / "other")
    for block, gain in enumerate(gains, 1):
        effects(other, block, gain)
    judge(other, len(gains))
    assert content(other) == content(store)
    assert len(content(store)["flips"]) == 3
    other.close()


def test_judging_everything_again_makes_no_second_flip(store: Store) -> None:
    play(store, [GOOD, BAD, BAD, BAD])
    with store.write() as transaction:
        transaction.execute("delete from current_verdicts")
    judge(store, 4)
    assert len(store.rows("select * from flips")) == 1


def test_a_verdict_row_is_written_on_change_and_once_an_hour_otherwise(store: Store) -> None:
    play(store, [GOOD] * 30)
    rows = store.rows("select decided_at, block_ended_at, verdict from verdicts order by decided_at")
    assert [row["decided_at"] - T0 for row in rows] == [BLOCK, BLOCK + timedelta(hours=1), BLOCK + timedelta(hours=2)]
    assert all(row["block_ended_at"] == row["decided_at"] for row in rows)


def test_the_current_verdict_holds_the_latest_numbers_of_each_stream(store: Store) -> None:
    effects(store, 1, GOOD, segment='{"model":"other"}')
    play(store, [GOOD, BAD])
    rows = store.rows("select segment, reason_code, state, streak, decided_at from current_verdicts order by segment")
    assert [(row["segment"], row["reason_code"], row["streak"]) for row in rows] == [
        (SEGMENT, "harm_pending", 1),
        ('{"model":"other"}', "pays", 0),
    ]
    assert rows[0]["decided_at"] == T0 + 2 * BLOCK


def test_a_count_goes_on_over_runs(store: Store) -> None:
    play(store, [BAD, BAD])
    play(store, [BAD], start=3)
    assert store.rows("select state from current_verdicts")[0]["state"] == "off_recommended"


def test_a_recommendation_is_taken_back_after_good_blocks_and_an_hour(store: Store) -> None:
    play(store, [BAD] * 3 + [GOOD] * 12)
    flips = store.rows("select state_before, state_after, decided_at, reason from flips order by decided_at")
    assert [(flip["state_before"], flip["state_after"]) for flip in flips] == [("on", "off_recommended"), ("off_recommended", "on")]
    assert flips[1]["decided_at"] == T0 + 15 * BLOCK
    assert flips[1]["reason"].endswith("good for 12 blocks")


def test_off_by_a_premise_is_remembered_over_runs(store: Store) -> None:
    for block in range(1, 30):
        until = T0 + block * BLOCK
        row = {"lever": "speculation", "segment": SEGMENT, "arm_a": "treated", "since": T0, "until": until, "blocks": 24}
        row |= {"n_a": 4000, "n_b": 0, "method": "test", "coverage": 1.0}
        length = 1.1 if block < 10 else 2.0
        rows = [
            row | {"metric": "net_itl_s", "value_a": 0.03, "basis": "none", "note": "no control arm"},
            row | {"metric": "acceptance_length", "value_a": length, "basis": "premise", "note": None},
        ]
        with store.write() as transaction:
            transaction.insert("effects", pl.DataFrame(rows))
        judge(store, block)
    flips = store.rows("select state_after, reason from flips order by decided_at")
    assert [flip["state_after"] for flip in flips] == ["off_recommended", "on"]
    assert "harm was not measured" in flips[0]["reason"]
    assert "1.5 to switch on again; basis premise" in flips[1]["reason"]


def test_a_stream_that_falls_behind_the_watermark_is_frozen_once(store: Store) -> None:
    play(store, [BAD, BAD, BAD])
    assert judge(store, 15) == 0
    assert judge(store, 30) == 2
    assert judge(store, 60) == 0
    [row] = store.rows("select verdict, reason_code, state, block_ended_at, decided_at from current_verdicts")
    assert (row["verdict"], row["reason_code"], row["state"]) == ("frozen", "stale", "off_recommended")
    assert (row["block_ended_at"], row["decided_at"]) == (T0 + 3 * BLOCK, T0 + 30 * BLOCK)


def test_a_stream_that_comes_back_is_judged_again(store: Store) -> None:
    play(store, [GOOD])
    judge(store, 30)
    play(store, [GOOD], start=31)
    assert store.rows("select verdict from current_verdicts") == [{"verdict": "keep"}]


def test_nothing_is_stale_while_judging_has_not_caught_up(store: Store) -> None:
    play(store, [GOOD])
    assert run(store, POLICIES, NOW, T0 + 90 * BLOCK, caught_up=False) == 0


def test_history_that_came_late_is_judged_when_asked_for(store: Store) -> None:
    play(store, [GOOD], start=100)
    for block in range(1, 5):
        effects(store, block, BAD, segment='{"model":"old"}')
    assert judge(store, 100) == 0
    run(store, POLICIES, NOW, T0 + 100 * BLOCK, since=T0)
    assert [flip["segment"] for flip in store.rows("select segment from flips")] == ['{"model":"old"}']


def test_a_policy_that_is_new_judges_from_the_first_block_and_the_old_one_does_not_again(store: Store) -> None:
    play(store, [BAD] * 4)
    text = shipped_text("speculation-net-itl").replace('name = "speculation-net-itl"', 'name = "mine"')
    text = text.replace(f'version = "{POLICIES[0].version}"', "version = 7")
    judge(store, 4, [*POLICIES, parse(text, "mine.toml")])
    flips = store.rows("select policy, decided_at from flips order by policy")
    assert [(flip["policy"], flip["decided_at"]) for flip in flips] == [("mine", T0 + 3 * BLOCK), ("speculation-net-itl", T0 + 3 * BLOCK)]
    assert store.rows("select distinct policy_version from verdicts where policy = 'mine'") == [{"policy_version": "7"}]
    assert sorted(row["policy"] for row in store.rows("select policy from policies")) == ["mine", "speculation-net-itl"]


def test_everything_of_a_run_is_written_in_one_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    play(store, [BAD, BAD])
    effects(store, 3, BAD)
    before = content(store)

    def broken(*_: object) -> int:
        msg = "power cut"
        raise RuntimeError(msg)

    monkeypatch.setattr("alerts.writing.replace_current", broken)
    with pytest.raises(RuntimeError, match="power cut"):
        judge(store, 3)
    assert content(store) == before


def test_what_a_policy_said_of_another_lever_is_over_once_it_is_given_this_one(store: Store) -> None:
    play(store, [GOOD, BAD, BAD, BAD])
    [stream] = store.rows("select * from current_verdicts")
    assert stream["state"] == "off_recommended"
    plain = {"goes_before": (), "revalidates": ()}
    moved = [msgspec.structs.replace(policy, lever="tensor_parallel", **plain) for policy in POLICIES]
    outcome = Outcome(streams.current(store), {}, {policy.name: policy for policy in moved})
    assert list(outcome.opened(T0 + 5 * BLOCK)) == [], "nothing is recommended of the other lever"
    judge(store, 100, moved)
    assert store.rows("select * from current_verdicts") == []
    [flip] = store.rows("select * from flips where json_extract_string(notice, '$.reason_code') = 'policy_removed'")
    assert (flip["lever"], flip["state_before"], flip["state_after"]) == ("speculation", "off_recommended", "on")
