"""A week in which no lever does anything, judged by shipped policies block by block: hardly ever is one advised to be switched."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import msgspec
import pytest
from evidence_days import BEGAN, BLOCK
from quiet_week import BLOCKS, LEVERS, Week, blocks, harmed, quiet

from alerts import policy
from alerts.chain import Policy
from alerts.playing import Play, Played
from alerts.streams import Block

PAIRS, SEED = 8, 1
DAYS = 7
PROMISED_A_DAY = 0.02
"""Flips per stream where no lever does anything."""
POLICIES = [one for one in policy.shipped() if one.lever in LEVERS]


def played(policies: list[Policy], history: Iterable[Block]) -> list[Played]:
    """All that is said of these blocks, in order."""
    play = Play(policies)
    ends = groupby(history, key=lambda block: block.until)
    return [said for until, together in ends for said in play.at(until, play.dues(together))]


def flips(said: list[Played]) -> list[Played]:
    """Where a stream's state changed."""
    return [one for one in said if one.judgment.state != one.before.state]


@pytest.fixture(scope="module")
def week() -> Week:
    return quiet(PAIRS, SEED)


@pytest.fixture(scope="module")
def said(week: Week) -> list[Played]:
    return played(POLICIES, blocks(week))


def test_flips_of_levers_that_do_nothing_are_no_more_than_promised(said: list[Played]) -> None:
    streams = {one.key for one in said}
    assert len(streams) == PAIRS * len(POLICIES)
    assert len(flips(said)) <= PROMISED_A_DAY * DAYS * len(streams)


def test_traffic_that_stops_thin_data_and_deploys_are_in_the_week_and_flip_nothing(week: Week, said: list[Played]) -> None:
    frozen = {one.judgment.reason_code for one in said if one.judgment.verdict == "frozen"}
    assert frozen == {"stale", "coverage"}
    assert week.is_deployed.any()
    assert [one for one in flips(said) if one.judgment.verdict in ("frozen", "insufficient")] == []


def test_a_week_is_judged_nearly_all_of_the_time(said: list[Played]) -> None:
    assert len(said) > 0.9 * PAIRS * len(POLICIES) * BLOCKS
    assert sum(one.judgment.verdict == "keep" for one in said) > 0.85 * len(said)
