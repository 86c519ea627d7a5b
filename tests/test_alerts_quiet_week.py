"""A week in which no lever does anything, judged by shipped policies block by block: hardly ever is one advised to be switched.

`make calibrate` plays two hundred streams, with other noise too (docs/statistics.md).
"""

from __future__ import annotations

import msgspec
import pytest
from quiet_week import BLOCKS, BLOCKS_A_DAY, LEVERS, Week, blocks, harmed, is_flip, judged, quiet

from alerts import policy
from alerts.chain import Harm, Policy
from alerts.effects import Effect
from alerts.playing import Played
from alerts.streams import Block

PAIRS, SEED = 8, 1
PROMISED_A_DAY = 0.02
"""Flips of a stream whose lever does nothing."""
POLICIES = [one for one in policy.shipped() if one.lever in LEVERS]
LOSS, HARMED_AT = 0.1, 2 * BLOCKS_A_DAY
FOUND_BLOCKS = 72
NO_TIME, NO_GAIN = {"relative_to_control": 1.0}, {"threshold": 0.0}


def hastened(policy: Policy) -> Policy:
    """The policy, which takes any loss in any block for harm."""
    harms = (one for one in policy.disable_when if isinstance(one, Harm) and not one.where)
    triggers = (msgspec.structs.replace(one, for_blocks=1, **(NO_TIME if one.threshold is None else NO_GAIN)) for one in harms)
    return msgspec.structs.replace(policy, disable_when=tuple(triggers))


def unwatched(effect: Effect) -> Effect:
    """The effect as people see it, without evidence, and of a kind that needs none."""
    return effect._replace(basis="switchback", grade="good", evidence_below=None, evidence_above=None, uncalibrated=None)


@pytest.fixture(scope="module")
def week() -> Week:
    return quiet(PAIRS, SEED)


@pytest.fixture(scope="module")
def history(week: Week) -> list[Block]:
    return list(blocks(week))


@pytest.fixture(scope="module")
def said(history: list[Block]) -> list[Played]:
    return list(judged(POLICIES, history))


def test_levers_that_do_nothing_flip_no_more_often_than_promised(said: list[Played]) -> None:
    streams = {one.key for one in said}
    assert len(streams) == PAIRS * len(POLICIES)
    assert sum(map(is_flip, said)) <= PROMISED_A_DAY * BLOCKS / BLOCKS_A_DAY * len(streams)


def test_traffic_that_stops_blocks_too_thin_and_deploys_are_in_the_week_and_flip_nothing(week: Week, said: list[Played]) -> None:
    assert {one.judgment.reason_code for one in said if one.judgment.verdict == "frozen"} == {"stale", "coverage"}
    assert week.is_deployed.any(axis=1).all()
    assert [one for one in said if is_flip(one) and one.judgment.verdict in ("frozen", "insufficient")] == []


def test_the_week_is_judged_nearly_all_of_the_time(said: list[Played]) -> None:
    assert len(said) > 0.9 * PAIRS * len(POLICIES) * BLOCKS
    assert sum(one.judgment.verdict == "keep" for one in said) > 0.85 * len(said)


def test_windows_that_are_looked_at_block_by_block_would_break_the_promise(history: list[Block]) -> None:
    hasty = [hastened(one) for one in POLICIES]
    seen = (block._replace(effects={metric: unwatched(effect) for metric, effect in block.effects.items()}) for block in history)
    assert sum(map(is_flip, judged(hasty, seen))) > 3 * PROMISED_A_DAY * BLOCKS / BLOCKS_A_DAY * PAIRS * len(POLICIES)


def test_each_lever_that_begins_to_lose_in_such_a_week_is_found() -> None:
    week = harmed(quiet(PAIRS, SEED, blocks=HARMED_AT + FOUND_BLOCKS), LOSS, HARMED_AT)
    said = list(judged(POLICIES, blocks(week)))
    assert {one.key for one in said if is_flip(one)} == {one.key for one in said}
