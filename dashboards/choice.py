"""What a page's URL chooses: a segment and a period."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from pipeline.segments import SPECULATION_KEYS, canonical
from queries.report import moment

KEYS = SPECULATION_KEYS
DEFAULT_SINCE = "24h"
PERIODS = ("1h", "6h", "24h", "7d")
SHORT_S = 6 * 3600
_KEY_WORDS = {"input_bucket": "{} tokens in", "temperature_bucket": "temperature {}"}


@dataclass(frozen=True)
class Choice:
    """The chosen segment's keys ("" = requests where the key is unknown) and the period [since, until)."""

    keys: dict[str, str]
    since_text: str
    since: datetime
    until: datetime

    @property
    def segment(self) -> str:
        """The segment as `effects` and `verdicts` name it."""
        return canonical({key: value or None for key, value in self.keys.items()})

    @property
    def width_s(self) -> int:
        """The width of a chart's bucket: 30 minutes, 5 in a short period."""
        return 300 if (self.until - self.since).total_seconds() <= SHORT_S else 1800

    def url(self, keys: Mapping[str, str | None] | None = None, since: str | None = None) -> str:
        """The page's own address with other keys or another period."""
        chosen = self.keys if keys is None else {key: value or "" for key, value in keys.items()}
        query = {**chosen, "since": since or self.since_text}
        return f"segment?{urlencode(query)}"


def choice(query: Mapping[str, str], until: datetime) -> Choice:
    """Reads a URL's query. Raises queries.report.ReportError (a ValueError) for a time that is none."""
    keys = {key: query[key] for key in KEYS if key in query}
    since = query.get("since", DEFAULT_SINCE)
    return Choice(keys, since, moment(since, until), until)


def details(keys: Mapping[str, str | None]) -> list[str]:
    """A segment's known keys in words, without the model."""
    listed = {key: keys[key] for key in (*KEYS, *keys) if key in keys}
    return [_KEY_WORDS.get(key, "{}").format(value) for key, value in listed.items() if value and key != "model"]


def title(keys: Mapping[str, str | None]) -> str:
    """A segment in a line; no key at all is all traffic."""
    if not any(keys.values()):
        return "all traffic"
    return " · ".join([keys.get("model") or "model unknown", *details(keys)])
