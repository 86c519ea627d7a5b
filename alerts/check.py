"""What a policy's values must mean: a well-formed policy in, its problems as (key, sentence) out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from alerts import bounds, check_chain
from alerts.carried import CARRIED
from alerts.chain import (
    BenefitGone,
    Condition,
    FailureMode,
    Harm,
    Policy,
    PolicyError,
    PremiseLost,
    SingleArm,
    Trigger,
    code_of,
    kind_of,
)
from alerts.conditions import gain_limit, is_gain_above
from alerts.effects import effect_name
from alerts.levers import LEVERS, unknown, unknown_of_many
from pipeline.metrics import Metric, judged

Problem = tuple[str, str]
LISTING = "leverwatch policy metrics"


def check(policy: Policy, where: str) -> None:
    """Passes a policy whose every name, unit, threshold and direction makes sense.

    Raises:
        PolicyError: one line a problem, each with the file, the key and what it takes.
    """
    found = list(problems(policy))
    if found:
        raise PolicyError("\n".join(f"{where}: {key}: {sentence}" for key, sentence in found))


def problems(policy: Policy) -> Iterator[Problem]:
    """Every problem of a policy; none for one that can be judged."""
    if policy.lever not in LEVERS:
        yield "lever", unknown("lever", policy.lever, LEVERS)
    yield from _metrics(policy)
    yield from _condition("enabling_condition", policy.enabling_condition, good=True)
    yield from _condition("re_enable_when", policy.re_enable_when, good=True)
    for number, trigger in enumerate(policy.disable_when):
        yield from _trigger(f"disable_when[{number}]", trigger, policy)
    for number, gate in enumerate(policy.gates):
        yield from _condition(f"gates[{number}]", gate, good=False)
    for number, advice in enumerate(policy.advise_when):
        yield from _condition(f"advise_when[{number}]", advice, good=False)
        yield from _narrowed(f"advise_when[{number}]", advice.where)
    yield from check_chain.problems(policy)


def _metrics(policy: Policy) -> Iterator[Problem]:
    named = {
        "measured_bottleneck.metric": policy.measured_bottleneck.metric,
        "receiving_budget.metric": policy.receiving_budget.metric,
        "expected_benefit.metric": policy.expected_benefit.metric,
        "failure_mode.metric": policy.failure_mode.metric,
    }
    for key, name in named.items():
        if name not in judged():
            yield key, unknown_metric(name)
    benefit = policy.expected_benefit.metric
    if benefit in judged() and effect_name(benefit) not in judged():
        yield "expected_benefit.metric", f"{benefit} has no effect to be read from: {effect_name(benefit)} is no metric"


def _trigger(key: str, trigger: Trigger, policy: Policy) -> Iterator[Problem]:
    yield from _condition(key, trigger, good=False)
    yield from _narrowed(key, trigger.where)
    codes = [code_of(policy, other) for other in policy.disable_when]
    if codes.count(code_of(policy, trigger)) > 1:
        yield key, f"a second {kind_of(trigger)} on {trigger.metric}; takes one of a kind and metric"
    metric = judged().get(trigger.metric)
    if metric is None or (metric.better == "neither" and not isinstance(trigger, SingleArm)):
        return
    if isinstance(trigger, Harm | BenefitGone):
        yield from _gain(key, trigger, gain_limit(trigger, metric), policy.expected_benefit.minimum_gain)
    if isinstance(trigger, PremiseLost | FailureMode):
        yield from _restored(key, trigger)
    yield from _band(key, trigger, policy)


def _narrowed(key: str, where: Iterable[SingleArm]) -> Iterator[Problem]:
    for number, one in enumerate(where):
        yield from _condition(f"{key}.where[{number}]", one, good=None)


def _condition(key: str, condition: Condition, *, good: bool | None) -> Iterator[Problem]:
    """A condition against its metric; `good` where holding it is good news, so it must look the metric's better way; None takes both."""
    metric = judged().get(condition.metric)
    if metric is None:
        yield f"{key}.metric", unknown_metric(condition.metric)
        return
    if effect_name(metric.name) not in CARRIED:
        yield f"{key}.metric", f"effects do not carry {metric.name}, so it would never hold; `{LISTING}` lists those that may be named"
        return
    relative = condition.threshold is None
    yield from _unit(key, condition.unit, "ratio" if relative else metric.unit, metric.name)
    yield from _direction(key, condition, metric, good=good, relative=relative)
    if condition.threshold is not None:
        yield from _reachable(key, condition, condition.threshold, metric)
    if not isinstance(condition, SingleArm) and condition.relative_to_control is not None:
        yield from _factor(key, condition.relative_to_control, metric)


def _factor(key: str, factor: float, metric: Metric) -> Iterator[Problem]:
    if metric.name.endswith("_gain"):
        yield f"{key}.relative_to_control", f"{metric.name} is a comparison with control already; takes threshold"
    elif not bounds.LEAST_FACTOR <= factor <= bounds.MOST_FACTOR:
        ends = f"a factor from {bounds.LEAST_FACTOR:g} to {bounds.MOST_FACTOR:g}, such as 1.25 for a quarter more than control"
        yield f"{key}.relative_to_control", f"takes {ends}; got {factor:g}"


def _unit(key: str, unit: str, needed: str, metric: str) -> Iterator[Problem]:
    if unit != needed:
        yield f"{key}.unit", f"takes {needed!r} for {metric}, got {unit!r}"


def _direction(key: str, condition: Condition, metric: Metric, *, good: bool | None, relative: bool) -> Iterator[Problem]:
    if metric.better == "neither":
        if relative:
            yield f"{key}.relative_to_control", f"takes a metric that has a better direction; {metric.name} has none, use threshold"
        return
    if good is None:
        return
    needed = "above" if (metric.better == "higher") is good else "below"
    if condition.is_ != needed:
        yield f"{key}.is", f"takes {needed!r}, because {metric.better} is better for {metric.name}; got {condition.is_!r}"


def _reachable(key: str, condition: Condition, threshold: float, metric: Metric) -> Iterator[Problem]:
    low, high = metric.bounds
    beyond = bounds.told(metric, threshold)
    if beyond is not None:
        yield f"{key}.threshold", beyond
    elif (condition.is_ == "below" and threshold == low) or (condition.is_ == "above" and threshold == high):
        yield f"{key}.threshold", f"{condition.is_} {threshold} can never hold: {metric.name} is {_range(low, high)}"


def _gain(key: str, trigger: Trigger, limit: float | None, minimum_gain: float) -> Iterator[Problem]:
    if limit is None:
        yield f"{key}.metric", f"{kind_of(trigger)} compares with control: takes a gain metric with threshold, or relative_to_control"
    elif isinstance(trigger, Harm) and limit > 0.0:
        yield key, f"harm takes a gain limit of 0 or below, got {limit:g}; a gain that is too small is benefit_gone"
    elif isinstance(trigger, BenefitGone) and abs(limit - minimum_gain) > 1e-9:
        yield key, f"benefit_gone takes the gain limit of expected_benefit.minimum_gain, {minimum_gain:g}; got {limit:g}"


def _restored(key: str, trigger: PremiseLost | FailureMode) -> Iterator[Problem]:
    again = trigger.re_enable_at
    if again is not None and trigger.threshold is None:
        yield f"{key}.re_enable_at", "goes with threshold: what is relative to control is over by re_enable_when"
        return
    if again is None or trigger.threshold is None:
        return
    metric = judged()[trigger.metric]
    beyond = bounds.told(metric, again)
    if beyond is not None:
        yield f"{key}.re_enable_at", beyond
    elif again <= trigger.threshold if trigger.is_ == "below" else again >= trigger.threshold:
        side = "above" if trigger.is_ == "below" else "below"
        yield f"{key}.re_enable_at", f"takes a value {side} the threshold {trigger.threshold:g}, got {again:g}"


def _band(key: str, trigger: Trigger, policy: Policy) -> Iterator[Problem]:
    """The on threshold must lie on the good side of every off threshold of the same measure."""
    back = policy.re_enable_when
    if effect_name(back.metric) != effect_name(trigger.metric) or back.metric not in judged():
        return
    off, on = gain_limit(trigger, judged()[trigger.metric]), gain_limit(back, judged()[back.metric])
    if (off is None) != (on is None):
        return
    if off is None or on is None:
        off, on = trigger.threshold or 0.0, back.threshold or 0.0
        above = back.is_ == "above"
    else:
        above = is_gain_above(back, judged()[back.metric])
    if (on <= off) if above else (on >= off):
        yield "re_enable_when", f"its threshold must be better than that of {key}, or the state flaps: off at {off:g}, on at {on:g}"


def unknown_metric(name: str) -> str:
    """The sentence for a metric that nobody measures: the nearest names, and what lists all."""
    return unknown_of_many("metric", name, judged(), LISTING)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return "any number" if high is None else f"at most {high:g}"
    return f"{low:g} and more" if high is None else f"{low:g} to {high:g}"
