"""The URL of a comparison in, two sets of requests out: in words, and as conditions over columns of `requests`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from dashboards.choice import ANY, FILTER_KEYS, Choice, ChoiceError, details, title
from dashboards.compared import Comparison
from pipeline.segments import ARMS, LEVERS
from queries import conditions, explain
from queries.report import moment

KEYS = (*FILTER_KEYS, "replica")
OWN = (*KEYS, "arm", "slow", "since", "until", "where")
SLOW = ("ttft_s", "tpot_s", "e2e_s", "queue_s")
SETS = ("a", "b")


@dataclass(frozen=True)
class Set:
    """One set: what the URL says of it, and the time it is of."""

    name: str
    told: Mapping[str, str]
    since: datetime
    until: datetime

    @property
    def words(self) -> str:
        """The set for reading; `the rest` where nothing is said of it."""
        keys = {key: self.told[key] for key in FILTER_KEYS if key in self.told}
        said = [title(keys)] if "model" in keys else details(keys)
        said += [f"replica {self.told['replica'] or 'unknown'}"] if "replica" in self.told else []
        if "arm" in self.told:
            arm, _, lever = self.told["arm"].partition(":")
            said.append(f"{lever.replace('_', ' ')} {arm.replace('_', ' ')}")
        said += [f"the slowest 5 % by {self.told['slow']}"] if "slow" in self.told else []
        said += [self.told["where"]] if "where" in self.told else []
        if "since" in self.told or "until" in self.told:
            said.append(f"{self.since:%m-%d %H:%M} to {self.until:%m-%d %H:%M} UTC")
        return ", ".join(said) or "the rest"

    @property
    def condition(self) -> str:
        """The set over columns of `requests`, without its time; empty where nothing is said."""
        parts = [equals(key, self.told[key]) for key in KEYS if key in self.told]
        parts += [explain.named_set(self.told["arm"])] if "arm" in self.told else []
        parts += [explain.named_set(f"slow:{self.told['slow']}")] if "slow" in self.told else []
        parts += [f"({self.told['where']}\n)"] if "where" in self.told else []
        return " and ".join(parts)


@dataclass(frozen=True)
class TwoSets:
    """Both sets, what both are narrowed to, and the period that they lie in."""

    a: Set
    b: Set
    chosen: Choice

    @property
    def comparison(self) -> Comparison:
        """As it is asked. The time of a set is part of its condition where the other's is another."""
        since, until = min(self.a.since, self.b.since), max(self.a.until, self.b.until)
        a, b = (_timed(one, since, until) for one in (self.a, self.b))
        where = " and ".join(equals(key, value) for key, value in self.chosen.keys.items()) or None
        return Comparison(self.key, a or "true", b or None, where, since, until)

    @property
    def key(self) -> str:
        """The URL's own words: what is asked again and again while time goes on is one question."""
        told = [(f"{one.name}.{name}", value) for one in (self.a, self.b) for name, value in one.told.items()]
        return repr(sorted([*told, *self.chosen.query.items()]))

    @property
    def query(self) -> dict[str, str]:
        """What the URL says of the sets."""
        return {f"{one.name}.{name}": value for one in (self.a, self.b) for name, value in one.told.items()}


def two_sets(query: Mapping[str, str], chosen: Choice) -> TwoSets | None:
    """The sets of a URL; those of its lever's arms where it names a lever and no set; None where it names neither.

    Raises:
        ChoiceError, queries.report.ReportError: a set, a lever, an arm or a time cannot be used.
    """
    told = {name: value for name, value in query.items() if name.partition(".")[0] in SETS and "." in name and value != ANY}
    told = {name: value for name, value in told.items() if value or name.partition(".")[2] in KEYS}
    if not told and chosen.lever:
        told = {"a.arm": f"treated:{chosen.lever}", "b.arm": f"control:{chosen.lever}"}
    if not told:
        return None
    of = {name: {key.removeprefix(f"{name}."): value for key, value in told.items() if key.startswith(f"{name}.")} for name in SETS}
    sets = {name: _set(name, of[name], chosen) for name in SETS}
    if not sets["a"].told:
        msg = "set A is empty: say what it holds, such as a.model=chat-70b; a set B alone is compared with nothing"
        raise ChoiceError(msg)
    return TwoSets(sets["a"], sets["b"], chosen)


def equals(key: str, value: str) -> str:
    """The condition that a column has a value; "" is one that is not known."""
    return f"{key} = '{value.replace(chr(39), 2 * chr(39))}'" if value else f"{key} is null"


def _set(name: str, told: Mapping[str, str], chosen: Choice) -> Set:
    for key in told:
        if key not in OWN:
            near = difflib.get_close_matches(key, OWN, 1, 0.5)
            meant = f"did you mean '{name}.{near[0]}'? " if near else ""
            msg = f"key '{name}.{key[:40]}' is unknown; {meant}known: {', '.join(f'{name}.{one}' for one in OWN)}"
            raise ChoiceError(msg)
    _refuse(name, told)
    until = moment(told["until"], chosen.until) if "until" in told else chosen.until
    since = moment(told["since"], chosen.until) if "since" in told else chosen.since
    if since >= until:
        msg = f"set {name.upper()} has no time: its since ({since.isoformat()}) has to lie before its until ({until.isoformat()})"
        raise ChoiceError(msg)
    return Set(name, told, since, until)


def _refuse(name: str, told: Mapping[str, str]) -> None:
    """Raises ChoiceError for an arm, a slow column or a condition that cannot be used."""
    arm, _, lever = told.get("arm", f"{ARMS[0]}:{LEVERS[0]}").partition(":")
    if arm not in ARMS or not re.fullmatch(r"[a-z_][a-z0-9_]*", lever):
        msg = f"{name}.arm {told['arm'][:60]!r}: an arm and a lever are taken, such as treated:speculation; arms: {', '.join(ARMS)}"
        raise ChoiceError(msg)
    if told.get("slow", SLOW[0]) not in SLOW:
        msg = f"{name}.slow {told['slow'][:40]!r} is unknown; known: {', '.join(SLOW)}"
        raise ChoiceError(msg)
    if "where" in told and (why := conditions.fault(told["where"])):
        msg = f"{name}.where {told['where'][:80]!r}: {why}; one condition over columns of requests is taken, such as prompt_tokens > 2000"
        raise ChoiceError(msg)


def _timed(one: Set, since: datetime, until: datetime) -> str:
    parts = [one.condition] if one.condition else []
    parts += [f"started_at >= timestamptz '{one.since.isoformat()}'"] if one.since > since else []
    parts += [f"started_at < timestamptz '{one.until.isoformat()}'"] if one.until < until else []
    return " and ".join(parts)
