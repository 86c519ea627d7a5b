"""Judging, pure: a policy, one segment's effects at a block's end and the stream's standing in, a judgment out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from alerts import wording
from alerts.chain import Condition, Policy, PremiseLost, Trigger, code_of
from alerts.conditions import SUSPICIOUS, explain, holds, is_back, past, shortfall
from alerts.effects import Effect, Effects, effect_name
from alerts.levers import Action, State, Verdict
from alerts.permissions import FIXED_CONTROL, SAMPLE_RATIO

_RECOMMENDED_OFF: tuple[State, ...] = ("off_recommended", "off")
_FREEZING = ("coverage", SUSPICIOUS, SAMPLE_RATIO)


class Standing(NamedTuple):
    """Where a stream stood before this block. `cause` is the reason code that turned it off, where it is off."""

    state: State
    state_since: datetime
    streak: int = 0
    reason_code: str = ""
    cause: str = ""


class Judgment(NamedTuple):
    """What one block's end says. The state changed where `state` differs from the standing's."""

    verdict: Verdict
    action: Action
    reason_code: str
    reason: str
    state: State
    state_since: datetime
    streak: int


class _View(NamedTuple):
    """The block as the policy sees it: its effects, the triggers that may disable, and what the benefit lacks."""

    policy: Policy
    effects: Effects
    benefit: Effect | None
    disabling: tuple[Trigger, ...]
    lacks: tuple[Verdict, str, str] | None

    def text(self, condition: Condition) -> str:
        return explain(self.policy, condition, self.effects)


def judge(policy: Policy, effects: Effects, before: Standing, decided_at: datetime) -> Judgment:
    """The verdict at a block's end. Missing or thin data never passes and never changes the state."""
    view = _look(policy, effects)
    if before.state in _RECOMMENDED_OFF:
        return _judge_off(view, before, decided_at)
    return _judge_on(view, before, decided_at)


def stale(before: Standing, last_block: datetime, watermark: datetime) -> Judgment:
    """The verdict on a stream whose traffic stopped while others went on: frozen, in the state it had."""
    age = int((watermark - last_block).total_seconds() // 60)
    reason = f"no block since {wording.utc(last_block)}, {age} minutes behind the newest data"
    return Judgment("frozen", "hold", "stale", reason, before.state, before.state_since, 0)


def _look(policy: Policy, effects: Effects) -> _View:
    benefit = effects.get(effect_name(policy.expected_benefit.metric))
    premise_may = benefit is not None and not benefit.controlled and benefit.says != "pays"
    candidates = (trigger for trigger in policy.disable_when if premise_may or not isinstance(trigger, PremiseLost))
    disabling = tuple(trigger for trigger in candidates if holds(policy, trigger, effects))
    return _View(policy, effects, benefit, disabling, _lacks(policy, benefit, effects))


def _lacks(policy: Policy, benefit: Effect | None, effects: Effects) -> tuple[Verdict, str, str] | None:
    """What keeps the benefit from being judged, as verdict, reason code and sentence."""
    name = effect_name(policy.expected_benefit.metric)
    if benefit is None:
        return "insufficient", "no_effect", f"{wording.label(name)} was not measured in this block"
    if not benefit.controlled:
        suspicious = _suspicious_premise(policy, effects)
        if suspicious is not None:
            return "frozen", SUSPICIOUS, suspicious
        if benefit.says is None:
            return "insufficient", "no_control", f"{wording.not_compared(benefit)}: harm was not measured"
    short = shortfall(policy, benefit, compared=True)
    if short is not None:
        return "frozen" if short[0] in _FREEZING else "insufficient", *short
    if benefit.gain_low is None or benefit.gain_high is None:
        return "insufficient", "no_interval", wording.no_interval(benefit)
    return None


def _suspicious_premise(policy: Policy, effects: Effects) -> str | None:
    """Where there is no control, what is wrong with the input of a premise that would decide."""
    for trigger in policy.disable_when:
        effect = effects.get(effect_name(trigger.metric)) if isinstance(trigger, PremiseLost) else None
        short = shortfall(policy, effect, compared=False) if effect is not None else None
        if short is not None and short[0] == SUSPICIOUS:
            return short[1]
    return None


def _judge_on(view: _View, before: Standing, decided_at: datetime) -> Judgment:
    lead = _lead(view, before)
    if lead is None:
        return _undisturbed(view, before)
    code = code_of(view.policy, lead)
    streak = before.streak + 1 if before.reason_code == f"{code}_pending" else 1
    if streak >= lead.for_blocks:
        return Judgment("disable", "disable", code, _disabling_reason(view, lead), "off_recommended", decided_at, 0)
    verdict: Verdict = view.lacks[0] if view.lacks else "keep"
    reason = f"{_disabling_reason(view, lead)}; seen in {streak} of the {lead.for_blocks} blocks it takes"
    return Judgment(verdict, "hold" if view.lacks else "keep", f"{code}_pending", reason, before.state, before.state_since, streak)


def _lead(view: _View, before: Standing) -> Trigger | None:
    """The trigger whose blocks are counted: one that was being counted goes on, else the first of the policy that holds."""
    for trigger in view.disabling:
        if before.reason_code == f"{code_of(view.policy, trigger)}_pending":
            return trigger
    return view.disabling[0] if view.disabling else None


def _undisturbed(view: _View, before: Standing) -> Judgment:
    """No trigger may disable: keep, or what keeps it from being told."""
    if view.lacks is not None or view.benefit is None:
        verdict, code, text = view.lacks or ("insufficient", "no_effect", "")
        notes = [view.text(trigger) for trigger in _premises(view)] if code in ("no_control", FIXED_CONTROL) else []
        return Judgment(verdict, "hold", code, "; ".join([text, *notes]), before.state, before.state_since, 0)
    pays = past(view.benefit.gain_low, True, view.benefit.beyond(view.policy.expected_benefit.minimum_gain, above=True))
    reason = "; ".join([wording.compared(view.benefit), *_lost(view), *_unread(view), "quality not measured"])
    return Judgment("keep", "keep", "pays" if pays else "no_harm", reason, before.state, before.state_since, 0)


def _judge_off(view: _View, before: Standing, decided_at: datetime) -> Judgment:
    if view.disabling:
        lead = view.disabling[0]
        code, reason = code_of(view.policy, lead), _disabling_reason(view, lead)
        return Judgment("disable", "disable", code, reason, before.state, before.state_since, 0)
    good, text = _recovery(view, before)
    if good is None:
        verdict, code, text = view.lacks or ("insufficient", "no_recovery_reading", text)
        return Judgment(verdict, "hold", code, text, before.state, before.state_since, 0)
    if not good:
        reason = f"{text}; not yet past the threshold for turning on again"
        return Judgment("disable", "disable", "hysteresis", reason, before.state, before.state_since, 0)
    return _recovering(view.policy, text, before, decided_at)


def _recovering(policy: Policy, text: str, before: Standing, decided_at: datetime) -> Judgment:
    streak = before.streak + 1 if before.reason_code == "recovering" else 1
    needed = policy.re_enable_when.for_blocks
    rested = decided_at - before.state_since >= timedelta(seconds=policy.dwell_s)
    if streak >= needed and rested:
        return Judgment("keep", "keep", "recovered", f"{text}; good for {wording.blocks(streak)}", "on", decided_at, 0)
    dwell = "" if rested else f", and it stays off for {policy.dwell_s / 60:.0f} minutes at least"
    reason = f"{text}; good for {wording.blocks(streak)} of {needed}{dwell}"
    return Judgment("disable", "disable", "recovering", reason, before.state, before.state_since, streak)


def _recovery(view: _View, before: Standing) -> tuple[bool | None, str]:
    """Whether the lever is good again, and the numbers. Off by a premise and still without control, that premise tells."""
    back = view.policy.re_enable_when
    good = holds(view.policy, back, view.effects)
    if good is not None or view.benefit is None or view.benefit.controlled:
        return good, view.text(back)
    for trigger in _premises(view):
        if code_of(view.policy, trigger) == before.cause and trigger.re_enable_at is not None:
            told = holds(view.policy, trigger, view.effects) is not None
            text = f"{view.text(trigger)}, {trigger.re_enable_at:g} to turn on again; basis premise"
            return is_back(trigger, trigger.re_enable_at, view.effects) if told else None, text
    return None, view.text(back)


def _disabling_reason(view: _View, lead: Trigger) -> str:
    """The lead's numbers first; for a premise, that harm was not measured; then what else speaks."""
    if isinstance(lead, PremiseLost):
        others = [view.text(trigger) for trigger in view.disabling if trigger is not lead]
        return "; ".join([f"premise lost: {view.text(lead)}", *others, "basis premise: harm was not measured, no control traffic"])
    first = view.text(lead)
    benefit = "" if view.lacks or view.benefit is None else wording.compared(view.benefit)
    said = [first, *([] if first.startswith(benefit) else [benefit]), *_lost(view)]
    return "; ".join(dict.fromkeys(said))


def _premises(view: _View) -> list[PremiseLost]:
    return [trigger for trigger in view.policy.disable_when if isinstance(trigger, PremiseLost)]


def _lost(view: _View) -> list[str]:
    """Premises that are lost: where a control decides they stand in the reason and do no more."""
    return [f"premise lost: {view.text(trigger)}" for trigger in _premises(view) if holds(view.policy, trigger, view.effects)]


def _unread(view: _View) -> list[str]:
    """Guards that disable on their own but could not be read: a keep does not pass over them in silence."""
    guards = (trigger for trigger in view.policy.disable_when if not isinstance(trigger, PremiseLost))
    return [view.text(trigger) for trigger in guards if holds(view.policy, trigger, view.effects) is None]
