"""Which streams have a block to be judged at one block's end: effects, standings and what else is known in, what is due out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import polars as pl

from alerts.around import Around
from alerts.calm import LEAST_STREAMS, calm
from alerts.chain import Policy
from alerts.columns import Columns, Late
from alerts.effects import Effect, Effects
from alerts.outcome import Outcome
from alerts.rounds import Due
from alerts.standing import Judgment, Standing
from alerts.streams import Key, blocks_at

Policies = Mapping[str, Sequence[Policy]]
"""The policies of each lever."""


class Dues(NamedTuple):
    """Streams with a block to be judged, in an order of their own; `quick` is what is said of some of them already, by number."""

    keys: list[Key]
    due: list[Due]
    quick: dict[int, Judgment]


def due_at(until: datetime, frame: pl.DataFrame, policies: Policies, outcome: Outcome, around: Around) -> Dues:
    """What is due at a block's end: `frame` holds its effects, ordered by lever and segment."""
    dues = Dues([], [], {})
    for lever, rows in _by_lever(frame):
        if len(rows) >= LEAST_STREAMS and (columns := Columns(rows)) and len(columns.segments) >= LEAST_STREAMS:
            for policy in policies.get(lever, ()):
                _many(dues, policy, columns, until, outcome, around)
            continue
        for segment, effects in blocks_at(rows):
            for policy in policies.get(lever, ()):
                _one(dues, policy, segment, effects, until, outcome, around)
    _unmeasured(dues, policies, until, outcome, around)
    return dues


def _by_lever(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(rows.item(0, "lever"), rows) for rows in frame.partition_by("lever", maintain_order=True)]


def _one(dues: Dues, policy: Policy, segment: str, effects: Effects, until: datetime, outcome: Outcome, around: Around) -> None:
    key = Key(policy.name, policy.lever, segment)
    before = outcome.before(key, until)
    if before is not None:
        dues.keys.append(key)
        dues.due.append(Due(policy, segment, before, *around.known(policy, segment, before, until, effects)))


def _many(dues: Dues, policy: Policy, columns: Columns, until: datetime, outcome: Outcome, around: Around) -> None:
    """The streams of a policy where they are many: those in which nothing can have happened are not looked at one by one."""
    keys = [Key(policy.name, policy.lever, segment) for segment in columns.segments]
    standings = [outcome.before(key, until) for key in keys]
    readings = [around.quality(policy, segment, until) for segment in columns.segments]
    seen = [around.seen(key, before or _ON, until, reading) for key, before, reading in zip(keys, standings, readings, strict=True)]
    quick = calm(policy, columns, standings, seen, [reading.effect for reading in readings])
    for place, before in enumerate(standings):
        if before is None:
            continue
        if place in quick:
            dues.quick[len(dues.due)] = quick[place]
        effects = _with(Late(columns, place), readings[place].effect)
        dues.keys.append(keys[place])
        dues.due.append(Due(policy, columns.segments[place], before, effects, seen[place]))


def _unmeasured(dues: Dues, policies: Policies, until: datetime, outcome: Outcome, around: Around) -> None:
    """Streams that are not simply in use and have no effects here: whether the lever is used at all is known without."""
    measured = set(dues.keys)
    for key in sorted(outcome.off - measured):
        before = outcome.before(key, until)
        policy = next((policy for policy in policies.get(key.lever, ()) if policy.name == key.policy), None)
        if before is not None and policy is not None and around.has_traffic(key, before, until):
            _one(dues, policy, key.segment, {}, until, outcome, around)


def _with(effects: Effects, quality: Effect | None) -> Effects:
    return effects if quality is None else {**effects, quality.metric: quality}


_ON = Standing("on", datetime.min)
