"""A URL's query of the notices page in, which flips it asks for and the bar that asks for others out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboards import filters
from dashboards.arriving import newest
from dashboards.choice import ANY, Choice, ChoiceError, choice
from dashboards.filters import Bar, Option, Select
from dashboards.page import Asked
from pipeline.segments import SPECULATION_KEYS, TOPOLOGY_LEVERS

STATES = ("on", "off_recommended", "off", "probation")
SEVERITIES = ("info", "warning", "critical")
PAGE_FLIPS = 20
DEFAULT_SINCE = "7d"
LONGEST_ID = 64


@dataclass(frozen=True)
class NoticesAsked:
    """What is asked for: a choice of segment, lever and period, a state after, a severity, how many to pass over, or one flip alone."""

    chosen: Choice
    state: str | None
    severity: str | None
    after: int
    flip_id: str | None

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of `page_notices`; one flip is asked for by its id alone."""
        chosen, is_one = self.chosen, self.flip_id is not None
        narrowing: dict[str, Any] = {"lever": chosen.lever, "state": self.state, "severity": self.severity}
        narrowing |= {"since": chosen.since, "until": chosen.until if chosen.until_text else None}
        wanted: dict[str, Any] = dict.fromkeys(narrowing) if is_one else narrowing
        keys = json.dumps({} if is_one else chosen.keys, sort_keys=True)
        many = {"flips": PAGE_FLIPS, "after": 0 if is_one else self.after}
        return wanted | many | {"flip_id": self.flip_id, "keys": keys, "topology_levers": list(TOPOLOGY_LEVERS)}

    @property
    def own(self) -> dict[str, str | None]:
        """The page's own parameters."""
        return {"state": self.state, "severity": self.severity}

    @property
    def is_narrowed(self) -> bool:
        """Whether anything but the period narrows the list."""
        return bool(self.chosen.keys or self.chosen.lever or self.state or self.severity)

    def pages(self, total: int) -> list[tuple[str, str]]:
        """Links to the flips before and after those shown."""
        steps = [("newer", self.after - PAGE_FLIPS, self.after > 0), ("older", self.after + PAGE_FLIPS, self.after + PAGE_FLIPS < total)]
        return [
            (words, self.chosen.changed("notices", {**self.own, "after": str(max(0, at))})) for words, at, is_there in steps if is_there
        ]


def notices_asked(asked: Asked) -> NoticesAsked:
    """Reads the query; ages count back from where the newest data ends.

    Raises:
        ValueError: no such lever, time, state or severity, or a number of flips that is none.
    """
    query = asked.query
    chosen = choice({**query, "since": query.get("since") or DEFAULT_SINCE}, newest(asked.reader, asked.now))
    flip_id = query.get("flip") or None
    if flip_id is not None and len(flip_id) > LONGEST_ID:
        msg = f"flip {flip_id[:20]!r}... has {len(flip_id)} characters; an id of a flip is taken, as GET /api/flips gives it"
        raise ChoiceError(msg)
    return NoticesAsked(chosen, _one_of("state", query, STATES), _one_of("severity", query, SEVERITIES), _after(query), flip_id)


def bar(asked: Asked, notices: NoticesAsked) -> Bar:
    """The filter bar: keys of segments, lever, state and severity."""
    found = filters.bar(asked, notices.chosen, SPECULATION_KEYS, own=tuple(notices.own))
    own = [_select("state", STATES, notices.state), _select("severity", SEVERITIES, notices.severity)]
    hidden = [(name, value) for name, value in found.hidden if name not in notices.own]
    everything = notices.chosen.changed("notices", {"lever": None}, keys={})
    return replace(found, selects=[*found.selects, *own], hidden=hidden, is_narrowed=notices.is_narrowed, everything=everything)


def _select(name: str, words: Sequence[str], chosen: str | None) -> Select:
    options = [Option(word, word.replace("_", " "), word == chosen) for word in words]
    return Select(name, name, [Option(ANY, "any", chosen is None), *options])


def _one_of(name: str, query: Mapping[str, str], known: Sequence[str]) -> str | None:
    word = query.get(name, ANY) or ANY
    if word != ANY and word not in known:
        near = difflib.get_close_matches(word, known, 1, 0.5)
        meant = f"did you mean {near[0]!r}? " if near else ""
        msg = f"{name} {word[:40]!r} is unknown; {meant}known: {', '.join(known)}"
        raise ChoiceError(msg)
    return None if word == ANY else word


def _after(query: Mapping[str, str]) -> int:
    text = query.get("after") or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > 6:
        msg = f"after {text[:20]!r}: the number of flips to pass over is taken, such as {PAGE_FLIPS}"
        raise ChoiceError(msg)
    return int(text)
