"""A scenario in, which flips its file calls for out, and which of those that were made it does not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from demo_truths import changed_hour

from demo.scenarios.layout import Scenario, Truth

Flip = Mapping[str, Any]
"""A row of `demo_judged.judged`."""


class Stated(NamedTuple):
    """Advice that a truth calls for, in hours of the scenario: `action` for its segments after `since` and at `until` at the latest."""

    lever: str
    segment: Mapping[str, str]
    action: str
    since: float
    until: float

    def is_met_by(self, flip: Flip) -> bool:
        """Whether a flip gives this advice in time."""
        is_of = flip["lever"] == self.lever and self.segment.items() <= json.loads(flip["segment"]).items()
        is_it = flip["state_after"] == "off_recommended" and flip["action"] == self.action
        return bool(is_of and is_it and self.since < flip["hour"] <= self.until)


def stated(scenario: Scenario) -> list[Stated]:
    """What is to be advised; nothing where every lever pays. What is said of a batch size is said of the segment that has it."""
    return [_stated(scenario, truth) for truth in scenario.truth if truth.action != "keep"]


def unmet(scenario: Scenario, flips: Iterable[Flip]) -> list[Stated]:
    """What was to be advised, and was not, or too late."""
    made = list(flips)
    return [one for one in stated(scenario) if not any(one.is_met_by(flip) for flip in made)]


def uncalled(scenario: Scenario, flips: Iterable[Flip]) -> list[Flip]:
    """The flips that no truth calls for. What was advised may be taken back once all that changed is as it was."""
    ended, called = ended_hour(scenario), stated(scenario)
    advised: set[tuple[str, str]] = set()
    found = []
    for flip in flips:
        stream = flip["policy"], flip["segment"]
        if stream in advised and flip["state_after"] == "on" and ended is not None and flip["hour"] > ended:
            advised.remove(stream)
        elif stream not in advised and any(one.is_met_by(flip) for one in called):
            advised.add(stream)
        else:
            found.append(flip)
    return found


def ended_hour(scenario: Scenario) -> float | None:
    """From when on every knob is where it was before anything changed; None where some stays turned."""
    turned: dict[tuple[str, str], float] = {}
    for change in scenario.changes:
        knob = change.knob, change.of
        turned[knob] = turned.get(knob, 1.0) * change.factor
    if not turned or any(abs(factor - 1.0) > 1e-9 for factor in turned.values()):
        return None
    return max(change.from_hour for change in scenario.changes)


def _stated(scenario: Scenario, truth: Truth) -> Stated:
    segment = {key: value for key, value in truth.segment.items() if key != "batch_bucket"}
    since = truth.from_hour if truth.from_hour is not None else changed_hour(scenario) or 0.0
    return Stated(truth.lever, segment, truth.action, since, (truth.from_hour or 0.0) + (truth.within_hours or 0.0))
