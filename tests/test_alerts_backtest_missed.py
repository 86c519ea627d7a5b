"""Why a label was missed: what the streams that it is about had for verdicts in its time."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from judged_history import BAD, BLOCK, GOOD, NAME, SEGMENT, T0, end, play, policy

from alerts.backtest import backtest
from alerts.backtest_labels import Label, missed
from alerts.backtest_missed import unjudged, why
from alerts.backtest_stretches import limits
from alerts.chain import Policy
from leverwatch.cli import policy_backtest_text
from leverwatch.cli.main import main
from queries.store import Store

SHORT, PAST = (-0.03, 0.0), (-0.2, 0.02)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "data")
    yield opened
    opened.close()


def label(first: int, last: int | None = None, **segment: str) -> Label:
    """A time of harm from the beginning of a block, counted from 1, to the end of another."""
    return Label(lever="speculation", segment=segment, since=end(first) - BLOCK, until=None if last is None else end(last))


def whys(store: Store, one: Label, *policies: Policy) -> list[str]:
    """Why a label was missed, without the policy and the segment that each sentence begins with."""
    found = backtest(store, policies or (policy(),))
    assert missed(found, [one]) == (one,)
    return [sentence.removeprefix(f"{NAME} {SEGMENT}: ") for sentence in why(found, one)]


def test_too_few_requests_are_told_with_how_many_blocks_they_spoiled(store: Store) -> None:
    play(store, [BAD] * 6)
    [one] = whys(store, label(1), policy(minimum_requests=500))
    assert one.startswith("insufficient in 6 of 6 blocks, few_requests: net ITL: 4000 requests treated and 400 in control, 500")


def test_frozen_blocks_are_told(store: Store) -> None:
    play(store, [GOOD] * 2)
    play(store, [BAD] * 4, start=3, coverage=0.5)
    assert whys(store, label(3, 6))[0].startswith("frozen in 4 of 4 blocks, coverage: ")


def test_a_gain_that_stayed_short_of_the_limit_is_told_by_how_much(store: Store) -> None:
    play(store, [GOOD, *[SHORT] * 5])
    [one] = whys(store, label(2))
    assert one.startswith("keep in 5 of 5 blocks, no_harm: ")
    assert one.endswith("nearest to harm: net ITL, gain -1.5 %, 0.5 points short of the limit of -2 %")


def test_without_labels_streams_that_never_acted_say_how_near_they_came(store: Store) -> None:
    play(store, [GOOD, *[SHORT] * 5])
    told = policy_backtest_text.text(backtest(store, [policy()]), [], [])
    [near] = [line for line in told.splitlines() if line.startswith("never acted: ")]
    assert "nearest to harm: net ITL, gain -1.5 %, 0.5 points short of the limit of -2 %, at 20" in near
    assert near.endswith("Z")


def test_a_gain_past_the_limit_that_is_not_evident_is_told_with_its_interval(store: Store) -> None:
    play(store, [GOOD, *[PAST] * 5])
    [one] = whys(store, label(2))
    assert "nearest to harm: net ITL, gain -9 % (-20..+2 %), past the limit of -2 % by its value and not by what is evident" in one


def test_harm_for_fewer_blocks_than_it_takes_is_told_as_pending(store: Store) -> None:
    play(store, [GOOD, GOOD, BAD, BAD, GOOD])
    pending = [one for one in whys(store, label(3, 4)) if "harm_pending" in one]
    assert len(pending) == 1
    assert "keep in 2 of 2 blocks, harm_pending: " in pending[0]
    assert "or not for long enough" in pending[0]


def test_several_reasons_are_told_the_longest_first(store: Store) -> None:
    play(store, [SHORT] * 3)
    play(store, [None] * 6, start=4)
    told = whys(store, label(1))
    assert [one.split(", ")[0] for one in told] == ["insufficient in 6 of 9 blocks", "keep in 3 of 9 blocks"]


def test_a_label_of_a_stream_or_time_that_was_not_judged_is_told_apart(store: Store) -> None:
    play(store, [GOOD] * 4)
    found = backtest(store, (policy(),))
    other, later, judged = label(1, model="other"), label(9, 12), label(1, 2)
    assert unjudged(found, [other, later, judged]) == [other, later]


def test_stretches_hold_every_block_once_in_order(store: Store) -> None:
    play(store, [GOOD, GOOD, BAD, BAD, BAD, BAD, *[GOOD] * 14])
    [stream] = backtest(store, (policy(),)).streams
    assert sum(one.blocks for one in stream.stretches) == stream.blocks == 20
    assert [one.reason_code for one in stream.stretches][:4] == ["pays", "harm_pending", "harm", "recovering"]
    assert (stream.stretches[0].since, stream.stretches[0].until) == (end(1), end(2))
    assert [one.since for one in stream.stretches] == sorted(one.since for one in stream.stretches)


def test_a_trigger_with_a_further_condition_has_no_limit_of_its_own() -> None:
    assert [(one.effect, one.gain) for one in limits(policy())] == [("net_itl_s", -0.02), ("ttft_s", -0.25), ("quality", 0.0)]


def test_streams_that_paid_for_a_day_are_told_not_to_be_widened_here(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alerts.backtest_told.BLOCKS_A_CYCLE", 4)
    play(store, [GOOD] * 3)
    assert not any("paid for a day" in note for note in backtest(store, (policy(),)).notes)
    play(store, [GOOD], start=4)
    assert any(
        "1 streams paid for a day or more: a live run may advise more traffic" in note for note in backtest(store, (policy(),)).notes
    )


def test_the_command_tells_why_a_label_was_missed_and_which_was_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = Store(tmp_path / "data")
    play(opened, [GOOD, *[SHORT] * 5])
    opened.close()
    file = tmp_path / "labels.csv"
    with file.open("w", encoding="utf-8") as out:
        rows = csv.writer(out)
        rows.writerow(["lever", "segment", "from", "until", "note"])
        rows.writerow(["speculation", "{}", T0.isoformat(), "", "slow drafts"])
        rows.writerow(["speculation", json.dumps({"model": "gone"}), T0.isoformat(), "", ""])
    words = ["policy", "backtest", NAME, "--data", str(tmp_path / "data"), "--labels", str(file)]
    assert main(words) == 0
    out_text = capsys.readouterr().out
    assert "missed: speculation {} 2026-03-04T00:00Z to now slow drafts\n  speculation-net-itl" in out_text
    assert 'not judged: speculation {"model":"gone"} 2026-03-04T00:00Z to now: no stream' in out_text
    assert main([*words, "--format", "json"]) == 0
    assert "short of the limit" in capsys.readouterr().err
