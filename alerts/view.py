"""A block as its policy sees it: a policy, effects, standing and what else is known in, what holds and what is lacking out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from alerts import calibrations, wording
from alerts.chain import Advice, Condition, FailureMode, Gate, Policy, PremiseLost, Quality, Trigger, code_of, narrowest
from alerts.conditions import SUSPICIOUS, explain, gain_limit, holds, is_back, shortfall
from alerts.effects import Effect, Effects, effect_name
from alerts.levers import Verdict
from alerts.permissions import FIXED_CONTROL, SAMPLE_RATIO, is_refused
from alerts.standing import NO_COUNTS, Judgment, Seen, Standing
from pipeline.metrics import judged

FREEZING = ("coverage", SUSPICIOUS, SAMPLE_RATIO)
WITHOUT_CONTROL = ("no_control", FIXED_CONTROL)
PENDING, WAITS = "_pending", "_waits"


class View(NamedTuple):
    """The block as the policy sees it: the triggers that may act, what the benefit lacks, and the gates and advice that hold.

    `counts` are the blocks in a row that each gate and each advice has held, this one included, to as many as it takes.
    """

    policy: Policy
    effects: Effects
    seen: Seen
    benefit: Effect | None
    disabling: tuple[Trigger, ...]
    lacks: tuple[Verdict, str, str] | None
    holding: tuple[Gate, ...]
    counts: Mapping[str, int]

    def text(self, condition: Condition) -> str:
        """The numbers a condition looks at, or what is missing; of quality what its gate says."""
        return self.seen.quality if condition.metric == "quality" else explain(self.policy, condition, self.effects)

    def gates(self) -> list[Gate]:
        """The gates that have been broken for as many blocks as they take."""
        return [gate for gate in self.holding if self.counts[gate_key(gate)] >= gate.for_blocks]

    def premises(self) -> list[PremiseLost]:
        """The policy's triggers that are premises."""
        return [trigger for trigger in self.policy.disable_when if isinstance(trigger, PremiseLost)]

    def stays(self, before: Standing, verdict: Verdict, code: str, reason: str, streak: int = 0) -> Judgment:
        """A judgment that advises nothing and leaves the stream where it was."""
        return Judgment(verdict, "hold", code, reason, before.state, before.state_since, streak, self.counts)


def look(policy: Policy, effects: Effects, before: Standing, seen: Seen) -> View:
    """What a policy sees in the effects of one block."""
    benefit = effects.get(effect_name(policy.expected_benefit.metric))
    premise_may = benefit is not None and (is_refused(benefit) or (not benefit.controlled and benefit.says != "pays"))
    candidates = (trigger for trigger in policy.disable_when if premise_may or not isinstance(trigger, PremiseLost))
    disabling = narrowest(trigger for trigger in candidates if holds(policy, trigger, effects))
    holding = tuple(gate for gate in policy.gates if holds(policy, gate, effects))
    counts = {gate_key(gate): _count(before, gate_key(gate), gate.for_blocks) for gate in holding}
    for advice in policy.advise_when:
        if holds(policy, advice, effects):
            counts[advice_key(advice)] = _count(before, advice_key(advice), advice.for_blocks)
    return View(policy, effects, seen, benefit, disabling, lacking(policy, benefit, effects), holding, counts or NO_COUNTS)


def lacking(policy: Policy, benefit: Effect | None, effects: Effects) -> tuple[Verdict, str, str] | None:
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
    short = shortfall(policy, benefit, compared=True) or calibrations.unscaled(benefit)
    if short is not None:
        return "frozen" if short[0] in FREEZING else "insufficient", *short
    if benefit.gain_low is None or benefit.gain_high is None:
        return "insufficient", "no_interval", wording.no_interval(benefit)
    return None


def counted(view: View, before: Standing, among: tuple[Trigger, ...]) -> tuple[Trigger, int] | None:
    """(the trigger whose blocks are counted, how many there are with this one): one that was being counted goes on, else the first.

    Quality goes before all others, and before what was being counted: else it would wait for whatever that waits for.
    """
    among = tuple(trigger for trigger in among if isinstance(trigger, Quality)) or among
    for trigger in among:
        code = code_of(view.policy, trigger)
        if before.reason_code in (code + PENDING, code + WAITS):
            return trigger, before.streak + 1
    return (among[0], 1) if among else None


def recovery(view: View, before: Standing) -> tuple[bool | None, str]:
    """Whether the lever is good again, and the numbers; None where that cannot be told.

    Off by a premise and still without a control that may decide, that premise tells. What switched it off on its own has to be read.
    """
    back, cause = view.policy.re_enable_when, cause_of(view.policy, before)
    if isinstance(cause, FailureMode | Quality) and holds(view.policy, cause, view.effects) is None:
        return None, view.text(cause)
    good = holds(view.policy, back, view.effects)
    if good is not None or view.benefit is None or (view.benefit.controlled and not is_refused(view.benefit)):
        return good, view.text(back)
    if isinstance(cause, PremiseLost | FailureMode) and cause.re_enable_at is not None:
        is_told = holds(view.policy, cause, view.effects) is not None
        basis = "; basis premise" if isinstance(cause, PremiseLost) else ""
        text = f"{view.text(cause)}, {cause.re_enable_at:g} to switch on again{basis}"
        return is_back(cause, cause.re_enable_at, view.effects) if is_told else None, text
    if isinstance(cause, Quality) or (isinstance(cause, FailureMode) and gain_limit(cause, judged()[cause.metric]) is None):
        return True, f"{view.text(cause)}; nothing to compare with, what switched it off is gone"
    return None, view.text(back)


def cause_of(policy: Policy, before: Standing) -> Trigger | None:
    """The trigger that turned a stream off; None where it is on, or the policy has no such trigger any more."""
    return next((trigger for trigger in policy.disable_when if code_of(policy, trigger) == before.cause), None) if before.cause else None


def gate_key(gate: Gate) -> str:
    """Under which a gate's blocks are counted."""
    return f"gate.{gate.covers}.{gate.metric}"


def advice_key(advice: Advice) -> str:
    """Under which an advice's blocks are counted."""
    return f"advice.{advice.metric}"


def advised(view: View) -> Iterator[str]:
    """What people are told that is no switch, with its numbers."""
    for advice in view.policy.advise_when:
        if view.counts.get(advice_key(advice), 0) >= advice.for_blocks:
            yield f"advice: {advice.advice} ({view.text(advice)})"


def _count(before: Standing, key: str, most: int) -> int:
    return min(before.counts.get(key, 0) + 1, most)


def _suspicious_premise(policy: Policy, effects: Effects) -> str | None:
    """Where there is no control, what is wrong with the input of a premise that would decide."""
    for trigger in policy.disable_when:
        effect = effects.get(effect_name(trigger.metric)) if isinstance(trigger, PremiseLost) else None
        short = shortfall(policy, effect, compared=False) if effect is not None else None
        if short is not None and short[0] == SUSPICIOUS:
            return short[1]
    return None
