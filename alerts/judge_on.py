"""Judging a lever that is in use: the view of a block and the stream's standing in; keep, what is counted, or a recommendation out."""

from __future__ import annotations

from datetime import datetime

from alerts import decided, wording
from alerts.chain import PremiseLost, Quality, Trigger, code_of
from alerts.conditions import holds, past
from alerts.standing import Judgment, Standing
from alerts.view import PENDING, WITHOUT_CONTROL, View, advised, counted


def judge_on(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """What a block says of a lever that is in use: a trigger that holds for its blocks advises its action."""
    lead = counted(view, before, view.disabling)
    return undisturbed(view, before) if lead is None else fired(view, before, decided_at, *lead)


def fired(view: View, before: Standing, decided_at: datetime, lead: Trigger, streak: int) -> Judgment:
    """A trigger that holds: its action where it has held for as many blocks as it takes, else how many it has."""
    code, reason = code_of(view.policy, lead), accusing(view, lead)
    if streak >= lead.for_blocks:
        reason = "; ".join(filter(None, (reason, decided.held(streak, decided_at))))
        return Judgment("disable", lead.action, code, reason, "off_recommended", decided_at, 0, view.counts, is_confirmed=True)
    code, reason = code + PENDING, f"{reason}; seen in {streak} of the {lead.for_blocks} blocks it takes"
    if view.lacks:
        return view.stays(before, view.lacks[0], code, reason, streak)
    return Judgment("keep", "keep", code, reason, before.state, before.state_since, streak, view.counts)


def undisturbed(view: View, before: Standing) -> Judgment:
    """No trigger may act: keep, keep and hold where a gate is broken, or what keeps that from being told."""
    if view.lacks is not None or view.benefit is None:
        verdict, code, text = view.lacks or ("insufficient", "no_effect", "")
        notes = [view.text(trigger) for trigger in view.premises()] if code in WITHOUT_CONTROL else []
        return view.stays(before, verdict, code, "; ".join([text, *notes, *advised(view)]))
    pays = past(view.benefit.gain_low, True, view.benefit.beyond(view.policy.expected_benefit.minimum_gain, above=True))
    reason = keeping(view)
    gates = view.gates()
    if gates:
        broken = [f"the gate on {gate.covers} is broken: {view.text(gate)}" for gate in gates]
        return view.stays(before, "keep", f"gate.{gates[0].covers}", "; ".join([*broken, reason]))
    return Judgment("keep", "keep", "pays" if pays else "no_harm", reason, before.state, before.state_since, 0, view.counts)


def keeping(view: View) -> str:
    """Why a lever is kept: the benefit's numbers, then what else has to be known."""
    said = [wording.compared(view.benefit)] if view.benefit else []
    said += [*_lost(view), *_unread(view), view.seen.quality, *advised(view)]
    return "; ".join([*said, view.seen.again] if view.seen.again else said)


def accusing(view: View, lead: Trigger) -> str:
    """The lead's numbers first; for a premise, that harm was not measured; then what else speaks."""
    where = [view.text(one) for one in lead.where]
    if isinstance(lead, PremiseLost):
        others = [view.text(trigger) for trigger in view.disabling if trigger is not lead]
        return "; ".join([f"premise lost: {view.text(lead)}", *where, *others, _unmeasured(view)])
    first = view.text(lead)
    benefit = "" if view.lacks or view.benefit is None else wording.compared(view.benefit)
    said = [first, *where, *([] if benefit in first else [benefit]), *_lost(view)]
    return "; ".join(dict.fromkeys(said))


def _unmeasured(view: View) -> str:
    if view.benefit is None or not view.benefit.controlled:
        return "basis premise: harm was not measured, no control traffic"
    return f"basis premise: harm was not measured, control may not decide: {view.benefit.permission_reason}"


def _lost(view: View) -> list[str]:
    """Premises that are lost: where a control decides they stand in the reason and do no more."""
    return [f"premise lost: {view.text(trigger)}" for trigger in view.premises() if holds(view.policy, trigger, view.effects)]


def _unread(view: View) -> list[str]:
    """Guards that act on their own but could not be read: a keep does not pass over them in silence."""
    guards = (trigger for trigger in view.policy.disable_when if not isinstance(trigger, PremiseLost | Quality))
    return [view.text(trigger) for trigger in guards if holds(view.policy, trigger, view.effects) is None]
