"""`levers.csv` in (`replica,from_time,until_time,key,value`), what each replica was at each moment out."""

from __future__ import annotations

import csv
import difflib
import io
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from collectors import dialects
from collectors.dialect_parts import Deployment
from collectors.signals import SIGNALS

HEADER = ["replica", "from_time", "until_time", "key", "value"]
ALWAYS_NS, FOREVER_NS = 0, (1 << 63) - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
POOLS = ("prefill", "decode")
Value = str | float

log = logging.getLogger("leverwatch")


class RegistryError(ValueError):
    """A registry or a default cannot be used; names the file and line or the key, what came and what is taken."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what a replica was from a time (inclusive) until another (exclusive), in nanoseconds since 1970."""

    line: int
    replica: str
    from_ns: int
    until_ns: int
    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class Registry:
    """What replicas were. `timeline` has one row per replica and change: `replica`, `since_ns`, and a column per key, null where unsaid."""

    timeline: pl.DataFrame

    @property
    def keys(self) -> list[str]:
        """The keys that any line states."""
        return self.timeline.columns[2:]


class RegistryFile:
    """A registry that is read again when its file changes. A broken new version is said, and the old one stays in force."""

    def __init__(self, path: Path, facts: Deployment) -> None:
        """Reads the file.

        Raises:
            RegistryError: it cannot be read, or a line of it cannot be used.
        """
        self._path, self._facts = path, facts
        self.problem = ""
        self._seen = self._stamp()
        self._registry = self._read()

    def current(self) -> Registry:
        """The newest version that can be used."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._registry, self.problem = self._read(), ""
                log.info("%s was read again", self._path)
            except RegistryError as error:
                self.problem = f"{error}; the version before stays in force"
                log.warning("%s", self.problem)
        return self._registry

    def _read(self) -> Registry:
        try:
            text = self._path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{self._path}: {error.strerror if isinstance(error, OSError) else 'is no UTF-8 text'}"
            raise RegistryError(msg) from error
        return parse(text, self._facts, str(self._path))

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def parse(text: str, facts: Deployment, where: str) -> Registry:
    """The registry that a CSV text states.

    Raises:
        RegistryError: names `where` and the line.
    """
    rows = list(_rows(text, facts, where))
    _refuse_overlaps(rows, where)
    return Registry(_timeline(rows))


def checked(key: str, value: object, facts: Deployment, where: str) -> tuple[str, Value]:
    """A key of the deployment without prefix, and its value in the type of its signal.

    Raises:
        RegistryError: the key or the value is none; the nearest known one is named.
    """
    short = key.removeprefix(facts.prefixes.own)
    text = str(value).strip()
    levers = [f"{kind}.{lever}" for kind in ("lever", "arm") for lever in facts.marks.levers]
    known = [*facts.signals, "dialect", *levers]
    if short not in known:
        names = ", ".join((*facts.signals, "dialect", "lever.<name>", "arm.<name>"))
        msg = f"{where}: key {key!r} is unknown{_nearest(short, known) or ';'} known: {names}"
        raise RegistryError(msg)
    taken = _taken(short, facts)
    if not text or (taken and text not in taken):
        msg = f"{where}: {key} = {text!r}{_nearest(text, taken) or ';'} taken: {', '.join(taken) or 'a text that is not empty'}"
        raise RegistryError(msg)
    return short, _number(key, text, where) if SIGNALS.get(short, "text") != "text" else text


def _taken(key: str, facts: Deployment) -> tuple[str, ...]:
    """The words that a key takes; none where it takes any."""
    if key == "dialect":
        return tuple(dialect.dialect for dialect in dialects.shipped())
    return facts.marks.arms if key.startswith("arm.") else POOLS if key == "pool" else ()


def _rows(text: str, facts: Deployment, where: str) -> Iterable[Row]:
    lines = csv.reader(io.StringIO(text), strict=True)
    try:
        head = next(lines, [])
        if [name.strip() for name in head] != HEADER:
            msg = f"{where}: line 1: {','.join(head)!r}: the header {','.join(HEADER)} is taken"
            raise RegistryError(msg)
        for cells in lines:
            at = f"{where}: line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(HEADER):
                msg = f"{at}: {len(cells)} cells: {len(HEADER)} are taken, {','.join(HEADER)}"
                raise RegistryError(msg)
            replica, since, until, key, value = (cell.strip() for cell in cells)
            yield _row(lines.line_num, at, replica, (since, until), checked(key, value, facts, at))
    except csv.Error as error:
        msg = f"{where}: line {lines.line_num}: {error}"
        raise RegistryError(msg) from error


def _row(line: int, at: str, replica: str, period: tuple[str, str], said: tuple[str, Value]) -> Row:
    if not replica:
        msg = f"{at}: replica is empty: a replica's name is taken"
        raise RegistryError(msg)
    from_ns, until_ns = _instant(at, "from_time", period[0], ALWAYS_NS), _instant(at, "until_time", period[1], FOREVER_NS)
    if until_ns <= from_ns:
        msg = f"{at}: until_time {period[1]!r} is not after from_time {period[0]!r}"
        raise RegistryError(msg)
    return Row(line, replica, from_ns, until_ns, *said)


def _instant(at: str, name: str, text: str, empty_ns: int) -> int:
    if not text:
        return empty_ns
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{at}: {name} {text!r}: ISO 8601 such as 2026-11-29T12:00:00Z is taken, or nothing for always"
        raise RegistryError(msg) from error
    passed = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    return (passed.days * 86_400 + passed.seconds) * 1_000_000_000 + passed.microseconds * 1000


def _refuse_overlaps(rows: list[Row], where: str) -> None:
    last: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: (row.from_ns, row.line)):
        before = last.get((row.replica, row.key))
        if before is not None and before.until_ns > row.from_ns:
            first, second = sorted((before.line, row.line))
            msg = f"{where}: lines {first} and {second} both say {row.key} of {row.replica!r} for the same time; an until_time ends one"
            raise RegistryError(msg)
        last[row.replica, row.key] = row


def _timeline(rows: list[Row]) -> pl.DataFrame:
    """One row per replica and moment at which something begins or ends, sorted by time."""
    changes: dict[str, dict[int, list[tuple[bool, Row]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        changes[row.replica][row.from_ns].append((True, row))
        if row.until_ns != FOREVER_NS:
            changes[row.replica][row.until_ns].append((False, row))
    keys = sorted({row.key for row in rows})
    found = [
        {"replica": replica, "since_ns": since_ns, **valid} for replica, of in changes.items() for since_ns, valid in _states(of, keys)
    ]
    schema: dict[str, type[pl.DataType]] = {"replica": pl.String, "since_ns": pl.Int64}
    schema.update({key: pl.String if SIGNALS.get(key, "text") == "text" else pl.Float64 for key in keys})
    return pl.DataFrame(found, schema=schema).sort("since_ns")


def _states(of: Mapping[int, list[tuple[bool, Row]]], keys: list[str]) -> Iterable[tuple[int, dict[str, Value | None]]]:
    valid: dict[str, Value | None] = dict.fromkeys(keys)
    for since_ns in sorted(of):
        for begins, row in sorted(of[since_ns], key=lambda change: change[0]):  # what ends at a moment ends before what begins
            valid[row.key] = row.value if begins else None
        yield since_ns, dict(valid)


def _number(key: str, text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        msg = f"{where}: {key} = {text!r}: a number from 0 on is taken"
        raise RegistryError(msg)
    return number


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
