"""The causal chain of a lever as frozen structs: what a policy file may hold, one class per trigger kind."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from alerts.bounds import Days, Dwell, Expiry, HeldBlocks, JudgedBlocks, Line, Name, Remark, Repeats, Requests, Said, Share, Stale, Version
from alerts.levers import Action

OtherLevers = Annotated[tuple[Name, ...], Meta(max_length=20)]
Direction = Literal["above", "below"]
Budget = Literal["compute", "memory_capacity", "memory_bandwidth", "communication", "quality"]
Phase = Literal["queue", "prefill", "transfer", "decode"]
Severity = Literal["critical", "warning", "info"]
Covered = Literal["latency", "throughput", "memory", "cost", "errors", "quality"]
COVERED: tuple[Covered, ...] = ("latency", "throughput", "memory", "cost", "errors", "quality")
"""What a policy's gates have to cover, each by one gate at least."""


class PolicyError(ValueError):
    """A policy that cannot be used: names the file, the key and what it takes."""


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of a policy file. `because` says in words what the numbers stand for."""

    because: Remark = ""


class MeasuredBottleneck(Part, frozen=True, kw_only=True):
    """The phase and the resource that hold the traffic back, and the metric that shows it."""

    phase: Phase
    resource: Budget
    metric: Name


class ReceivingBudget(Part, frozen=True, kw_only=True):
    """The budget that the lever puts pressure on, and the metric that shows the pressure."""

    budget: Budget
    metric: Name


class ExpectedBenefit(Part, frozen=True, kw_only=True):
    """What the user gains. `minimum_gain` is a share of the control's value, 0 when any gain is worth it."""

    metric: Name
    minimum_gain: Share


class FailureModeWatch(Part, frozen=True, kw_only=True):
    """The new way to fail that the lever brings, and the metric that watches it."""

    metric: Name


class QualityGate(Part, frozen=True, kw_only=True):
    """Which suite is compared with the original: at least 5 repeats of it, none older than `max_age_days`."""

    suite: Name
    kind: Literal["perplexity", "public_benchmark", "product"]
    max_age_days: Days
    repeats: Repeats = 5


class Rollback(Part, frozen=True, kw_only=True):
    """How to go back: steps for people, and for each engine the flags or settings that do it."""

    steps: Annotated[tuple[Said, ...], Meta(min_length=1, max_length=30)]
    engine: dict[Name, Said | Annotated[tuple[Said, ...], Meta(max_length=30)]] = {}


class SingleArm(Part, frozen=True, kw_only=True):
    """A condition on one arm's own value, in the metric's unit."""

    metric: Name
    is_: Direction = msgspec.field(name="is")
    threshold: float
    unit: Name
    for_blocks: HeldBlocks
    source: Said

    def __post_init__(self) -> None:
        _finite("threshold", self.threshold)


class Compared(Part, frozen=True, kw_only=True):
    """A condition on a value: against a threshold, or against the control's value times `relative_to_control`."""

    metric: Name
    is_: Direction = msgspec.field(name="is")
    threshold: float | None = None
    relative_to_control: float | None = None
    unit: Name
    for_blocks: HeldBlocks
    source: Said

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.relative_to_control is None):
            msg = "takes exactly one of threshold and relative_to_control"
            raise ValueError(msg)
        _finite("threshold", self.threshold)
        _finite("relative_to_control", self.relative_to_control)


Narrowed = Annotated[tuple[SingleArm, ...], Meta(max_length=10)]


class Harm(Compared, frozen=True, kw_only=True, tag_field="kind", tag="harm"):
    """The gain against control is below 0.

    Like any trigger it may hold only `where` other values of the treated arm say why: then it takes the place of the one without.
    """

    action: Action = "disable"
    severity: Severity | None = None
    where: Narrowed = ()


class BenefitGone(Compared, frozen=True, kw_only=True, tag_field="kind", tag="benefit_gone"):
    """The gain against control is below the minimum gain."""

    action: Action = "disable"
    severity: Severity | None = None
    where: Narrowed = ()


class PremiseLost(SingleArm, frozen=True, kw_only=True, tag_field="kind", tag="premise_lost"):
    """What makes the lever work is gone in the treated arm. Disables only where there is no control.

    `re_enable_at` is the value at which a recommendation made on this premise alone is taken back.
    """

    re_enable_at: float | None = None
    action: Action = "disable"
    severity: Severity | None = None
    where: Narrowed = ()


class FailureMode(Compared, frozen=True, kw_only=True, tag_field="kind", tag="failure_mode"):
    """The lever's new way to fail shows. Disables on its own.

    `re_enable_at` is the value at which that is over where there is no control, of a threshold.
    """

    re_enable_at: float | None = None
    action: Action = "disable"
    severity: Severity | None = None
    where: Narrowed = ()


class Quality(Compared, frozen=True, kw_only=True, tag_field="kind", tag="quality"):
    """Quality fell against the original. Disables on its own."""

    action: Action = "disable"
    severity: Severity | None = None
    where: Narrowed = ()


class Gate(Compared, frozen=True, kw_only=True):
    """A condition under which no more traffic is advised: while it holds, the lever is neither widened nor switched on again."""

    covers: Covered


class Advice(SingleArm, frozen=True, kw_only=True):
    """A condition on the treated arm under which people are told something that is no switch, such as the order of a prompt's parts."""

    advice: Said
    where: Narrowed = ()


Trigger = Harm | BenefitGone | PremiseLost | FailureMode | Quality
Condition = SingleArm | Compared  # a Gate is one of the second kind, an Advice one of the first
KINDS: tuple[type[Trigger], ...] = (Harm, BenefitGone, PremiseLost, FailureMode, Quality)


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One lever's whole causal chain and the numbers it is judged by. Ages and dwell in seconds, coverage 0..1.

    Of levers that interact, one that `goes_before` others is recommended first. A policy in `shadow` is judged and notifies nobody.
    """

    name: Name
    lever: Name
    owner: Line
    version: Version
    measured_bottleneck: MeasuredBottleneck
    enabling_condition: SingleArm
    receiving_budget: ReceivingBudget
    expected_benefit: ExpectedBenefit
    failure_mode: FailureModeWatch
    quality_gate: QualityGate
    disable_when: Annotated[tuple[Trigger, ...], Meta(min_length=1, max_length=40)]
    rollback: Rollback
    re_enable_when: Compared
    gates: Annotated[tuple[Gate, ...], Meta(max_length=40)] = ()
    advise_when: Annotated[tuple[Advice, ...], Meta(max_length=40)] = ()
    revalidates: OtherLevers = ()
    goes_before: OtherLevers = ()
    severity: Severity = "warning"
    shadow: bool = False
    minimum_blocks: JudgedBlocks = 6
    minimum_requests: Requests = 100
    minimum_coverage: Share = 0.9
    dwell_s: Dwell = 3600.0
    stale_after_s: Stale = 3600.0
    expires_after_s: Expiry = 86400.0


def kind_of(trigger: Trigger) -> str:
    """The kind as the file writes it: `harm`, `premise_lost`, ..."""
    return str(type(trigger).__struct_config__.tag)


def code_of(policy: Policy, trigger: Trigger) -> str:
    """The reason code of a trigger: its kind, with the metric where the policy has several; with a `where` the action too."""
    kind = kind_of(trigger)
    alike = [other for other in policy.disable_when if type(other) is type(trigger) and bool(other.where) == bool(trigger.where)]
    code = kind if len(alike) == 1 else f"{kind}.{trigger.metric}"
    return f"{code}.{trigger.action}" if trigger.where else code


def narrowest(triggers: Iterable[Trigger]) -> tuple[Trigger, ...]:
    """The triggers without those whose place one of the same kind and metric takes that says more of where it holds."""
    held = tuple(triggers)
    narrow = {(type(one), one.metric) for one in held if one.where}
    return tuple(one for one in held if one.where or (type(one), one.metric) not in narrow)


def _finite(key: str, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        msg = f"{key} takes a finite number, got {value}"
        raise ValueError(msg)
