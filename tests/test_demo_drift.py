"""Drift takes from the drafts behind the first one: of a step's chances, and of what a pool's requests say was accepted."""

from __future__ import annotations

import msgspec
import pytest

from demo import scenarios
from demo.fleet import Fleet
from demo.records import Request
from demo.replicas import drafting
from demo.replicas.serving import Speculation
from demo.scenarios.layout import Change

BEGAN_NS = 1_764_000_000 * 10**9
QUARTER_NS = 900 * 10**9


def held(changes: tuple[Change, ...]) -> list[float]:
    """The share of a pool's steps in which at least 1, 2, ... drafts hold."""
    scenario = msgspec.structs.replace(scenarios.load("drafts-drift"), changes=changes)
    events = Fleet(scenario, BEGAN_NS, 3).until(BEGAN_NS + QUARTER_NS)
    drafted = [event for event in events if isinstance(event, Request) and event.verify_steps and event.at.model == "chat-70b"]
    steps = sum(request.verify_steps or 0 for request in drafted)
    return [sum(counts) / steps for counts in zip(*(request.accepted_by_position or () for request in drafted), strict=True)]


def test_each_later_position_loses_as_much_again() -> None:
    speculation = Speculation(draft_tokens=4, acceptance=(0.8,))
    assert drafting.survival(speculation, 0.0, 1.0, 0.5).tolist() == pytest.approx([0.8, 0.8 * 0.4, 0.8 * 0.4 * 0.2, 0.8 * 0.4 * 0.2 * 0.1])


def test_a_pool_whose_topics_drift_still_has_its_first_drafts_accepted() -> None:
    before, after = held(()), held((Change(knob="later_acceptance", of="chat", from_hour=0, factor=0.5),))
    assert before[:3] == pytest.approx([0.8, 0.64, 0.512], abs=0.02)
    assert after[:3] == pytest.approx([0.8, 0.32, 0.064], abs=0.02)
