"""Cases beside a policy: a TOML file of small inputs and what is expected of them in, whether each expectation holds out.

[usual.net_itl_s]                     # what every block has, unless a case says otherwise
gain = [0.05, 0.15]                   # the interval; or one number, or [low, gain, high]

[[cases]]
name = "harm for three blocks recommends"
[[cases.play]]
blocks = 3
effects.net_itl_s = { gain = [-0.22, -0.09] }
[[cases.expect]]                      # at a block counted from 1, or at the last one
verdict = "disable"
state = "off_recommended"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from alerts import policy
from alerts.carried import CARRIED
from alerts.case_effects import Given, effect
from alerts.chain import Policy
from alerts.check import LISTING
from alerts.levers import Action, State, Verdict, unknown_of_many
from alerts.playing import Play, Played
from alerts.standing import NOTHING_SEEN, Seen
from alerts.streams import BLOCK, Block

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)
SEGMENT = '{"model":"case"}'
OTHER = '{"model":"other"}'  # a stream that goes on where the case's own has no data
MOST_BLOCKS = 10_000
Count = Annotated[int, Meta(ge=1, le=MOST_BLOCKS)]
Text = Annotated[str, Meta(min_length=1)]


class CaseError(ValueError):
    """A file of cases that cannot be used: names the file, the key and what is taken."""


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is known of a stream beside its effects; see `alerts.standing.Seen`."""

    in_use: bool | None = None
    setting: str | None = None
    quality: str = NOTHING_SEEN.quality
    quality_doubt: bool = False

    def seen(self) -> Seen:
        """The same, as judging takes it."""
        return Seen(in_use=self.in_use, setting=self.setting, quality=self.quality, quality_doubt=self.quality_doubt)


class Stretch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Blocks that are alike. `without` lists metrics that are not measured in them; with `is_silent` there is no data at all."""

    blocks: Count = 1
    effects: dict[str, Given] = {}
    without: tuple[str, ...] = ()
    known: Beside = Beside()
    is_silent: bool = False


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is to be said at a block, counted from 1; at the last where none is named. Only what is stated is held against it."""

    at: Count | None = None
    verdict: Verdict | None = None
    action: Action | None = None
    reason_code: Text | None = None
    state: State | None = None
    reason_has: Text | None = None
    reason_lacks: Text | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, name) is None for name in self.__struct_fields__ if name != "at"):
            msg = "an expectation takes one at least of verdict, action, reason_code, state, reason_has, reason_lacks"
            raise ValueError(msg)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One input, and what is expected of it."""

    name: Text
    play: Annotated[tuple[Stretch, ...], Meta(min_length=1)]
    expect: Annotated[tuple[Expected, ...], Meta(min_length=1)]
    because: str = ""

    def blocks(self) -> int:
        """How many blocks it plays."""
        return sum(stretch.blocks for stretch in self.play)


class Cases(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cases of a policy, and what is usual in all of them."""

    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]
    usual: dict[str, Given] = {}


class Failed(NamedTuple):
    """An expectation that does not hold: at which block, what was expected and what came, and why it came."""

    at: int
    expected: Mapping[str, str]
    got: Mapping[str, str]
    reason: str

    def text(self) -> str:
        """`block 3: expected verdict disable, got keep: net ITL ...`."""
        told = "; ".join(f"expected {name} {value!r}, got {self.got[name]!r}" for name, value in self.expected.items())
        return f"block {self.at}: {told}; {self.reason}"


def parse(text: str, where: str) -> Cases:
    """The cases of a TOML text.

    Raises:
        CaseError: it is not TOML, a key is unknown or lacks, or an effect is of no metric.
    """
    try:
        found = msgspec.convert(policy.table(text), Cases)
    except (msgspec.ValidationError, policy.TomlError) as error:
        msg = f"{where}: {error}"
        raise CaseError(msg) from error
    for key, metric in _metrics(found):
        if metric not in CARRIED:
            msg = f"{where}: {key}: {unknown_of_many('metric', metric, CARRIED, LISTING)}"
            raise CaseError(msg)
    for case in found.cases:
        _check(case, f"{where}: {case.name!r}")
    return found


def failures(policy: Policy, case: Case, usual: Mapping[str, Given]) -> list[Failed]:
    """What of a case does not hold; nothing where all of it does."""
    play = Play([policy])
    said: dict[int, Played] = {}
    for number, (block, seen) in enumerate(_blocks(policy, case, usual), 1):
        for played in play.at(block.until, play.dues([block], seen)):
            if played.key.segment == SEGMENT:
                said[number] = played
    return [failed for expected in case.expect if (failed := _failed(expected, said, case.blocks()))]


def _failed(expected: Expected, said: Mapping[int, Played], last: int) -> Failed | None:
    """A block of which nothing was said stands where the one before it stood."""
    at = expected.at or last
    reached = max((number for number in said if number <= at), default=None)
    if reached is None:
        return Failed(at, {"verdict": expected.verdict or "some"}, {"verdict": "none"}, "nothing was judged up to this block")
    judgment = said[reached].judgment
    got = {name: str(getattr(judgment, name)) for name in ("verdict", "action", "reason_code", "state")}
    wanted = {name: value for name in got if (value := getattr(expected, name)) is not None and value != got[name]}
    if expected.reason_has is not None and expected.reason_has not in judgment.reason:
        wanted, got = wanted | {"reason_has": expected.reason_has}, got | {"reason_has": "a reason without it"}
    if expected.reason_lacks is not None and expected.reason_lacks in judgment.reason:
        wanted, got = wanted | {"reason_lacks": expected.reason_lacks}, got | {"reason_lacks": "a reason that has it"}
    return Failed(at, wanted, got, judgment.reason) if wanted else None


def _blocks(policy: Policy, case: Case, usual: Mapping[str, Given]) -> Iterator[tuple[Block, Seen]]:
    """The case's blocks in order, with what else is known at each; where it is silent, another stream goes on, so that time passes."""
    until = BEGAN
    for stretch in case.play:
        given = {name: value for name, value in {**usual, **_over(usual, stretch)}.items() if name not in stretch.without}
        for _ in range(stretch.blocks):
            until += BLOCK
            found = {name: effect(name, value, until) for name, value in given.items()}
            yield Block(policy.lever, OTHER if stretch.is_silent else SEGMENT, until, found), stretch.known.seen()


def _over(usual: Mapping[str, Given], stretch: Stretch) -> dict[str, Given]:
    """What a stretch says of its effects, over what is usual of the same ones."""
    return {name: value.over(usual[name]) if name in usual else value for name, value in stretch.effects.items()}


def _metrics(found: Cases) -> Iterator[tuple[str, str]]:
    yield from (("usual", name) for name in found.usual)
    for case in found.cases:
        for number, stretch in enumerate(case.play):
            yield from ((f"{case.name!r}: play[{number}]", name) for name in (*stretch.effects, *stretch.without))


def _check(case: Case, where: str) -> None:
    if case.blocks() > MOST_BLOCKS:
        msg = f"{where}: plays {case.blocks()} blocks; at most {MOST_BLOCKS} are taken"
        raise CaseError(msg)
    for expected in case.expect:
        if (expected.at or 1) > case.blocks():
            msg = f"{where}: expects something at block {expected.at}, and plays {case.blocks()}"
            raise CaseError(msg)
