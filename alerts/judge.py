"""Judging, pure: a policy, one segment's effects at a block's end and the stream's standing in, a judgment out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from alerts import soundness, wording
from alerts.chain import Policy
from alerts.effects import Effects
from alerts.judge_off import judge_off, judge_recommended
from alerts.judge_on import judge_on
from alerts.judge_trial import judge_trial
from alerts.levers import State
from alerts.standing import NOTHING_SEEN, Judgment, Seen, Standing, after
from alerts.view import View, look

__all__ = ["Judgment", "Standing", "after", "judge", "stale"]

_IN: Mapping[State, Callable[[View, Standing, datetime], Judgment]] = {
    "on": judge_on,
    "off_recommended": judge_recommended,
    "off": judge_off,
    "probation": judge_trial,
}


def judge(policy: Policy, effects: Effects, before: Standing, decided_at: datetime, seen: Seen = NOTHING_SEEN) -> Judgment:
    """The verdict at a block's end. Missing, thin or broken data never passes and never changes the state."""
    broken = soundness.unsound(effects)
    if broken is not None:
        return soundness.frozen(before, broken)
    return _IN[before.state](look(policy, effects, before, seen), before, decided_at)


def stale(before: Standing, last_block: datetime, watermark: datetime) -> Judgment:
    """The verdict on a stream whose traffic stopped while others went on: frozen, in the state it had."""
    age = int((watermark - last_block).total_seconds() // 60)
    reason = f"no block since {wording.utc(last_block)}, {age} min behind the newest data{wording.unconfirmed(before)}"
    return Judgment("frozen", "hold", "stale", reason, before.state, before.state_since, 0)
