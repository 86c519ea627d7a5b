"""What one run of judging has found so far, on top of what the store holds: judgments in, rows of the tables that judging writes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

import polars as pl

from alerts import canonical, turns
from alerts.chain import Policy
from alerts.closings import Closings
from alerts.effects import Effects
from alerts.notice import Flip
from alerts.standing import Judgment, Standing, after
from alerts.streams import NEVER, Key, Stream
from alerts.turns import Open

REPEAT = timedelta(hours=1)
_TIME = pl.Datetime("us", "UTC")
_SAID = ("policy", "policy_version", "lever", "segment", "verdict", "action", "reason_code", "reason", "decided_at", "block_ended_at")
VERDICTS: dict[str, pl.DataType] = {name: _TIME if name.endswith("_at") else pl.String() for name in _SAID}
CURRENT: dict[str, pl.DataType] = {
    **VERDICTS,
    "state": pl.String(),
    "state_since": _TIME,
    "streak": pl.Int64(),
    "cause": pl.String(),
    "advised": pl.String(),
    "confirmed_at": _TIME,
    "counts": pl.String(),
}


class Outcome:
    """Where every stream stands by now, and what is to be written of it."""

    def __init__(
        self,
        known: dict[Key, Stream],
        written: dict[Key, datetime],
        policies: Mapping[str, Policy],
        removed: Mapping[tuple[str, str], datetime] = MappingProxyType({}),
    ) -> None:
        self.known = known
        self.written = written
        self.verdicts: list[tuple[Any, ...]] = []
        self.current: dict[Key, tuple[Any, ...]] = {}
        self.flips: list[tuple[Flip, Effects]] = []
        self._policies, self._removed = policies, removed
        self.off = {key for key, stream in known.items() if stream.standing.state != "on" and self._is_judged(key)}

    def _is_judged(self, key: Key) -> bool:
        """Whether there is still such a policy, on that lever: of one that was given another lever the old streams are over."""
        policy = self._policies.get(key.policy)
        return policy is not None and policy.lever == key.lever

    def hush(self, ended: Closings) -> None:
        """Notes what people are told no more: that its policy is in shadow now."""
        for row in ended.flips:
            key = Key(row["policy"], row["lever"], row["segment"])
            if key in self.off:
                stream = self.known[key]
                self.known[key] = stream._replace(standing=stream.standing._replace(untold_since=row["decided_at"]))

    def before(self, key: Key, until: datetime) -> Standing | None:
        """Where a stream stands; None where it has seen this block already, or its policy was removed after it."""
        known = self.known.get(key)
        if known is None:
            removed_at = self._removed.get((key.policy, key.lever)) if self._removed else None
            return Standing("on", until) if removed_at is None or until > removed_at else None
        return known.standing if until > known.block_ended_at else None

    def has_said(self, key: Key, reason_code: str) -> bool:
        """Whether the latest judgment of a stream had this reason code."""
        known = self.known.get(key)
        return known is not None and known.said[2] == reason_code

    def opened(self, until: datetime) -> Iterator[Open]:
        """The recommendations that hold others back at a moment."""
        for key in self.off:
            standing, policy = self.known[key].standing, self._policies[key.policy]
            if turns.is_open(standing, policy, until):
                yield Open(policy, key.segment, standing.state_since, standing.advised or "disable")

    def add(self, policy: Policy, key: Key, judgment: Judgment, decided_at: datetime, block_ended_at: datetime, effects: Effects) -> None:
        """Notes a judgment as the stream's latest; as a verdict row where it says something new or an hour has passed; and its flip."""
        known = self.known.get(key)
        before = known.standing if known else Standing("on", decided_at)
        if judgment.state != before.state or judgment.is_raised or judgment.is_widened:
            self.flips.append((Flip(policy, key.segment, before, judgment, decided_at), effects))
        said = (judgment.verdict, judgment.action, judgment.reason_code)
        row = (key.policy, str(policy.version), key.lever, key.segment, *said, judgment.reason, decided_at, block_ended_at)
        repeats = known is not None and known.said == said
        if not (repeats and (said[2] == "stale" or decided_at - self.written.get(key, NEVER) < REPEAT)):
            self.verdicts.append(row)
            self.written[key] = decided_at
        standing = after(before, judgment, decided_at)
        counts = canonical.text(dict(standing.counts)) if standing.counts else None
        self.current[key] = (
            *row,
            *(standing.state, standing.state_since, standing.streak, standing.cause, standing.advised, standing.confirmed_at, counts),
        )
        self.known[key] = Stream(standing, said, block_ended_at)
        (self.off.discard if standing.state == "on" else self.off.add)(key)
