"""Conditions read from effects: a condition and one segment's effects at a block's end in, holds or not and why out."""

from __future__ import annotations

from alerts import calibrations, decided, permissions, wording
from alerts.chain import Condition, FailureMode, Policy, PremiseLost, SingleArm
from alerts.effects import Effect, Effects, effect_name
from pipeline.metrics import Metric, judged

SUSPICIOUS = "suspicious_input"
SCORES = "evaluations"  # the basis of quality's effect
GAIN_DECIMALS = 9
MOST_TRAPPED = 0.1  # of an arm's requests: with more in a trap, what is left is not what was measured


def gain_limit(condition: Condition, metric: Metric) -> float | None:
    """The gain at which a condition turns, as a ratio; None where it looks at one arm's own value."""
    if isinstance(condition, SingleArm) or (condition.relative_to_control is None and not metric.name.endswith("_gain")):
        return None
    if condition.relative_to_control is None:
        return condition.threshold
    factor = condition.relative_to_control
    # rounded: 1.0 - 1.02 is a hair below -0.02, and evidence would be read at the next null beyond it
    return round(factor - 1.0 if metric.better == "higher" else 1.0 - factor, GAIN_DECIMALS)


def is_gain_above(condition: Condition, metric: Metric) -> bool:
    """Whether a compared condition holds for gains above its limit: above for what is better high, below for the rest."""
    return (condition.is_ == "above") == (metric.better == "higher")


def holds(policy: Policy, condition: Condition, effects: Effects) -> bool | None:
    """Whether a condition holds at this block: evidence past its limit, an interval wholly past it, or a value past its threshold.

    Evidence decides where there is any: an interval over the last blocks, looked at again and again, alarms far more often than it says.
    Of a limit past the outermost null the evidence tells that the gain lies past that null, and the interval the rest. Where there is to be
    evidence and is none yet, an interval past the limit tells nothing.

    None where it cannot be told: not measured, too little of it, or nothing to compare with. One with a `where` holds where that does.
    """
    narrowed = [_holds(policy, one, effects) for one in getattr(condition, "where", ())]
    if False in narrowed:
        return False
    told = _holds(policy, condition, effects)
    return None if told and None in narrowed else told


def _holds(policy: Policy, condition: Condition, effects: Effects) -> bool | None:
    effect = effects.get(effect_name(condition.metric))
    metric = judged()[condition.metric]
    limit = gain_limit(condition, metric)
    if effect is None or shortfall(policy, effect, compared=limit is not None) is not None:
        return None
    if limit is None:
        return _past_threshold(condition, effect)
    above = is_gain_above(condition, metric)
    if not effect.may_say(above=above):
        return None if effect.says is None else False
    limit = effect.beyond(limit, above=above)
    is_past = past(effect.gain_low if above else effect.gain_high, above, limit)
    if calibrations.is_unscaled(effect):
        return False if is_past is False else None
    evident = effect.is_evident(limit, above=above)
    return (is_past and effect.is_evident_at_outermost(above=above) is not False) if evident is None else evident


def _past_threshold(condition: Condition, effect: Effect) -> bool | None:
    """Whether an arm's own value lies past a threshold; of a premise the evidence decides where there is any."""
    above = condition.is_ == "above"
    if isinstance(condition, PremiseLost):
        lost = effect.is_lost(condition.threshold, above=above)
        if lost is not None:
            return lost
    return past(effect.own, above, condition.threshold)


def is_back(premise: PremiseLost | FailureMode, threshold: float, effects: Effects) -> bool | None:
    """Whether a premise lies on the good side of the threshold at which its lever is switched on again; None where it is not known."""
    effect, above = effects[premise.metric], premise.is_ == "below"
    good = effect.is_lost(threshold, above=above)
    return past(effect.own, above, threshold) if good is None else good


def explain(policy: Policy, condition: Condition, effects: Effects) -> str:
    """The numbers a condition looks at, or what is missing."""
    effect = effects.get(effect_name(condition.metric))
    metric = judged()[condition.metric]
    if effect is None:
        return f"{wording.label(condition.metric)} not measured"
    compared = gain_limit(condition, metric) is not None
    short = shortfall(policy, effect, compared=compared)
    if short is not None:
        return short[1]
    if compared:
        if effect.gain_low is not None:
            return _told(policy, condition, effects)
        return wording.no_interval(effect) if effect.controlled else wording.not_compared(effect)
    if effect.own is None or condition.threshold is None:
        return f"{wording.label(condition.metric)} not measured"
    above = condition.is_ == "above"
    if isinstance(condition, PremiseLost) and effect.is_lost(condition.threshold, above=above):
        return decided.by_premise(effect, metric, condition.threshold, above=above)
    return wording.against_threshold(metric, effect.own, condition.threshold)


def _told(policy: Policy, condition: Condition, effects: Effects) -> str:
    """A compared effect's numbers; of one that is past its condition first what decided that."""
    effect, metric = effects[effect_name(condition.metric)], judged()[condition.metric]
    limit = gain_limit(condition, metric)
    held = _holds(policy, condition, effects)
    if limit is None or effect.basis == SCORES or not held:
        waits = held is None and calibrations.is_unscaled(effect)
        return f"{wording.compared(effect)}; not decided yet: {calibrations.NO_SCALE}" if waits else wording.compared(effect)
    return decided.by(effect, policy.lever, limit, above=is_gain_above(condition, metric))


def past(value: float | None, above: bool, limit: float | None) -> bool | None:
    """Whether a value lies beyond a limit; None where either is missing."""
    if value is None or limit is None:
        return None
    return value > limit if above else value < limit


def shortfall(policy: Policy, effect: Effect, *, compared: bool) -> tuple[str, str] | None:
    """What keeps an effect from being judged, as (reason code, sentence); None when it can be. What scores lack their gate says."""
    if effect.basis == SCORES:
        return None
    if effect.trap is not None and (effect.trapped_share or 0.0) > MOST_TRAPPED:
        return SUSPICIOUS, wording.trapped(effect, MOST_TRAPPED)
    if effect.coverage < policy.minimum_coverage:
        return "coverage", wording.low_coverage(effect, policy.minimum_coverage)
    if compared and (spoiled := permissions.spoiled(effect)):
        return spoiled
    if effect.blocks < policy.minimum_blocks:
        return "few_blocks", f"{wording.label(effect.metric)}: {wording.blocks(effect.blocks)}, {policy.minimum_blocks} are needed"
    has_other = effect.controlled or effect.says is not None
    fewest = min(effect.n_a, effect.n_b) if compared and has_other else effect.n_a
    if fewest < policy.minimum_requests:
        return "few_requests", wording.few_requests(effect, policy.minimum_requests, compared=compared and has_other)
    return (permissions.unseen(effect) or calibrations.doubt(effect)) if compared else None
