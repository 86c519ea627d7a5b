"""Silences: what an operator asks for in, a checked `Silence` out, and whether one holds a flip back from a receiver.

A silence holds back what recommends; judging goes on, and a receiver that was told of a recommendation is told when it is over.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from alerts.levers import LEVERS, unknown
from pipeline.segments import CELL_SEGMENT_KEYS

LONGEST = timedelta(days=30)
_LAST = datetime.max.replace(tzinfo=UTC)
Word = Annotated[str, Meta(min_length=1, max_length=500)]
Said = Annotated[str, Meta(max_length=2_000)]


class SilenceError(ValueError):
    """A silence that cannot be: says the key, what came and what is taken."""


class FlipKeys(NamedTuple):
    """What silences and receivers tell a flip by; `segment` as an object."""

    flip_id: str
    policy: str
    lever: str
    segment: Mapping[str, str]
    severity: str = "warning"


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A silence as it is asked for: at least one matcher, and either `ends_at` or `for_s` seconds. Times without offset are UTC."""

    lever: Word | None = None
    policy: Word | None = None
    segment: dict[str, Word] | None = None
    receiver: Word | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    for_s: Annotated[float, Meta(gt=0.0)] | None = None
    created_by: Said = ""
    comment: Said = ""


class Snooze(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How long one flip is held back, in seconds, and why."""

    for_s: Annotated[float, Meta(gt=0.0)]
    created_by: Said = ""
    comment: Said = ""


@dataclass(frozen=True, slots=True)
class Silence:
    """Who is not told of what, from when to when. A matcher that is None matches all; words may hold `*` and `?`."""

    silence_id: str
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    lever: str | None = None
    policy: str | None = None
    segment: Mapping[str, str] | None = None
    receiver: str | None = None
    flip_id: str | None = None
    created_by: str = ""
    comment: str = ""
    ended_at: datetime | None = None

    @property
    def over_at(self) -> datetime:
        """When it ends, or was ended."""
        return self.ends_at if self.ended_at is None else min(self.ends_at, self.ended_at)

    def state(self, now: datetime) -> str:
        """`pending`, `active` or `ended`."""
        if now >= self.over_at:
            return "ended"
        return "active" if now >= self.starts_at else "pending"

    def matches(self, flip: FlipKeys, receiver: str) -> bool:
        """Whether it is about a flip and a receiver, at whatever time."""
        pairs = ((self.flip_id, flip.flip_id), (self.lever, flip.lever), (self.policy, flip.policy), (self.receiver, receiver))
        keys = ((pattern, flip.segment.get(key)) for key, pattern in (self.segment or {}).items())
        return all(_fits(pattern, word) for pattern, word in (*pairs, *keys))


def planned(asked: Asked, now: datetime, receivers: Iterable[str] = ()) -> Silence:
    """The silence that is asked for; one that would have begun already begins now. `receivers` are the known ones, where they are known.

    Raises:
        SilenceError: no matcher, an unknown lever, key or receiver, or a time that cannot be.
    """
    _check_matchers(asked, tuple(receivers))
    starts_at = max(_in_utc(asked.starts_at) or now, now)
    given = [name for name in ("ends_at", "for_s") if getattr(asked, name) is not None]
    if len(given) != 1:
        msg = f"takes exactly one of ends_at and for_s, got {' and '.join(given) or 'none'}"
        raise SilenceError(msg)
    ends_at = _in_utc(asked.ends_at) or _after(starts_at, asked.for_s or 0.0)
    _check_times(starts_at, ends_at, now)
    kept = {name: getattr(asked, name) for name in ("lever", "policy", "segment", "receiver", "created_by", "comment")}
    return Silence(secrets.token_hex(16), starts_at, ends_at, now, **kept)


def snoozed(flip_id: str, asked: Snooze, now: datetime) -> Silence:
    """A silence over one flip, for every receiver.

    Raises:
        SilenceError: it would last too long.
    """
    ends_at = _after(now, asked.for_s)
    _check_times(now, ends_at, now)
    return Silence(secrets.token_hex(16), now, ends_at, now, flip_id=flip_id, created_by=asked.created_by, comment=asked.comment)


def holds(silences: Iterable[Silence], flip: FlipKeys, receiver: str, now: datetime) -> bool:
    """Whether a silence that lasts now is about a flip and a receiver."""
    return any(silence.state(now) == "active" and silence.matches(flip, receiver) for silence in silences)


def held_lately(silences: Iterable[Silence], flip: FlipKeys, receiver: str, now: datetime) -> bool:
    """Whether a silence that is over was about them; `silences` says how long ago it may be over."""
    return any(silence.state(now) == "ended" and silence.matches(flip, receiver) for silence in silences)


def _fits(pattern: str | None, word: str | None) -> bool:
    return pattern is None or (word is not None and fnmatchcase(word, pattern.replace("[", "[[]")))


def _check_matchers(asked: Asked, receivers: tuple[str, ...]) -> None:
    if not (asked.lever or asked.policy or asked.segment or asked.receiver):
        msg = 'a silence takes lever, policy, segment or receiver; lever "*" is all'
        raise SilenceError(msg)
    known = (("lever", asked.lever, LEVERS), ("receiver", asked.receiver, receivers))
    for what, word, words in known:
        if word is not None and words and not any(_fits(word, one) for one in words):
            raise SilenceError(unknown(what, word, words))
    for key in asked.segment or {}:
        if key not in CELL_SEGMENT_KEYS:
            raise SilenceError(unknown("segment key", key, CELL_SEGMENT_KEYS))


def _check_times(starts_at: datetime, ends_at: datetime, now: datetime) -> None:
    if ends_at <= starts_at:
        msg = f"it ends at {ends_at.isoformat()}; a time after its start, {starts_at.isoformat()}, is taken"
        raise SilenceError(msg)
    if ends_at - starts_at > LONGEST or starts_at - now > LONGEST:
        msg = f"from {starts_at.isoformat()} to {ends_at.isoformat()}; at most {LONGEST.days} days are taken, and a start within as many"
        raise SilenceError(msg)


def _after(moment: datetime, seconds: float) -> datetime:
    length = min(timedelta(seconds=min(seconds, 1e9)), 2 * LONGEST)
    return moment + length if moment <= _LAST - length else _LAST


def _in_utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo:
        return moment
    return moment.replace(tzinfo=UTC)
