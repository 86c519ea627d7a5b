"""One recommendation at a time where levers interact: a block's judgments and the recommendations that stand in, who waits for whom out.

Levers interact where a policy of one revalidates the other, or goes before it: both change the same budget, and what each of them did could
not be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from alerts import wording
from alerts.chain import Policy, Quality, Trigger, code_of
from alerts.effects import Effects, effect_name
from alerts.standing import Judgment, Standing
from alerts.traffic import Traffic
from alerts.view import WAITS

Interacting = Mapping[str, frozenset[str]]
MOST_NAMED = 3


class Open(NamedTuple):
    """A recommendation that stands: whose, of which traffic, since when, and what it advises."""

    policy: Policy
    segment: str
    since: datetime
    advised: str
    gain: float | None = None
    wanting: Wanting | None = None


class Wanting(NamedTuple):
    """A judgment that recommends something now, where the stream stood, and the effects it was made of."""

    policy: Policy
    segment: str
    before: Standing
    judgment: Judgment
    effects: Effects

    @property
    def trigger(self) -> Trigger | None:
        """The trigger that fired; None where a lever may come back."""
        return next((one for one in self.policy.disable_when if code_of(self.policy, one) == self.judgment.reason_code), None)

    @property
    def gain(self) -> float | None:
        """The gain of the effect that it is made of, as a ratio: the lower, the more is lost."""
        effect = self.effects.get(effect_name(self.trigger.metric)) if self.trigger else None
        return effect.gain if effect else None


def wants(before: Standing, judgment: Judgment) -> bool:
    """Whether a judgment recommends what people were not told before: to change something, or to switch a lever on again."""
    if judgment.state == before.state:
        return judgment.is_raised and before.untold_since is not None
    return judgment.state == "off_recommended" or (judgment.state == "probation" and judgment.action == "enable")


def is_open(standing: Standing, policy: Policy, until: datetime) -> bool:
    """Whether a stream's recommendation holds others back: it stands, people are told of it, and it has not expired."""
    if standing.state != "off_recommended" or policy.shadow or standing.untold_since is not None:
        return False
    return until - standing.state_since < timedelta(seconds=policy.expires_after_s)


def interacting(policies: Iterable[Policy]) -> Interacting:
    """The levers that each lever interacts with."""
    met: dict[str, set[str]] = {}
    for policy in policies:
        for other in {*policy.revalidates, *policy.goes_before} - {policy.lever}:
            met.setdefault(policy.lever, set()).add(other)
            met.setdefault(other, set()).add(policy.lever)
    return {lever: frozenset(others) for lever, others in met.items()}


def one_at_a_time(wanting: Sequence[Wanting], standing: Iterable[Open], interacts: Interacting) -> list[tuple[Wanting, Judgment]]:
    """Each judgment as it may be made: itself, or `conflicted` where one of an interacting lever on the same traffic goes first.

    Quality waits for nobody: answers that are worse are worse, whatever else is to be changed on that traffic.
    """
    opened, said = traffic_of(standing), []
    for one in _in_order(wanting):
        others = opened.of(sorted(interacts.get(one.policy.lever, ())), one.segment)
        others.sort(key=lambda each: (each.since, each.policy.lever, each.policy.name, each.segment))
        if others and not isinstance(one.trigger, Quality):
            said.append((one, _waiting(one, others[0])))
            continue
        said.append((one, _beside(one, others) if others else one.judgment))
        if not one.policy.shadow:
            told = Open(one.policy, one.segment, one.judgment.state_since, one.judgment.action, one.gain, one)
            opened.add(one.policy.lever, one.segment, told)
    return said


def traffic_of(standing: Iterable[Open]) -> Traffic[Open]:
    """Recommendations, to be found by traffic."""
    opened: Traffic[Open] = Traffic()
    for one in standing:
        opened.add(one.policy.lever, one.segment, one)
    return opened


def _in_order(wanting: Sequence[Wanting]) -> list[Wanting]:
    """Quality first, what is to be taken back before what may come back, then the larger loss; before each what goes before it."""
    traffic: Traffic[Wanting] = Traffic()
    for one in wanting:
        if not one.policy.shadow:
            traffic.add(one.policy.lever, one.segment, one)
    earlier: dict[str, set[str]] = {}
    for one in wanting:
        for lever in one.policy.goes_before:
            earlier.setdefault(lever, set()).add(one.policy.lever)
    done: dict[tuple[str, str], Wanting] = {}
    for one in sorted(wanting, key=_rank):
        _take(one, traffic, earlier, done, ())
    return list(done.values())


def _take(
    one: Wanting, traffic: Traffic[Wanting], earlier: Mapping[str, set[str]], done: dict[tuple[str, str], Wanting], through: tuple[str, ...]
) -> None:
    """Puts a judgment behind those on its traffic that go before it; levers that go before each other in a circle are left as they came."""
    lever = one.policy.lever
    if (one.policy.name, one.segment) in done:
        return
    for other in traffic.of(sorted(earlier.get(lever, set()) - {lever, *through}), one.segment):
        if lever in other.policy.goes_before and _class(other) <= _class(one):
            _take(other, traffic, earlier, done, (*through, lever))
    done.setdefault((one.policy.name, one.segment), one)


def _class(one: Wanting) -> tuple[bool, bool]:
    return not isinstance(one.trigger, Quality), one.judgment.action == "enable"


def _rank(one: Wanting) -> tuple[tuple[bool, bool], float, str, str, str]:
    return _class(one), 0.0 if one.gain is None else one.gain, one.policy.lever, one.policy.name, one.segment


def _beside(one: Wanting, others: Sequence[Open]) -> Judgment:
    """A judgment that does not wait, and says what else is recommended on its traffic."""
    known = [f"{other.policy.lever} ({other.advised}) since {wording.utc(other.since)} on {other.segment}" for other in others[:MOST_NAMED]]
    more = [f"{len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else []
    reason = f"{one.judgment.reason}; quality waits for nobody; recommended on this traffic too: {', '.join([*known, *more])}"
    return one.judgment._replace(reason=reason)


def _waiting(one: Wanting, first: Open) -> Judgment:
    before, judgment = one.before, one.judgment
    reason = f"{judgment.reason}; waits for {first.policy.lever} ({first.advised}) on {first.segment}: {_why(one, first)}"
    code, streak = judgment.reason_code + WAITS, before.streak + 1
    return Judgment("conflicted", "hold", code, reason, before.state, before.state_since, streak, judgment.counts)


def _why(one: Wanting, first: Open) -> str:
    """Why the other goes first: it stood before, or what put it before this one."""
    beside = first.wanting
    if beside is None:
        return f"recommended since {wording.utc(first.since)}, and levers that interact are changed one at a time"
    if isinstance(beside.trigger, Quality) and not isinstance(one.trigger, Quality):
        return "quality goes first"
    if one.judgment.action == "enable" != beside.judgment.action:
        return "what is to be taken back goes first"
    if one.policy.lever in first.policy.goes_before:
        return f"{first.policy.lever} goes before {one.policy.lever}"
    if first.gain is None:
        return "levers that interact are changed one at a time, by name where no loss was measured"
    mine = "none was measured here" if one.gain is None else f"here {wording.percent(one.gain)} %"
    return f"its loss is the larger, gain {wording.percent(first.gain)} %, {mine}"
