"""Dialect files in (`engines/*.toml`), checked definitions out: which spans an engine sends and what their attributes mean."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from fnmatch import translate as glob_pattern
from importlib import resources
from typing import Literal, TypeVar

import msgspec
import polars as pl

from collectors.signals import FACTORS, SIGNALS, TEXT_UNITS

Kind = TypeVar("Kind")
Role = Literal["engine", "gateway", "client", "body", "stage", "housekeeping"]
OUTCOMES = ("ok", "error", "aborted", "unknown")


class DialectError(ValueError):
    """A dialect file says something that cannot be read; the file and the key are named."""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One attribute that carries a signal, and the unit it arrives in."""

    key: str
    unit: str


class Where(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on an attribute's text."""

    key: str
    pattern: str


class SpanRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which spans of a dialect play which role; the first rule that fits decides."""

    role: Role
    names: tuple[str, ...] = ()
    pattern: str = ""
    scopes: tuple[str, ...] = ()
    where: Where | None = None
    phase: Literal["", "prefill", "decode"] = ""
    gives: str = ""

    def name_pattern(self) -> str:
        """A regular expression over span names."""
        return self.pattern or any_of(self.names)


class FirstToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The span events that mark the first token."""

    events: tuple[str, ...]


class Dialect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One engine's, gateway's or client convention's way of saying things."""

    dialect: str
    scopes: tuple[str, ...]
    spans: tuple[SpanRule, ...]
    signals: dict[str, tuple[Source, ...]]
    cannot: dict[str, str]
    order: int = 50
    has: tuple[str, ...] = ()
    outcomes: dict[str, str] = {}
    first_token: FirstToken | None = None


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
    """The attributes that hold prompt or completion text."""

    keys: tuple[str, ...]


class Deployment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the deployment says about every span, whatever its dialect."""

    signals: dict[str, tuple[Source, ...]]
    replica: Replica
    prefixes: Prefixes
    marks: Marks
    content: Content


def any_of(globs: Iterable[str]) -> str:
    """One regular expression for a list of names, `*` standing for anything."""
    return "|".join(f"(?:{re.escape(glob).replace(chr(92) + '*', '.*')})" for glob in globs).join(("(?s)^(?:", ")$"))


@functools.cache
def shipped() -> tuple[Dialect, ...]:
    """Every dialect in `engines/`, in the order they are tried.

    Raises:
        DialectError: a file that cannot be read.
    """
    folder = resources.files("collectors") / "engines"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".toml") and entry.name != "deployment.toml")
    dialects = [load(name, (folder / name).read_bytes()) for name in names]
    return tuple(sorted(dialects, key=lambda dialect: (dialect.order, dialect.scopes == ("*",), dialect.dialect)))


@functools.cache
def deployment() -> Deployment:
    """The facts read from every span (`engines/deployment.toml`)."""
    name = "deployment.toml"
    text = (resources.files("collectors") / "engines" / name).read_bytes()
    facts = _decode(name, text, Deployment)
    _check_signals(name, facts.signals)
    return facts


def load(name: str, text: bytes) -> Dialect:
    """A dialect from the text of its file.

    Raises:
        DialectError: names the file, the key, what came and what is taken.
    """
    dialect = _decode(name, text, Dialect)
    _check_signals(name, dialect.signals)
    _check_outcomes(name, dialect.outcomes)
    for signal in dialect.cannot:
        _check_known(f"engines/{name}: cannot", signal)
    for index, rule in enumerate(dialect.spans):
        _check_pattern(name, f"spans[{index}]: pattern", rule.name_pattern())
        if rule.where is not None:
            _check_pattern(name, f"spans[{index}]: where.pattern", rule.where.pattern)
        if rule.gives and SIGNALS.get(rule.gives) != "real":
            msg = f"engines/{name}: spans[{index}]: gives {rule.gives!r} is no time; known: {', '.join(_times())}"
            raise DialectError(msg)
    return dialect


def content_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """A compiled pattern for the keys that hold prompt or completion text."""
    return re.compile("|".join(glob_pattern(key) for key in keys))


def _decode(name: str, text: bytes, kind: type[Kind]) -> Kind:
    try:
        return msgspec.toml.decode(text, type=kind)
    except msgspec.DecodeError as error:
        msg = f"engines/{name}: {error}"
        raise DialectError(msg) from error


def _check_signals(name: str, signals: dict[str, tuple[Source, ...]]) -> None:
    for signal, sources in signals.items():
        _check_known(f"engines/{name}", signal)
        taken = TEXT_UNITS if SIGNALS[signal] == "text" else tuple(FACTORS)
        for source in sources:
            if source.unit not in taken:
                msg = f"engines/{name}: signal {signal!r}: unit {source.unit!r} of {source.key!r}; taken: {', '.join(taken)}"
                raise DialectError(msg)


def _check_known(where: str, signal: str) -> None:
    if signal not in SIGNALS:
        near = difflib.get_close_matches(signal, SIGNALS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        msg = f"{where}: signal {signal!r} is unknown{hint}; known: {', '.join(SIGNALS)}"
        raise DialectError(msg)


def _check_outcomes(name: str, outcomes: dict[str, str]) -> None:
    for word, outcome in outcomes.items():
        if outcome not in OUTCOMES:
            msg = f"engines/{name}: outcomes: {outcome!r} of {word!r}; taken: {', '.join(OUTCOMES)}"
            raise DialectError(msg)
        if word != word.lower():
            msg = f"engines/{name}: outcomes: {word!r} never fits: an engine's word is read in lower case"
            raise DialectError(msg)


def _check_pattern(name: str, key: str, pattern: str) -> None:
    try:
        pl.Series([""]).str.contains(pattern)  # by the engine that will use it: it knows no look-around
    except pl.exceptions.ComputeError as error:
        reason = str(error).partition("\n\n")[0].rpartition("error: ")[2]
        msg = f"engines/{name}: {key} {pattern!r}: {reason}"
        raise DialectError(msg) from error


def _times() -> list[str]:
    return [signal for signal, kind in SIGNALS.items() if kind == "real"]
