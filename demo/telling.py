"""A scenario in words: what is played, what is true of it, where to look and what to ask."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from demo import questions
from demo.play import HOUR_NS, Plan, Played, unix_ns
from demo.scenarios.layout import Scenario, Truth


def listed(scenario: Scenario) -> Iterator[str]:
    """The scenario as a list names it."""
    yield f"{scenario.name}"
    yield f"    {scenario.what}"
    yield from (f"      {line}" for truth in scenario.truth for line in _said(truth, None))


def where_to_look(scenario: Scenario, url: str, began: datetime) -> Iterator[str]:
    """What a person at a terminal is told when the scenario begins, whose hour 0 is at `began`."""
    yield f"\n  the page is at  {url}/\n"
    yield f"{scenario.name}: {scenario.what}"
    yield from _truths(scenario, began, f"--url {url}")
    yield f"Verdicts are at {url}/api/verdicts; webhooks are printed here as they come. Ctrl-C ends it.\n"


def recorded(scenario: Scenario, folder: Path, began: datetime) -> Iterator[str]:
    """What to do with a scenario that was written to files, and what is true of it."""
    yield f"Load it with `leverwatch load {folder} --data ./recorded`; hour 0 of {scenario.name} is {began:%Y-%m-%d %H:%M} UTC."
    yield from _truths(scenario, began, "--data ./recorded")


def cut_short(plan: Plan, played: Played, for_s: float | None) -> str | None:
    """What is said of a demo that ended, after `for_s` where it was to, while its history was being played; None where that was whole."""
    left = (unix_ns(plan.now) - played.until_ns) / HOUR_NS
    if left <= 0:
        return None
    turns = [truth.from_hour for truth in plan.scenario.truth if truth.after is not None and truth.from_hour is not None]
    before_h = plan.hours - plan.scenario.hours
    of = f"the scenario's change at hour {before_h + min(turns):g}" if turns else "the scenario"
    is_early = not turns or plan.hours - left <= before_h + min(turns)
    longer = f"; give a longer --for than {for_s:g}" if for_s else ""
    ended = f"Ended at hour {plan.hours - left:.1f} of the history's {plan.hours:g}"
    return f"{ended}: no verdict of {of} {'can' if is_early else 'need'} be there yet{longer}."


def _truths(scenario: Scenario, began: datetime, store: str) -> Iterator[str]:
    """What is true, and the SQL that finds it: of what changes, else of the first."""
    if not scenario.truth:
        return
    yield "What is true of it, and what should be advised:"
    yield from (f"  {line}" for truth in scenario.truth for line in _said(truth, began))
    asked = next((truth for truth in scenario.truth if truth.after is not None), scenario.truth[0])
    since, until = list(questions.periods(scenario, asked, began.replace(second=0, microsecond=0)).values())[-1]
    yield f'Ask it yourself, once the history is there, with `leverwatch sql {store} "..."`:'
    yield from (f"    {line}" for line in questions.filled(asked, since, until).splitlines())


def _said(truth: Truth, began: datetime | None) -> Iterator[str]:
    where = " ".join(f"{key}={value}" for key, value in truth.segment.items()) or "all traffic"
    yield f"{truth.lever}, {where}"
    if truth.from_hour is None or truth.after is None:
        yield f"    {truth.question} {truth.before:+.2f} ± {truth.tolerance:g} all the time -> {truth.action}: {truth.why}"
        return
    since = (
        f"hour {truth.from_hour:g}" if began is None else f"{began + timedelta(hours=truth.from_hour):%H:%M} UTC (hour {truth.from_hour:g})"
    )
    within = f" within {truth.within_hours:g} h" if truth.within_hours else ""
    turns = f"{truth.before:+.2f}, from {since} on {truth.after:+.2f} ± {truth.tolerance:g}"
    yield f"    {truth.question} {turns} -> {truth.action}{within}: {truth.why}"
