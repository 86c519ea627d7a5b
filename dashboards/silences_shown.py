"""Rows of `silences` in, who is not told of what until when out; and what a new one is first filled in with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from dashboards import theme
from dashboards.choice import Choice
from dashboards.reader import Reader
from queries import files

ENDED_SHOWN = timedelta(days=7)
MOST_SILENCES = 200
HOURS = (("1", "1 hour"), ("4", "4 hours"), ("8", "8 hours"), ("24", "1 day"), ("72", "3 days"), ("168", "7 days"))
USUAL_HOURS = "8"
_MATCHERS = ("lever", "policy", "receiver", "flip_id")


@dataclass(frozen=True)
class SilenceShown:
    """One silence. `matchers` are what it is about (null: all), `state` is pending, active or ended."""

    silence_id: str
    state: str
    about: str
    until: str
    left: str
    created_by: str
    comment: str
    matchers: Mapping[str, str | None]
    keys: Mapping[str, str]

    def is_about(self, flip: Mapping[str, Any], keys: Mapping[str, str]) -> bool:
        """Whether it holds a flip back now, from one receiver at least."""
        pairs = [(self.matchers[name], flip[name]) for name in ("lever", "policy", "flip_id")]
        pairs += [(pattern, keys.get(key)) for key, pattern in self.keys.items()]
        return self.state == "active" and all(_fits(pattern, word) for pattern, word in pairs)


def silences(reader: Reader, now: datetime) -> list[SilenceShown]:
    """Those that last, are to come, or were over within some days; the newest first."""
    asked = {"since": now - ENDED_SHOWN, "silences": MOST_SILENCES}
    return [_shown(row, now) for row in reader.frame(files.question("page_silences"), asked).iter_rows(named=True)]


def first_filled(chosen: Choice, flip: Mapping[str, Any] | None) -> dict[str, str]:
    """What the form of a new silence begins with: the stream of the flip that is shown, else what the page is narrowed to."""
    if flip is None:
        return {"lever": chosen.lever or "", "policy": "", **{key: value for key, value in chosen.keys.items() if value}}
    return {"lever": flip["lever"], "policy": flip["policy"], **json.loads(flip["segment"])}


def _shown(row: Mapping[str, Any], now: datetime) -> SilenceShown:
    over_at = min(row["ends_at"], row["ended_at"]) if row["ended_at"] else row["ends_at"]
    state = "ended" if now >= over_at else "active" if now >= row["starts_at"] else "pending"
    keys = json.loads(row["segment"]) if row["segment"] else {}
    matchers = {name: row[name] for name in _MATCHERS}
    words = [f"{name.replace('_id', '')} {value}" for name, value in matchers.items() if value]
    until = f"from {theme.clock(row['starts_at'], now)} to {theme.clock(over_at, now)}" if state == "pending" else theme.clock(over_at, now)
    return SilenceShown(
        row["silence_id"],
        state,
        ", ".join([*words, *(f"{key} {value}" for key, value in keys.items())]) or "everything",
        until,
        theme.age((over_at - now).total_seconds()) if state == "active" else "",
        row["created_by"],
        row["comment"],
        matchers,
        keys,
    )


def _fits(pattern: str | None, word: str | None) -> bool:
    """As a silence is matched when it holds something back: `*` and `?` stand for others, brackets for themselves."""
    return pattern is None or (word is not None and fnmatchcase(word, pattern.replace("[", "[[]")))
