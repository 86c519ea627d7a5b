"""A policy in, effects under which nothing of it holds, or one of its conditions just past or short of its threshold, out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from effect_evidence import evident

from alerts.chain import Compared, Condition, Policy, PremiseLost, SingleArm, Trigger
from alerts.conditions import gain_limit, is_gain_above
from alerts.effects import Effect, effect_name
from alerts.judge import Judgment, Standing, after, judge
from alerts.standing import NOTHING_SEEN, Seen
from pipeline.metrics import judged

T0 = datetime(2026, 3, 4, tzinfo=UTC)
BLOCK = timedelta(seconds=300)
NEAR = 1e-6
"""How far past or short of its threshold a number lies."""
ON = Standing("on", T0)


class Named(NamedTuple):
    """A condition of a policy and where in the file it stands."""

    key: str
    condition: Any


def conditions(policy: Policy) -> Iterator[Named]:
    """Every condition of a policy, those of a `where` too."""
    yield Named("enabling_condition", policy.enabling_condition)
    yield Named("re_enable_when", policy.re_enable_when)
    for key in ("disable_when", "gates", "advise_when"):
        for number, one in enumerate(getattr(policy, key)):
            yield Named(f"{key}[{number}]", one)
            yield from (Named(f"{key}[{number}].where[{place}]", part) for place, part in enumerate(getattr(one, "where", ())))


def alone(metric: str, value: float) -> Effect:
    """The treated arm's own value, in the metric's unit."""
    return Effect(metric, T0, T0, 24, 4000, 0, value, None, None, None, None, "premise", 1.0, None)


def compared(metric: str, low: float, high: float) -> Effect:
    """Treated against control, or quality against the original, with the interval of its gain."""
    is_scored = metric == "quality"
    says = ("loses" if high < 0 else "pays") if is_scored else None
    seen = Effect(
        metric, T0, T0, 24, 4000, 4000, 1.0, 1.0, (low + high) / 2, low, high, "evaluations" if is_scored else "control", 1.0, None
    )
    return evident(seen._replace(says=says))


def uncontrolled(metric: str) -> Effect:
    """What there is of a benefit where no control arm runs."""
    return Effect(metric, T0, T0, 24, 4000, 0, 1.0, None, None, None, None, "none", 1.0, "no control arm: nothing to compare with")


def healthy(policy: Policy) -> dict[str, Effect]:
    """Effects under which the lever pays and no trigger, gate or advice holds."""
    seen = {effect_name(policy.expected_benefit.metric): compared(effect_name(policy.expected_benefit.metric), 0.01, 0.03)}
    for _, one in conditions(policy):
        name = effect_name(one.metric)
        if limit_of(one) is not None:
            seen.setdefault(name, compared(name, -0.01, 0.03))
    for _, one in (*conditions(policy), Named("", policy.enabling_condition)):
        if limit_of(one) is None and not isinstance(seen.get(one.metric), Effect):
            seen[one.metric] = alone(one.metric, _fine(policy, one.metric))
    return seen


def at(policy: Policy, condition: Condition, offset: float) -> dict[str, Effect]:
    """Healthy effects, but the condition's number lies past (offset > 0) or short of (offset < 0) where it turns; its `where` holds."""
    seen = healthy(policy) | {one.metric: driven(one, NEAR) for one in getattr(condition, "where", ())}
    seen[effect_name(condition.metric)] = driven(condition, offset)
    if isinstance(condition, PremiseLost):
        benefit = effect_name(policy.expected_benefit.metric)
        seen[benefit] = uncontrolled(benefit)
    return seen


def driven(condition: Condition, offset: float) -> Effect:
    """The effect that a condition reads, that far past the threshold, or short of it where the offset is negative."""
    name, limit = effect_name(condition.metric), limit_of(condition)
    if limit is None:
        assert condition.threshold is not None
        return alone(name, condition.threshold + (offset if condition.is_ == "above" else -offset))
    if is_gain_above(condition, judged()[condition.metric]):
        return compared(name, limit + offset, limit + 0.2)
    return compared(name, limit - 0.2, limit - offset)


def limit_of(condition: Condition) -> float | None:
    """The gain at which a condition turns; None where it looks at one arm's own value."""
    return gain_limit(condition, judged()[condition.metric])


def play(policy: Policy, effects: dict[str, Effect], blocks: int, before: Standing = ON, seen: Seen = NOTHING_SEEN) -> list[Judgment]:
    """What is said of as many blocks that look alike."""
    said = []
    for number in range(1, blocks + 1):
        judgment = judge(policy, effects, before, T0 + number * BLOCK, seen)
        before = after(before, judgment, T0 + number * BLOCK)
        said.append(judgment)
    return said


def without(policy: Policy, *metrics: str) -> Policy:
    """The policy without triggers, gates and advice on these metrics: what is left to be seen is another condition's doing."""

    def rest(of: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(one for one in of if effect_name(one.metric) not in metrics)

    kept = {key: rest(getattr(policy, key)) for key in ("disable_when", "gates", "advise_when")}
    return msgspec.structs.replace(policy, **kept)


def _fine(policy: Policy, metric: str) -> float:
    """A value of a single arm at which no trigger, gate or advice of the policy holds, and the enabling condition does."""
    bad: list[SingleArm | Compared | Trigger] = [*policy.disable_when, *policy.gates, *policy.advise_when]
    low = max((one.threshold for one in bad if one.metric == metric and one.is_ == "below" and one.threshold is not None), default=None)
    high = min((one.threshold for one in bad if one.metric == metric and one.is_ == "above" and one.threshold is not None), default=None)
    enabling = policy.enabling_condition
    if enabling.metric == metric:
        low, high = (max(low or 0.0, enabling.threshold), high) if enabling.is_ == "above" else (low, min(high or 1e9, enabling.threshold))
    if low is None and high is None:
        return 1.0
    if low is None:
        return (high or 0.0) / 2
    return (low + high) / 2 if high is not None else low * 1.5
