"""What judging reads: effects since the last judged block, and where each stream stood. The store in, plain values out."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from alerts.chain import Policy
from alerts.effects import Effect
from alerts.judge import Standing
from pipeline.metrics import TAILS
from queries.store import Store

BLOCK = timedelta(seconds=300)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_CURRENT = """
select c.policy, c.lever, c.segment, c.verdict, c.action, c.reason_code, c.block_ended_at, c.state, c.state_since, c.streak,
    coalesce(f.cause, '') as cause
from current_verdicts c
left join (
    select policy, lever, segment, arg_max(json_extract_string(notice, '$.reason_code'), decided_at) as cause
    from flips where state_after = 'off_recommended' group by all
) f on c.state <> 'on' and f.policy = c.policy and f.lever = c.lever and f.segment = c.segment
"""
_WRITTEN = """
select policy, lever, segment, max(decided_at) as written_at from verdicts where decided_at > $since group by all
"""
_EFFECTS = """
select lever, segment, until as block_ended_at,
    metric, since, until, blocks, n_a, n_b, value_a, value_b, gain, gain_low, gain_high, basis, coverage, note,
    trap, upstream, trapped_share, evidence_below, evidence_above, tests, turned_blocks, turned_gain,
    grade, says, own_value, premise_evidence,
    permission, margin, permission_reason, sample_ratio_off, control_share, intended_control_share,
    uncalibrated, contrast_spread, contrast_neighbors, blocks_together
from effects join (select unnest($levers) as lever, unnest($starts) as start) using (lever)
where arm_a = 'treated' and until > $earliest and until > start and not list_contains($unread, metric)
order by until, lever, segment
"""


class Key(NamedTuple):
    """One stream: a policy on a segment of its lever."""

    policy: str
    lever: str
    segment: str


class Stream(NamedTuple):
    """Where a stream stands: its state, and what was last said of which block."""

    standing: Standing
    said: tuple[str, str, str]
    block_ended_at: datetime


class Block(NamedTuple):
    """The effects of one lever's segment at one block's end, by metric."""

    lever: str
    segment: str
    until: datetime
    effects: dict[str, Effect]


def current(store: Store) -> dict[Key, Stream]:
    """Every stream's standing, as its last judging left it."""
    return {Key(row["policy"], row["lever"], row["segment"]): _stream(row) for row in store.rows(_CURRENT)}


def written(store: Store, since: datetime) -> dict[Key, datetime]:
    """When each stream last had a row in `verdicts`, as far back as `since`."""
    rows = store.rows(_WRITTEN, {"since": since})
    return {Key(row["policy"], row["lever"], row["segment"]): row["written_at"] for row in rows}


def listed(store: Store) -> dict[str, str]:
    """The policies of the last run: the body of each, as JSON text, by name."""
    return {row["policy"]: row["body"] for row in store.rows("select policy, body from policies")}


def newest(store: Store) -> dict[str, datetime]:
    """The newest block that each policy has judged."""
    rows = store.rows("select policy, max(block_ended_at) as newest from current_verdicts group by all")
    return {row["policy"]: row["newest"] for row in rows}


def starts(policies: Iterable[Policy], newest: Mapping[str, datetime], listed: Container[str]) -> dict[str, datetime]:
    """For each lever, the block from which on one of its policies has not judged.

    A policy that was there in the last run and has no stream had nothing to judge up to that run's newest block.
    """
    horizon = max(newest.values(), default=NEVER)
    levers: dict[str, datetime] = {}
    for policy in policies:
        start = newest.get(policy.name, horizon if policy.name in listed else NEVER)
        levers[policy.lever] = min(levers.get(policy.lever, start), start)
    return levers


def effects(store: Store, starts: Mapping[str, datetime], policies: Iterable[Policy]) -> pl.DataFrame:
    """The effects of each lever's blocks that end after its start, in block order; of percentiles those that the policies name."""
    named = {name for policy in policies for name in _named(policy)}
    asked = {"levers": list(starts), "starts": list(starts.values()), "earliest": min(starts.values(), default=NEVER)}
    return store.frame(_EFFECTS, asked | {"unread": sorted({*TAILS} - named)})


def blocks(frame: pl.DataFrame) -> Iterator[Block]:
    """The rows of `effects` as one `Block` per block end, lever and segment, in block order."""
    for (lever, segment, until), rows in groupby(frame.iter_rows(), key=lambda row: row[:3]):
        yield Block(lever, segment, until, {row[3]: Effect(*row[3:]) for row in rows})


def _named(policy: Policy) -> Iterator[str]:
    yield from (policy.enabling_condition.metric, policy.expected_benefit.metric, policy.failure_mode.metric, policy.re_enable_when.metric)
    yield from (trigger.metric for trigger in policy.disable_when)


def _stream(row: dict[str, Any]) -> Stream:
    standing = Standing(row["state"], row["state_since"], row["streak"], row["reason_code"], row["cause"])
    return Stream(standing, (row["verdict"], row["action"], row["reason_code"]), row["block_ended_at"])
