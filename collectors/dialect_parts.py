"""The parts of a dialect file, typed: what `engines/*.toml` may say, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

Role = Literal["engine", "gateway", "client", "body", "log", "stage", "duplicate", "housekeeping"]
Place = Literal["span", "resource"]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One attribute that carries a signal, and the unit it arrives in.

    `pattern` has one group: the part of the text that is meant. `missing` is the number that stands for none. `since` and `until`
    (exclusive) are versions between which the key has this meaning. `absent` is the number that a sender means by leaving the key out of a
    span that has the key `beside`.
    """

    key: str
    unit: str
    of: Place = "span"
    pattern: str = ""
    missing: float | None = None
    since: str = ""
    until: str = ""
    absent: float | None = None
    beside: str = ""


class Where(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on an attribute's text."""

    key: str
    pattern: str
    of: Place = "span"


class SpanRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which spans of a dialect play which role; the first rule that fits decides. All of `where` must hold."""

    role: Role
    names: tuple[str, ...] = ()
    pattern: str = ""
    scopes: tuple[str, ...] = ()
    kind: Literal["", "internal", "server", "client", "producer", "consumer"] = ""
    where: Where | tuple[Where, ...] = ()
    phase: Literal["", "prefill", "decode"] = ""
    gives: str = ""

    def name_pattern(self) -> str:
        """A regular expression over span names."""
        return self.pattern or any_of(self.names)

    def conditions(self) -> tuple[Where, ...]:
        """The conditions, however many were written."""
        return (self.where,) if isinstance(self.where, Where) else self.where


class Also(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Further spans that speak a dialect: of these scopes, with all these attributes, where all of this holds."""

    scopes: tuple[str, ...]
    has: tuple[str, ...] = ()
    where: tuple[Where, ...] = ()


class EventRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signal that events of a span carry.

    `take` says how: `first` (the value of `key` of the earliest), `count` (how many there are), `offset` (seconds from the span's start
    to the earliest), `between` (seconds from the earliest to the last of `until`).
    """

    names: tuple[str, ...]
    signal: str
    take: Literal["first", "count", "offset", "between"]
    key: str = ""
    unit: str = ""
    until: tuple[str, ...] = ()
    where: Where | None = None


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a span's version is known: by its scope's name (the oldest version that has it), else by what a resource attribute says."""

    scopes: dict[str, str] = {}
    resource: str = ""


class Dialect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One engine's, gateway's or client convention's way of saying things.

    A span speaks it if its scope is one of `scopes` and it has all attributes of `has`, or if one of `also` fits. `speaks_for` is the
    engine whose words these are, where it has another dialect beside. `sampling` says which share of requests it sends at all,
    `of_one` which signals it says only where one answer was asked for, and why.
    """

    dialect: str
    scopes: tuple[str, ...]
    spans: tuple[SpanRule, ...]
    signals: dict[str, tuple[Source, ...]]
    cannot: dict[str, str]
    title: str = ""
    versions: str = ""
    order: int = 50
    has: tuple[str, ...] = ()
    also: tuple[Also, ...] = ()
    version: Version = Version()
    events: tuple[EventRule, ...] = ()
    outcomes: dict[str, str] = {}
    speaks_for: str = ""
    sampling: str = ""
    of_one: dict[str, str] = {}


class Replica(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes that name a replica, first that speaks wins."""

    keys: tuple[str, ...]


class Prefixes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attribute prefixes of lever settings and arms."""

    own: str
    levers: str
    arms: str


class Marks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arms and levers there are."""

    arms: tuple[str, ...]
    levers: tuple[str, ...]


class Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes that hold prompt or completion text: those listed, and those whose last word says so and no word says "how many"."""

    keys: tuple[str, ...]
    last_words: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the deployment says about every span, whatever its dialect; `dialect` is the attribute that forces one."""

    signals: dict[str, tuple[Source, ...]]
    replica: Replica
    prefixes: Prefixes
    marks: Marks
    content: Content
    dialect: str = "leverwatch.dialect"
    cannot: dict[str, str] = {}


def any_of(globs: Iterable[str]) -> str:
    """One regular expression for a list of names, `*` standing for anything."""
    return "|".join(f"(?:{re.escape(glob).replace(chr(92) + '*', '.*')})" for glob in globs).join(("(?s)^(?:", ")$"))


def version_key(text: str) -> int:
    """A version as a number that orders it: `0.16` before `0.16.1`; -1 where the text is none."""
    found = re.match(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?", text)
    if found is None:
        return -1
    major, minor, patch = (min(int(part or 0), 99_999) for part in found.groups())
    return (major * 100_000 + minor) * 100_000 + patch
