"""Judging a lever on probation: the view of a block and the standing in; whether it is in use again for good, or off again, out."""

from __future__ import annotations

from datetime import datetime, timedelta

from alerts import wording
from alerts.chain import SingleArm, Trigger
from alerts.conditions import gain_limit, is_gain_above, past
from alerts.effects import effect_name
from alerts.judge_off import MAY_RETURN
from alerts.judge_on import fired, keeping
from alerts.standing import Judgment, Standing
from alerts.view import WITHOUT_CONTROL, View, counted, recovery
from pipeline.metrics import judged


def judge_trial(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """What a block says of a lever that may come back, or that is back: on after the dwell without a trigger, or off again."""
    if before.advised == "enable" and not view.seen.in_use:
        return _waiting(view, before, decided_at)
    if view.seen.in_use is False:
        reason = f"switched off again: {view.seen.used}"
        return Judgment("disable", "hold", "switched_off", reason, "off", decided_at, 0, view.counts)
    since = decided_at if before.advised == "enable" else before.state_since
    here = before._replace(state_since=since)
    lead = counted(view, here, tuple(trigger for trigger in view.disabling if _is_of_now(view, trigger, since)))
    return _dwelling(view, here, decided_at) if lead is None else fired(view, here, decided_at, *lead)


def _waiting(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """The operator was told that the lever may come back and has not brought it back."""
    good, text = recovery(view, before)
    against = [f"the gate on {gate.covers} is broken: {view.text(gate)}" for gate in view.holding]
    if view.disabling or good is False or against:
        reason = "; ".join([*against, text, "it may not come back any more"])
        return Judgment("disable", "hold", "withdrawn", reason, "off", decided_at, 0, view.counts)
    reason = f"{text}; it may come back since {wording.utc(before.state_since)}"
    return Judgment("keep", "enable", MAY_RETURN, reason, before.state, before.state_since, 0, view.counts)


def _dwelling(view: View, before: Standing, decided_at: datetime) -> Judgment:
    """No trigger holds: on after the dwell, once the numbers are of requests since it came back."""
    minutes, dwell_s = (decided_at - before.state_since).total_seconds() / 60, view.policy.dwell_s
    trial = f"on probation for {minutes:.0f} of {dwell_s / 60:.0f} min"
    if view.lacks is not None and not _premises_tell(view):
        return view.stays(before, view.lacks[0], view.lacks[1], f"{view.lacks[2]}; {trial}")
    reason = keeping(view) if view.lacks is None else "; ".join(view.text(trigger) for trigger in view.premises())
    if view.benefit is None or view.benefit.since < before.state_since:
        return view.stays(before, "insufficient", "probation", f"{reason}; {trial}, and still of requests from before it")
    if decided_at - before.state_since < timedelta(seconds=dwell_s):
        return Judgment("keep", "keep", "probation", f"{reason}; {trial}", before.state, before.state_since, 0, view.counts)
    return Judgment("keep", "keep", "back", f"{reason}; no trigger for {minutes:.0f} min", "on", decided_at, 0, view.counts)


def _premises_tell(view: View) -> bool:
    """Whether, where there is no control that may decide, at least one premise is known: of those that are, none is lost."""
    if view.lacks is None or view.lacks[1] not in WITHOUT_CONTROL:
        return False
    return any(trigger.metric in view.effects for trigger in view.premises())


def _is_of_now(view: View, trigger: Trigger, since: datetime) -> bool:
    """Whether a trigger that holds is about requests since the trial began: evidence and windows reach back to before it."""
    effect = view.effects.get(effect_name(trigger.metric))
    if effect is None or effect.since < since:
        return trigger.metric == "quality"
    metric = judged()[trigger.metric]
    limit = gain_limit(trigger, metric)
    if isinstance(trigger, SingleArm) or limit is None:
        return past(effect.own, trigger.is_ == "above", trigger.threshold) is not False
    above = is_gain_above(trigger, metric)
    return past(effect.gain, above, effect.beyond(limit, above=above)) is not False
