"""Judging a lever that is not to be used: the view of a block and the standing in; what stays, or that it is or may come back, out."""

from __future__ import annotations

from datetime import datetime, timedelta

from alerts import wording
from alerts.chain import Quality, Trigger, code_of
from alerts.conditions import holds
from alerts.judge_on import accusing
from alerts.levers import Action, Verdict
from alerts.standing import Judgment, Standing
from alerts.view import PENDING, WAITS, View, cause_of, counted, recovery

RECOVERING, MAY_RETURN = "recovering", "may_return"


def judge_recommended(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """What a block says of a recommendation that stands: that it was followed, that it still holds, asks for more, or is over."""
    followed = _followed(view, before, decided_at)
    if followed is not None:
        return followed
    if view.disabling:
        return _standing(view, before, decided_at)
    good, text = recovery(view, before)
    if good is None:
        return _unreadable(view, before, text)
    if not good:
        reason = f"{text}; not yet past the threshold for switching on again"
        return _recommended(view, before, "hysteresis", reason, 0)
    streak, missing = recovered(view, before, decided_at, "stays off")
    if missing:
        return _recommended(view, before, RECOVERING, f"{text}; {missing}", streak)
    reason = f"{text}; good for {wording.blocks(streak)}"
    return Judgment("keep", "keep", "recovered", reason, "on", decided_at, 0, view.counts)


def judge_off(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """What a block says of a lever that was switched off: that it is back, that it may come back, or what speaks against that."""
    if view.seen.in_use:
        reason = f"treated traffic is back: {view.seen.used}"
        return Judgment("insufficient", "hold", "back_in_use", reason, "probation", decided_at, 0, view.counts)
    off = f"switched off: {view.seen.used}" if view.seen.used else "switched off"
    if view.disabling:
        lead = view.disabling[0]
        return view.stays(before, "disable", code_of(view.policy, lead), f"{off}; {accusing(view, lead)}")
    good, text = recovery(view, before)
    if good is None:
        return view.stays(before, "insufficient", "off_unseen", f"{off}; its return cannot be seen: {text}")
    against = _against(view) if good else f"{text}; not yet past the threshold for switching on again"
    if against is not None:
        return view.stays(before, "disable", "hysteresis", f"{off}; {against}")
    streak, missing = recovered(view, before, decided_at, "stays off")
    if missing:
        return view.stays(before, "disable", RECOVERING, f"{off}; {text}; {missing}", streak)
    reason = f"{text}; good for {wording.blocks(streak)}; {view.text(view.policy.enabling_condition)}; {view.seen.quality}"
    return Judgment("keep", "enable", MAY_RETURN, reason, "probation", decided_at, 0, view.counts)


def recovered(view: View, before: Standing, decided_at: datetime, stays: str) -> tuple[int, str]:
    """(the good blocks in a row with this one, what is still missing of blocks and of the dwell)."""
    streak = before.streak + 1 if before.reason_code in (RECOVERING, MAY_RETURN + WAITS) else 1
    needed, dwell_s = view.policy.re_enable_when.for_blocks, view.policy.dwell_s
    rested = decided_at - before.state_since >= timedelta(seconds=dwell_s)
    if streak >= needed and rested:
        return streak, ""
    dwell = "" if rested else f", and it {stays} for {dwell_s / 60:.0f} min at least"
    return streak, f"good for {wording.blocks(streak)} of {needed}{dwell}"


def _followed(view: View, before: Standing, decided_at: datetime) -> Judgment | None:
    """That the operator did something: switched the lever off, or set it otherwise where that was advised; None where neither was seen."""
    if view.seen.in_use is False:
        reason = f"switched off: {view.seen.used}"
        return Judgment("disable", "hold", "switched_off", reason, "off", decided_at, 0, view.counts)
    if view.seen.setting is not None and before.advised not in (None, "disable"):
        reason = f"the setting was changed to {view.seen.setting!r}: {view.seen.used}"
        return Judgment("insufficient", "hold", "set_otherwise", reason, "probation", decided_at, 0, view.counts)
    return None


def _standing(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """The recommendation holds. It is raised where a trigger has held for its blocks that asks for more: to disable, or for quality.

    Quality is told once in a recommendation: it stays the cause, and has to be well before that is over.
    """
    advised = before.advised or "disable"
    is_quality = isinstance(cause_of(view.policy, before), Quality)
    harder = tuple(
        trigger for trigger in view.disabling if trigger.action == "disable" != advised or (isinstance(trigger, Quality) and not is_quality)
    )
    lead = counted(view, before, harder)
    if lead is None:
        return _confirmed(view, before, view.disabling[0], 0)
    trigger, streak = lead
    if streak < trigger.for_blocks:
        return _confirmed(view, before, trigger, streak)
    code, reason = code_of(view.policy, trigger), f"{accusing(view, trigger)}; {advised} was advised before"
    action: Action = "disable" if advised == "disable" else trigger.action
    raised = Judgment("disable", action, code, reason, before.state, decided_at, 0, view.counts, is_confirmed=True, is_raised=True)
    return raised._replace(cause=before.cause) if is_quality else raised


def _confirmed(view: View, before: Standing, lead: Trigger, streak: int) -> Judgment:
    code, reason = code_of(view.policy, lead), accusing(view, lead)
    if streak:
        code, reason = code + PENDING, f"{reason}; seen in {streak} of the {lead.for_blocks} blocks it takes"
    return _recommended(view, before, code, reason, streak)


def _recommended(view: View, before: Standing, code: str, reason: str, streak: int) -> Judgment:
    action, since = before.advised or "disable", before.state_since
    return Judgment("disable", action, code, reason, before.state, since, streak, view.counts, is_confirmed=True)


def _unreadable(view: View, before: Standing, text: str) -> Judgment:
    """Nothing is known: the recommendation stays, and the reason says since when nothing has confirmed it."""
    lacks: tuple[Verdict, str, str] = view.lacks or ("insufficient", "no_recovery_reading", text)
    return view.stays(before, lacks[0], lacks[1], lacks[2] + wording.unconfirmed(before))


def _against(view: View) -> str | None:
    """What speaks against switching a lever on again whose numbers are good: a broken gate, or traffic that does not enable it."""
    for gate in view.holding:
        return f"the gate on {gate.covers} is broken: {view.text(gate)}"
    enabling = view.policy.enabling_condition
    if holds(view.policy, enabling, view.effects):
        return None
    return f"the enabling condition does not hold: {view.text(enabling)}"
