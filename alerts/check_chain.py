"""Whether a policy's chain hangs together: a policy in; what nothing watches and what does not fit its lever, as problems, out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from alerts.carried import COMPARED, WITH_EVIDENCE
from alerts.chain import COVERED, BenefitGone, Condition, Covered, Harm, Policy, PremiseLost, Quality
from alerts.conditions import gain_limit
from alerts.effects import effect_name
from alerts.levers import ACTIONS, ENGINES, LEVERS, WITHOUT_CONTROL, unknown
from pipeline.metrics import TAILS, judged

Problem = tuple[str, str]
MOST_COMPARED = 3
FITS: Mapping[Covered, tuple[str, ...]] = {
    "latency": tuple(TAILS),
    "memory": ("kv_usage", "gpu_memory_headroom", "preemptions_per_1k_requests"),
    "cost": ("gpu_s_per_output_token",),
    "errors": ("error_rate",),
    "quality": ("quality",),
}
"""What a gate looks at by what it covers; throughput shows in many ways, as the load is given."""


def problems(policy: Policy) -> Iterator[Problem]:
    """What keeps the parts of a policy from being one chain; none where each is watched and each action fits."""
    yield from _other_levers(policy)
    yield from _actions(policy)
    yield from _kinds(policy)
    yield from _gates(policy)
    yield from _watched(policy)
    yield from _compared(policy)
    for engine in policy.rollback.engine:
        if engine not in ENGINES:
            yield f"rollback.engine.{engine}", unknown("engine", engine, ENGINES)


def _other_levers(policy: Policy) -> Iterator[Problem]:
    named = {"revalidates": policy.revalidates, "goes_before": policy.goes_before}
    for key, levers in named.items():
        for number, lever in enumerate(levers):
            if lever not in LEVERS:
                yield f"{key}[{number}]", unknown("lever", lever, LEVERS)
            elif lever == policy.lever:
                yield f"{key}[{number}]", f"takes other levers, got the policy's own, {lever!r}"


def _actions(policy: Policy) -> Iterator[Problem]:
    taken = ("disable", *ACTIONS.get(policy.lever, ()))
    for number, trigger in enumerate(policy.disable_when):
        if policy.lever in LEVERS and trigger.action not in taken:
            known = " or ".join(map(repr, taken))
            yield f"disable_when[{number}].action", f"takes {known} for {policy.lever}, got {trigger.action!r}"


def _kinds(policy: Policy) -> Iterator[Problem]:
    """A measured loss has to act on its own, and so has quality."""
    plain = [trigger for trigger in policy.disable_when if not trigger.where]
    alone = policy.lever in WITHOUT_CONTROL and any(isinstance(trigger, PremiseLost) for trigger in plain)
    if not alone and not any(isinstance(trigger, Harm | BenefitGone) for trigger in plain):
        yield "disable_when", "takes a trigger of kind 'harm' without a where: a measured loss is what decides where there is a control"
    losses = {effect_name(trigger.metric) for trigger in plain if isinstance(trigger, Harm | BenefitGone)}
    benefit = effect_name(policy.expected_benefit.metric)
    if losses and benefit not in losses:
        yield "expected_benefit.metric", f"no harm or benefit_gone looks at {benefit}: a loss has to be measured by what is expected"
    if not any(isinstance(trigger, Quality) for trigger in plain):
        yield "quality_gate", "takes a trigger of kind 'quality' under disable_when: without one its breach changes nothing"
    for number, trigger in enumerate(policy.disable_when):
        if isinstance(trigger, Quality) != (trigger.metric == "quality"):
            yield f"disable_when[{number}].metric", f"kind 'quality' and metric 'quality' go together, got {trigger.metric!r}"


def _gates(policy: Policy) -> Iterator[Problem]:
    given = sorted({gate.covers for gate in policy.gates})
    for covered in COVERED:
        if covered not in given:
            yield "gates", f"takes a gate with covers = {covered!r}, got {', '.join(given) or 'none'}"
    seen: set[tuple[str, str]] = set()
    for number, gate in enumerate(policy.gates):
        fits = FITS.get(gate.covers, ())
        if fits and gate.metric not in fits:
            yield f"gates[{number}].metric", f"takes {' or '.join(fits)} where it covers {gate.covers}, got {gate.metric!r}"
        if (gate.covers, gate.metric) in seen:
            yield f"gates[{number}]", f"a second gate on {gate.metric} that covers {gate.covers}; takes one"
        seen.add((gate.covers, gate.metric))
    told = [advice.metric for advice in policy.advise_when]
    for number, metric in enumerate(told):
        if metric in told[:number]:
            yield f"advise_when[{number}]", f"a second advice on {metric}; takes one"


def _watched(policy: Policy) -> Iterator[Problem]:
    """What the chain names has to be looked at by something that acts, or it is a remark."""
    acting: list[Condition] = [*policy.disable_when, *policy.gates]
    watched = {effect_name(one.metric) for one in acting}
    for key, metric in (("failure_mode.metric", policy.failure_mode.metric), ("receiving_budget.metric", policy.receiving_budget.metric)):
        if effect_name(metric) not in watched:
            yield key, f"{metric} is watched by no trigger and no gate; takes a metric that one of them names, or one more of them"
    narrow = {one.metric for part in (*policy.disable_when, *policy.advise_when) for one in part.where}
    used = watched | narrow | {advice.metric for advice in policy.advise_when}
    if effect_name(policy.enabling_condition.metric) not in used:
        metric = policy.enabling_condition.metric
        yield "enabling_condition.metric", f"{metric} is used by no trigger, gate or advice: nobody would see that it is gone"


def _compared(policy: Policy) -> Iterator[Problem]:
    """Each metric that is compared in order to act is one more way to be wrong by chance."""
    conditions: list[Condition] = [*policy.disable_when, policy.re_enable_when]
    compares = [one.metric for one in conditions if one.metric in judged() and gain_limit(one, judged()[one.metric]) is not None]
    for metric in dict.fromkeys(compares):
        if effect_name(metric) not in COMPARED:
            yield "disable_when", f"arms are not compared by {metric}; takes one of {', '.join(COMPARED)}"
    told = sorted({effect_name(metric) for metric in compares} & set(WITH_EVIDENCE))
    if len(told) > MOST_COMPARED:
        got = ", ".join(told)
        yield (
            "disable_when",
            f"takes at most {MOST_COMPARED} metrics that are compared, with that of re_enable_when; got {got}",
        )
