"""Dialect files in (`engines/*.toml`), checked definitions out: which spans an engine sends and what their attributes mean."""

from __future__ import annotations

import difflib
import functools
import re
from fnmatch import translate as glob_pattern
from importlib import resources
from typing import TypeVar

import msgspec
import polars as pl

from collectors.dialect_parts import Deployment, Dialect, EventRule, Source, SpanRule, Where, version_key
from collectors.signals import FACTORS, SIGNALS, TEXT_UNITS

__all__ = ["OUTCOMES", "Deployment", "Dialect", "DialectError", "content_pattern", "deployment", "load", "shipped", "why_missing"]

Kind = TypeVar("Kind")
OUTCOMES = ("ok", "error", "aborted", "unknown")


class DialectError(ValueError):
    """A dialect file says something that cannot be read; the file and the key are named."""


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
    for signal in facts.cannot:
        _check_known(f"engines/{name}: cannot", signal)
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
    for signal in dialect.of_one:
        _check_known(f"engines/{name}: of_one", signal)
    for index, rule in enumerate(dialect.spans):
        _check_rule(name, f"spans[{index}]", rule)
    for index, also in enumerate(dialect.also):
        _check_conditions(name, f"also[{index}]", also.where)
    for index, event in enumerate(dialect.events):
        _check_event(name, f"events[{index}]", event)
    return dialect


def why_missing(stored: str) -> dict[str, str]:
    """Signal -> why requests of an engine lack it and what brings it; `stored` is the name that `spans.dialect` and `requests.engine` have.

    What the dialect itself says comes before what holds for any sender.
    """
    found = dict(deployment().cannot)
    named = [dialect for dialect in shipped() if stored in (dialect.dialect, dialect.speaks_for)]
    for dialect in sorted(named, key=lambda dialect: dialect.dialect == stored):
        found.update(dialect.cannot)
    return found


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
        for source in sources:
            _check_unit(f"engines/{name}: signal {signal!r}", signal, source.unit, source.key)
            if source.pattern:
                _check_pattern(name, f"signal {signal!r}: pattern", source.pattern)
                if re.compile(source.pattern).groups != 1:
                    msg = f"engines/{name}: signal {signal!r}: pattern {source.pattern!r} of {source.key!r} has not one group"
                    raise DialectError(msg)
            _check_absent(f"engines/{name}: signal {signal!r}", signal, source)
            _check_version(f"engines/{name}: signal {signal!r}: since", source.since)
            _check_version(f"engines/{name}: signal {signal!r}: until", source.until)


def _check_unit(where: str, signal: str, unit: str, key: str) -> None:
    taken = TEXT_UNITS if SIGNALS[signal] == "text" else tuple(FACTORS)
    if unit not in taken:
        msg = f"{where}: unit {unit!r} of {key!r}; taken: {', '.join(taken)}"
        raise DialectError(msg)


def _check_absent(where: str, signal: str, source: Source) -> None:
    if (source.absent is None) != (not source.beside):
        msg = f"{where}: 'absent' of {source.key!r} needs 'beside', the key that shows that it was left out, and the other way round"
        raise DialectError(msg)
    if source.absent is not None and (SIGNALS[signal] == "text" or source.of != "span"):
        msg = f"{where}: 'absent' of {source.key!r} is a number, of an attribute of the span itself"
        raise DialectError(msg)


def _check_known(where: str, signal: str) -> None:
    if signal not in SIGNALS:
        near = difflib.get_close_matches(signal, SIGNALS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        msg = f"{where}: signal {signal!r} is unknown{hint} known: {', '.join(SIGNALS)}"
        raise DialectError(msg)


def _check_version(where: str, text: str) -> None:
    if text and version_key(text) < 0:
        msg = f"{where}: {text!r} is no version; taken: numbers such as 0.16 or 0.5.9"
        raise DialectError(msg)


def _check_rule(name: str, where: str, rule: SpanRule) -> None:
    _check_pattern(name, f"{where}: pattern", rule.name_pattern())
    _check_conditions(name, where, rule.conditions())
    if rule.gives:
        _check_time(name, where, "gives", rule.gives)


def _check_event(name: str, where: str, event: EventRule) -> None:
    _check_known(f"engines/{name}: {where}", event.signal)
    _check_conditions(name, where, () if event.where is None else (event.where,))
    if event.take == "first":
        _check_unit(f"engines/{name}: {where}: signal {event.signal!r}", event.signal, event.unit, event.key)
    elif event.take != "count":
        _check_time(name, where, "signal", event.signal)
    if event.take == "between" and not event.until:
        msg = f"engines/{name}: {where}: take 'between' needs `until`, the events that end it"
        raise DialectError(msg)


def _check_conditions(name: str, where: str, conditions: tuple[Where, ...]) -> None:
    for condition in conditions:
        _check_pattern(name, f"{where}: where.pattern", condition.pattern)


def _check_time(name: str, where: str, what: str, signal: str) -> None:
    if SIGNALS.get(signal) != "real":
        msg = f"engines/{name}: {where}: {what} {signal!r} is no time; known: {', '.join(_times())}"
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
