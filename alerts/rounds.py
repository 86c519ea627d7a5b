"""One block's end in: every stream that has a block there, with its standing and effects; what is said of each, one at a time, out."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from alerts import shadow, soundness, turns
from alerts.chain import Policy
from alerts.effects import Effects
from alerts.judge import judge
from alerts.standing import NOTHING_SEEN, Judgment, Seen, Standing, after
from alerts.turns import Interacting, Open, Wanting

Widening = Callable[[str, Sequence[str], datetime], Mapping[str, str]]
"""A lever, some of its segments and a block's end in; of those that may get more traffic, why, in a sentence."""
WIDENED = "widen"
_NONE: Mapping[int, Judgment] = MappingProxyType({})


class Due(NamedTuple):
    """A stream with a block to be judged."""

    policy: Policy
    segment: str
    before: Standing
    effects: Effects
    seen: Seen = NOTHING_SEEN


def judged(
    due: Sequence[Due],
    standing: Iterable[Open],
    interacts: Interacting,
    until: datetime,
    *,
    quick: Mapping[int, Judgment] = _NONE,
    widening: Widening | None = None,
) -> list[Judgment]:
    """What is said of each stream at a block's end, in their order; of what levers that interact want, one thing at a time.

    `standing` are the recommendations of before; those of streams that are due now count as they are after it. `quick` holds what
    is said of some of them, by number, where that is known already.
    """
    said = [quick.get(number) or _judged(one, until) for number, one in enumerate(due)]
    opened = _opened(due, said, standing, until)
    wanting = {number: one for number, one in enumerate(due) if turns.wants(one.before, said[number])}
    if wanting:
        asked = [Wanting(one.policy, one.segment, one.before, said[number], one.effects) for number, one in wanting.items()]
        places = {(one.policy.name, one.segment): number for number, one in wanting.items()}
        for one, judgment in turns.one_at_a_time(asked, opened, interacts):
            said[places[one.policy.name, one.segment]] = judgment
    return _widened(due, said, opened, interacts, until, widening) if widening else said


def _judged(one: Due, until: datetime) -> Judgment:
    """What is said of one stream by itself; it is frozen where its numbers cannot be reckoned with, so that the others are judged."""
    try:
        said = judge(one.policy, one.effects, one.before, until, one.seen)
    except (ArithmeticError, ValueError) as error:
        return soundness.frozen(one.before, f"its numbers cannot be reckoned with: {type(error).__name__}: {error}")
    return shadow.left(one.policy, one.before, said, until)


def hour_of(lever: str, segment: str) -> int:
    """The hour of the day in which more traffic may be advised for a lever's segment: once a cycle, and not for all at once."""
    return zlib.crc32(f"{lever} {segment}".encode()) % 24


def _opened(due: Sequence[Due], said: Sequence[Judgment], standing: Iterable[Open], until: datetime) -> list[Open]:
    """The recommendations that stand once this block is judged, but for those that it makes."""
    now = {(one.policy.name, one.segment) for one in due}
    kept = [one for one in standing if (one.policy.name, one.segment) not in now]
    for one, judgment in zip(due, said, strict=True):
        if one.before.state == judgment.state == "off_recommended" and one.before.untold_since is None:
            there = after(one.before, judgment, until)
            if turns.is_open(there, one.policy, until):
                kept.append(Open(one.policy, one.segment, there.state_since, there.advised or "disable"))
    return kept


def _widened(
    due: Sequence[Due], said: list[Judgment], opened: Iterable[Open], interacts: Interacting, until: datetime, widening: Widening
) -> list[Judgment]:
    """More traffic advised where a lever pays, all its policies keep it, no gate is broken and nothing that interacts is under way."""
    if until.minute or until.second:
        return said
    asked: dict[str, dict[str, list[int]]] = {}
    for number, one in enumerate(due):
        if hour_of(one.policy.lever, one.segment) == until.hour:
            asked.setdefault(one.policy.lever, {}).setdefault(one.segment, []).append(number)
    busy = turns.traffic_of([*opened, *_made(due, said)])
    for lever, segments in asked.items():
        others = sorted({lever, *interacts.get(lever, ())})
        ready = {
            segment: numbers
            for segment, numbers in segments.items()
            if all(_is_calm(due[number], said[number]) for number in numbers) and not busy.of(others, segment)
        }
        paying = {segment: number for segment, numbers in ready.items() for number in numbers if said[number].reason_code == "pays"}
        for segment, why in widening(lever, sorted(paying), until).items() if paying else ():
            number = paying[segment]
            reason = f"{why}; {said[number].reason}"
            said[number] = said[number]._replace(action="widen", reason_code=WIDENED, reason=reason, is_widened=True)
    return said


def _made(due: Sequence[Due], said: Sequence[Judgment]) -> list[Open]:
    """What was recommended in this block itself."""
    return [
        Open(one.policy, one.segment, judgment.state_since, judgment.action)
        for one, judgment in zip(due, said, strict=True)
        if turns.wants(one.before, judgment) and not one.policy.shadow
    ]


def _is_calm(one: Due, judgment: Judgment) -> bool:
    """Whether a stream is kept without anything that speaks against more of it: no gate, no count, no doubt."""
    if judgment.verdict != "keep" or judgment.state != "on" or one.before.state != "on" or judgment.streak:
        return False
    is_gated = any(key.startswith("gate.") for key in judgment.counts)
    return judgment.action == "keep" and not is_gated and not one.seen.quality_doubt and one.seen.again is None
