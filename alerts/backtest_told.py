"""Judgments one by one in, what a back-test tells out: changes of verdict, recommendations, and what could not be told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from alerts import wording
from alerts.backtest_stretches import Stretch, Stretches, limits
from alerts.chain import Policy, PremiseLost, code_of, kind_of
from alerts.effects import BLOCKS_A_CYCLE, Effects, effect_name
from alerts.playing import Played
from alerts.streams import Key
from pipeline.metrics import judged

NOTED_BLOCKS = 12
NOT_WIDENED = "a live run may advise more traffic there; a back-test does not, since that asks for cells of a week before each moment"
_Watched = tuple[str, str, str, float]


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of a back-test: the stream that it is of. `segment` is JSON text of its keys."""

    policy: str
    lever: str
    segment: str


class Change(Row, frozen=True, kw_only=True):
    """A verdict other than the stream's last one."""

    verdict: str
    action: str
    decided_at: datetime
    reason: str


class Recommendation(Row, frozen=True, kw_only=True):
    """A time in which a lever was not to stay as it was; `ended_at` is None where that lasts, `state_after` what followed."""

    action: str
    severity: str
    shadow: bool
    reason_code: str
    reason: str
    fired_at: datetime
    ended_at: datetime | None = None
    state_after: str = ""


class Judged(Row, frozen=True, kw_only=True):
    """One stream: when it was judged, the blocks of each verdict, of undecided ones the commonest reason, and all of it in order."""

    first_block_at: datetime
    last_block_at: datetime
    blocks: int
    verdicts: dict[str, int]
    undecided_code: str = ""
    undecided_reason: str = ""
    stretches: tuple[Stretch, ...] = ()


class Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A replica of a segment that went without the lever: what operators did by themselves."""

    lever: str
    segment: str
    replica: str
    switched_at: datetime


class Backtest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What policies say of history. `notes` are sentences on what history cannot say."""

    changes: tuple[Change, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    streams: tuple[Judged, ...] = ()
    switches: tuple[Switch, ...] = ()
    notes: tuple[str, ...] = ()


class _Stream:
    """What is known of a stream so far."""

    def __init__(self, first_block_at: datetime) -> None:
        self.first_block_at = self.last_block_at = first_block_at
        self.blocks = 0
        self.verdicts: dict[str, int] = {}
        self.undecided: dict[str, tuple[int, str]] = {}
        self.verdict = ""
        self.stretches = Stretches()
        self.paid_blocks = 0


class Tally:
    """Adds up judgments, in their order, into a `Backtest`."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self._limits = {policy.name: limits(policy) for policy in policies}
        self._streams: dict[Key, _Stream] = {}
        self._changes: list[Change] = []
        self._open: dict[Key, Recommendation] = {}
        self._closed: list[Recommendation] = []
        self._seen: set[tuple[str, str]] = set()
        self._by_value: set[_Watched] = set()
        self._by_evidence: set[_Watched] = set()

    def add(self, played: Played) -> None:
        """Takes one judgment in."""
        key, said = played.key, played.judgment
        stream = self._streams.setdefault(key, _Stream(played.decided_at))
        if stream.verdict != said.verdict:
            stream.verdict = said.verdict
            self._changes.append(
                Change(**key._asdict(), verdict=said.verdict, action=said.action, decided_at=played.decided_at, reason=said.reason)
            )
        self._follow(played)
        stream.stretches.add(played, self._limits[played.policy.name])
        if played.effects is not None:
            self._count(stream, played)
            if stream.blocks <= NOTED_BLOCKS or stream.blocks % NOTED_BLOCKS == 0:  # reading all effects of all blocks takes its time
                self._note(played.policy, played.effects)

    def told(self) -> Backtest:
        """What came of all of them; a recommendation that still stands has no end."""
        found = sorted((*self._closed, *self._open.values()), key=lambda one: (one.fired_at, one.policy, one.segment))
        streams = tuple(_judged(key, stream) for key, stream in sorted(self._streams.items()))
        return Backtest(changes=tuple(self._changes), recommendations=tuple(found), streams=streams, notes=tuple(self._notes()))

    def _follow(self, played: Played) -> None:
        """Opens a recommendation where one is made, and closes it where the stream leaves its state or is advised something else."""
        key, said = played.key, played.judgment
        if key in self._open and (said.state != "off_recommended" or said.is_raised):
            self._closed.append(msgspec.structs.replace(self._open.pop(key), ended_at=played.decided_at, state_after=said.state))
        if said.state == "off_recommended" and key not in self._open:
            self._open[key] = Recommendation(
                **key._asdict(),
                action=said.action,
                severity=_severity(played),
                shadow=played.policy.shadow,
                reason_code=said.reason_code,
                reason=said.reason,
                fired_at=played.decided_at,
            )

    def _count(self, stream: _Stream, played: Played) -> None:
        said = played.judgment
        stream.blocks, stream.last_block_at = stream.blocks + 1, played.decided_at
        stream.paid_blocks += said.reason_code == "pays"
        stream.verdicts[said.verdict] = stream.verdicts.get(said.verdict, 0) + 1
        if said.verdict in ("insufficient", "frozen", "conflicted"):
            stream.undecided[said.reason_code] = (stream.undecided.get(said.reason_code, (0, ""))[0] + 1, said.reason)

    def _note(self, policy: Policy, effects: Effects) -> None:
        """Which metrics history has, and which premises would decide by their value, for want of evidence of their threshold."""
        self._seen.update((policy.name, metric) for metric in effects)
        benefit = effects.get(effect_name(policy.expected_benefit.metric))
        if benefit is None or benefit.controlled:
            return
        for premise in _premises(policy):
            effect = effects.get(premise.metric)
            if effect is not None:
                told = effect.is_lost(premise.threshold, above=premise.is_ == "above")
                held = self._by_value if told is None else self._by_evidence
                held.add((policy.name, premise.metric, premise.is_, premise.threshold))

    def _notes(self) -> Iterator[str]:
        for name, metric, is_, threshold in sorted(self._by_value - self._by_evidence):
            bound = wording.value(threshold, judged()[metric].unit)
            what = f"{name}: {wording.label(metric)} {is_} {bound}"
            yield f"{what}: history has no evidence of this threshold, since no policy named it then; it was judged by its value"
        paid = sum(stream.paid_blocks >= BLOCKS_A_CYCLE for stream in self._streams.values())
        if paid:
            yield f"{paid} streams paid for a day or more: {NOT_WIDENED}"
        for policy in self._policies if self._streams else ():
            for trigger in policy.disable_when:
                if (policy.name, effect_name(trigger.metric)) not in self._seen:
                    kind = kind_of(trigger)
                    what = f"the trigger {kind}" if kind == trigger.metric else f"the trigger {kind} of {trigger.metric}"
                    yield f"{policy.name}: {what} had no number in this history and could not fire"


def _premises(policy: Policy) -> list[PremiseLost]:
    return [trigger for trigger in policy.disable_when if isinstance(trigger, PremiseLost)]


def _severity(played: Played) -> str:
    """The severity of the trigger that fired, else the policy's."""
    policy = played.policy
    fired = (trigger.severity for trigger in policy.disable_when if code_of(policy, trigger) == played.judgment.reason_code)
    return next(fired, None) or policy.severity


def _judged(key: Key, stream: _Stream) -> Judged:
    code = max(stream.undecided, key=lambda one: stream.undecided[one][0], default="")
    return Judged(
        **key._asdict(),
        first_block_at=stream.first_block_at,
        last_block_at=stream.last_block_at,
        blocks=stream.blocks,
        verdicts=dict(sorted(stream.verdicts.items())),
        undecided_code=code,
        undecided_reason=stream.undecided[code][1] if code else "",
        stretches=stream.stretches.told(),
    )
