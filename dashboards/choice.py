"""What a page's URL chooses: a segment, a lever, a metric and a period."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from pipeline.metrics import UnknownMetricError, judged
from pipeline.segments import CELL_SEGMENT_KEYS, LEVERS, SPECULATION_KEYS, canonical, keys_for
from queries.report import moment

KEYS = SPECULATION_KEYS
FILTER_KEYS = CELL_SEGMENT_KEYS
ANY = "*"  # what a form sends for a key that is not chosen: an empty value asks for requests where the key is unknown
DEFAULT_SINCE = "24h"
PERIODS = ("1h", "6h", "24h", "7d")
BLOCK = timedelta(minutes=5)
SHORT_S, LONG_S = 6 * 3600, 48 * 3600
_KEY_WORDS = {"input_bucket": "{} tokens in", "temperature_bucket": "temperature {}", "tenant": "tenant {}"}


class ChoiceError(ValueError):
    """What a URL chooses is not there to be chosen; says what is."""


@dataclass(frozen=True)
class Choice:
    """The chosen segment's keys ("" = requests where a key is unknown), the period [since, until), and lever, metric (None: not said)."""

    keys: dict[str, str]
    since_text: str
    since: datetime
    until: datetime
    lever: str | None = None
    metric: str | None = None
    until_text: str = ""

    @property
    def segment(self) -> str:
        """The segment as `effects` and `verdicts` name it."""
        return canonical({key: value or None for key, value in self.keys.items()})

    @property
    def judged_until(self) -> datetime:
        """Until when blocks count: a period without an end of its own ends with the newest block, whose end the data has only reached."""
        return self.until if self.until_text else self.until + BLOCK

    @property
    def width_s(self) -> int:
        """The width of a chart's bucket: 5 minutes in a short period, 30, hours in a long one."""
        length_s = (self.until - self.since).total_seconds()
        return 300 if length_s <= SHORT_S else 1800 if length_s <= LONG_S else 3600 * (1 + int(length_s // (14 * 86400)))

    @property
    def query(self) -> dict[str, str]:
        """What is chosen as a URL's query."""
        said = {"since": self.since_text, "until": self.until_text, "lever": self.lever, "metric": self.metric}
        return {**self.keys, **{name: value for name, value in said.items() if value}}

    def url(self, page: str = "segment", *, keys: Mapping[str, str | None] | None = None, **changes: str | None) -> str:
        """A page with this choice, other keys (a null one: requests without it) and changes such as `since="1h"`; None leaves one out."""
        return self.changed(page, changes, keys)

    def changed(self, page: str, changes: Mapping[str, str | None], keys: Mapping[str, str | None] | None = None) -> str:
        """As `url`, for changes whose names are not known beforehand."""
        chosen = self.keys if keys is None else {key: value or "" for key, value in keys.items()}
        kept = {name: value for name, value in self.query.items() if name not in FILTER_KEYS}
        query = {name: value for name, value in {**chosen, **kept, **changes}.items() if value is not None}
        return f"{page.lstrip('/') or './'}{f'?{urlencode(query)}' if query else ''}"


def choice(query: Mapping[str, str], until: datetime) -> Choice:
    """Reads a URL's query; ages count back from `until`, where the newest data ends.

    Raises:
        ChoiceError, queries.report.ReportError, UnknownMetricError: no such lever, time or metric.
    """
    keys = {key: query[key] for key in FILTER_KEYS if query.get(key, ANY) != ANY}
    since_text, until_text = query.get("since") or DEFAULT_SINCE, query.get("until") or ""
    end = moment(until_text, until) if until_text else until
    since = moment(since_text, end)
    if since >= end:
        msg = f"the period from {since_text[:40]!r} to {until_text[:40] or 'the newest data'} has no length: since has to lie before until"
        raise ChoiceError(msg)
    return Choice(keys, since_text, since, end, lever_of(query), _metric(query), until_text)


def lever_of(query: Mapping[str, str]) -> str | None:
    """The lever that a URL names. Raises ChoiceError for one that is none, with the nearest."""
    lever = query.get("lever", ANY) or ANY
    if lever == ANY or lever in LEVERS:
        return None if lever == ANY else lever
    near = difflib.get_close_matches(lever, LEVERS, 1, 0.5)
    meant = f"did you mean {near[0]!r}? " if near else ""
    msg = f"lever {lever[:40]!r} is unknown; {meant}known: {', '.join(LEVERS)}"
    raise ChoiceError(msg)


def _metric(query: Mapping[str, str]) -> str | None:
    metric = query.get("metric", ANY) or ANY
    if metric != ANY and metric not in judged():
        near = difflib.get_close_matches(metric, judged(), 3, 0.5)
        meant = f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(judged())}"
        msg = f"metric {metric[:40]!r} is unknown; {meant}"
        raise UnknownMetricError(msg)
    return None if metric == ANY else metric


def of_lever(keys: Mapping[str, str | None], lever: str) -> dict[str, str]:
    """What of a segment's keys a lever is judged by; a key that is not known is left out, as `effects` and `verdicts` do."""
    return {key: value for key in keys_for(lever) if (value := keys.get(key))}


def details(keys: Mapping[str, str | None]) -> list[str]:
    """A segment's known keys in words, without the model."""
    listed = {key: keys[key] for key in (*KEYS, *keys) if key in keys}
    return [_KEY_WORDS.get(key, "{}").format(value) for key, value in listed.items() if value and key != "model"]


def title(keys: Mapping[str, str | None]) -> str:
    """A segment in a line; no key at all is all traffic."""
    if not any(keys.values()):
        return "all traffic"
    return " · ".join([keys.get("model") or "model unknown", *details(keys)])
