"""A period in, where each stream (a policy on a segment) stands out: its verdict, its state and its gain now, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import polars as pl

from dashboards import theme
from dashboards.choice import details
from dashboards.reader import Reader
from queries import files

NOW_IS = timedelta(hours=2)  # an effect that ended longer ago says nothing of now
JUDGED = ("keep", "disable", "conflicted")


@dataclass(frozen=True)
class Gain:
    """A gain against control, its interval in words, and the time that it is of; empty where that is not known."""

    value: float
    text: str
    interval: str
    css: str
    window: str = ""


@dataclass(frozen=True)
class Verdict:
    """A lever's verdict on a segment, in words; `lacks` says in a few what keeps it from being judged."""

    name: str
    words: str
    mark: str
    css: str
    reason: str
    state: str
    since: str
    action: str
    lacks: str = ""
    is_off_recommended: bool = False

    @property
    def short(self) -> str:
        """The reason's first clause, for where the whole stands elsewhere."""
        return short(self.reason)


@dataclass(frozen=True)
class Stream:
    """One policy on one segment."""

    lever: str
    policy: str
    segment: str
    keys: dict[str, str]
    verdict: Verdict
    gain: Gain | None
    benefit: str
    is_shadow: bool
    flip_id: str | None = None

    @property
    def lever_words(self) -> str:
        """The lever's name for reading."""
        return words(self.lever)

    @property
    def name(self) -> str:
        """The model."""
        return self.keys.get("model") or "model unknown"

    @property
    def details(self) -> list[str]:
        """The other keys that are known, in words."""
        return details(self.keys)

    @property
    def notice_url(self) -> str:
        """The notice that recommended it off, alone; the notices of its lever where none is known."""
        return f"notices?{urlencode({'flip': self.flip_id} if self.flip_id else {'lever': self.lever})}"

    @property
    def stopped(self) -> bool:
        """Whether somebody is to switch it off."""
        return not self.is_shadow and (self.verdict.name == "disable" or self.verdict.is_off_recommended)


def standing(reader: Reader, until: datetime, lever: str | None = None, segment: str | None = None) -> pl.DataFrame:
    """One row per stream: policy, lever, segment and its keys, verdict, state, whether it is a shadow, and the gain now (ratio)."""
    return reader.frame(files.question("page_streams"), params(until, lever, segment))


def params(until: datetime, lever: str | None = None, segment: str | None = None) -> dict[str, Any]:
    """The parameters of `page_streams`."""
    return {"lever": lever, "segment": segment, "since": until - NOW_IS, "until": until}


def stopped() -> pl.Expr:
    """Whether a row is to be switched off; a shadow advises nobody."""
    return ~pl.col("shadow") & ((pl.col("verdict") == "disable") | (pl.col("state") == "off_recommended"))


def urgency() -> pl.Expr:
    """What to look at first: 0 is to be switched off, 1 conflicting, 2 on hold, 3 the rest and every shadow."""
    told = ~pl.col("shadow")
    conflicted, frozen = (told & (pl.col("verdict") == verdict) for verdict in ("conflicted", "frozen"))
    return pl.when(stopped()).then(0).when(conflicted).then(1).when(frozen).then(2).otherwise(3).alias("urgency")


def stream(row: Mapping[str, Any], now: datetime) -> Stream:
    """A row of `standing` for reading."""
    keys = keys_of(row)
    said, shadow = verdict(row, now), row["shadow"]
    return Stream(row["lever"], row["policy"], row["segment"], keys, said, gain(row, now), row["benefit"], shadow, row.get("flip_id"))


def keys_of(row: Mapping[str, Any]) -> dict[str, str]:
    """The keys that are set in a row's segment."""
    found: dict[str, str] = json.loads(row["segment"])
    return found


def verdict(row: Mapping[str, Any], now: datetime) -> Verdict:
    """A verdict in words."""
    said, mark, css = theme.badge(row["verdict"], row["reason_code"])
    since, state, action = theme.clock(row["state_since"], now), words(row["state"]), words(row["action"])
    return Verdict(row["verdict"], said, mark, css, row["reason"], state, since, action, said, row["state"] == "off_recommended")


def gain(row: Mapping[str, Any], now: datetime) -> Gain | None:
    """A gain in words; good or bad where its interval lies on one side of 0."""
    if row["gain"] is None:
        return None
    low, high, text, window = row["gain_low"], row["gain_high"], theme.signed_percent(row["gain"]), of_time(row, now)
    if low is None or high is None:
        return Gain(row["gain"], text, "", "quiet", window)
    css = "good" if low > 0 else "bad" if high < 0 else "quiet"
    return Gain(row["gain"], text, f"{theme.signed_percent(low)} to {theme.signed_percent(high)}", css, window)


def of_time(row: Mapping[str, Any], now: datetime) -> str:
    """The time that an effect is of, `12:05 to 14:05 UTC`; empty where it is not known."""
    since, until = row.get("since"), row.get("until")
    return theme.between(since, until, now) if since and until else ""


def short(reason: str) -> str:
    """A reason's first clause: up to the first colon, semicolon or comma that stands outside brackets."""
    depth = 0
    for place, (letter, following) in enumerate(pairwise(reason)):
        depth += (letter == "(") - (letter == ")")
        if not depth and letter in ":;," and following == " ":
            return reason[:place]
    return reason


def words(name: str) -> str:
    """A name of ours for reading."""
    return name.replace("_", " ").replace("kv ", "KV ")
