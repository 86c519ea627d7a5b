"""Judgments of one stream in their order in, stretches of blocks of which the same was said out, each with how near it came to acting."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from alerts import wording
from alerts.chain import Policy, Trigger, kind_of
from alerts.conditions import gain_limit, is_gain_above
from alerts.effects import Effect, Effects, effect_name
from alerts.playing import Played
from pipeline.metrics import judged

MOST_STRETCHES = 1_000  # of a stream: beyond it the last one goes on


class Stretch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Blocks in a row of which a stream had the same verdict for the same reason; `until` is the end of the last.

    `reason` is that of the last block, `nearest` what came nearest to a limit in one that was kept, in a sentence: at `nearest_at`, and
    `nearest_short` (a gain as ratio) short of it.
    """

    verdict: str
    reason_code: str
    since: datetime
    until: datetime
    blocks: int
    reason: str
    nearest: str = ""
    nearest_at: datetime | None = None
    nearest_short: float | None = None


class Limit(NamedTuple):
    """A trigger that compares with control: the effect it reads, the gain at which it turns, and on which side."""

    trigger: Trigger
    effect: str
    gain: float
    above: bool


class Nearest(NamedTuple):
    """How near a kept lever came to a limit: by how much the gain is short of it (below 0: past), and in the block that ends at `until`."""

    short: float
    limit: Limit
    effect: Effect
    until: datetime


def limits(policy: Policy) -> tuple[Limit, ...]:
    """The limits of a policy's triggers that compare with control and hold without further conditions."""
    found = []
    for trigger in policy.disable_when:
        metric = judged()[trigger.metric]
        gain = gain_limit(trigger, metric)
        if gain is not None and not trigger.where:
            found.append(Limit(trigger, effect_name(trigger.metric), gain, is_gain_above(trigger, metric)))
    return tuple(found)


class Stretches:
    """Adds up the judgments of one stream."""

    def __init__(self) -> None:
        self._done: list[Stretch] = []
        self._open: Stretch | None = None
        self._nearest: Nearest | None = None

    def add(self, played: Played, known: Sequence[Limit]) -> None:
        """Takes one judgment in."""
        said, until = played.judgment, played.decided_at
        held = self._open
        is_same = held is not None and (held.verdict, held.reason_code) == (said.verdict, said.reason_code)
        if held is not None and (is_same or len(self._done) >= MOST_STRETCHES):
            self._open = msgspec.structs.replace(held, until=until, blocks=held.blocks + 1, reason=said.reason)
        else:
            self._close()
            self._open = Stretch(verdict=said.verdict, reason_code=said.reason_code, since=until, until=until, blocks=1, reason=said.reason)
        if said.verdict == "keep" and played.effects is not None:
            self._approach(played.effects, known, until)

    def told(self) -> tuple[Stretch, ...]:
        """All of them, the last one up to now."""
        return (*self._done, *self._last())

    def _last(self) -> tuple[Stretch, ...]:
        if self._open is None or self._nearest is None:
            return () if self._open is None else (self._open,)
        near = self._nearest
        return (msgspec.structs.replace(self._open, nearest=_sentence(near), nearest_at=near.until, nearest_short=near.short),)

    def _close(self) -> None:
        self._done += self._last()
        self._open, self._nearest = None, None

    def _approach(self, effects: Effects, known: Sequence[Limit], until: datetime) -> None:
        for limit in known:
            effect = effects.get(limit.effect)
            if effect is None or effect.gain is None:
                continue
            short = limit.gain - effect.gain if limit.above else effect.gain - limit.gain
            if self._nearest is None or short < self._nearest.short:
                self._nearest = Nearest(short, limit, effect, until)


def _sentence(nearest: Nearest) -> str:
    """`nearest to harm: net ITL, gain -1.4 %, 0.6 points short of the limit of -2 %`."""
    short, limit, effect, _ = nearest
    named = f"nearest to {kind_of(limit.trigger)}: {wording.label(effect.metric)}, gain {_percent(effect.gain or 0.0)} %"
    bound = f"the limit of {_percent(limit.gain)} %"
    if short > 0:
        return f"{named}, {100 * short:.3g} points short of {bound}"
    known = effect.gain_low is not None and effect.gain_high is not None
    ends = f" ({_percent(effect.gain_low or 0.0)}..{_percent(effect.gain_high or 0.0)} %)" if known else ""
    return f"{named}{ends}, past {bound} by its value and not by what is evident, or not for long enough"


def _percent(share: float) -> str:
    """To a tenth of a point: what is short of a limit is often short by less than one."""
    return f"{round(100 * share, 1):+g}"
