"""What judging reads: effects since the last judged block, and where each stream stood. The store in, plain values out."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from alerts.chain import Policy
from alerts.effects import Effect, effect_name
from alerts.levers import Action, State
from alerts.standing import NO_COUNTS, Standing
from queries.store import Store

BLOCK = timedelta(seconds=300)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_CURRENT = """
select c.policy, c.lever, c.segment, c.verdict, c.action, c.reason_code, c.block_ended_at, c.state, c.state_since, c.streak,
    coalesce(c.cause, f.cause, '') as cause, coalesce(c.advised, f.advised) as advised, c.confirmed_at, c.counts, n.untold_since
from current_verdicts c
left join (
    select policy, lever, segment, arg_max(json_extract_string(notice, '$.reason_code'), decided_at) as cause,
        coalesce(arg_max(action, decided_at), 'disable') as advised
    from flips where state_after = 'off_recommended' group by all
) f on c.cause is null and c.state = 'off_recommended' and f.policy = c.policy and f.lever = c.lever and f.segment = c.segment
left join (
    select policy, lever, segment, max(decided_at) as untold_since
    from flips where action is distinct from 'widen' group by all
    having arg_max(coalesce(shadow, false) or (action is not distinct from 'hold' and state_after = state_before), decided_at)
) n on c.state in ('off_recommended', 'probation') and n.policy = c.policy and n.lever = c.lever and n.segment = c.segment
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
semi join (select unnest($of) as lever, unnest($named) as metric) using (lever, metric)
where arm_a = 'treated' and until > $earliest and until > start and ($until::timestamptz is null or until <= $until)
order by until, lever, segment
"""


_CLOSED = """
select until from closed_blocks
where until > (select coalesce(max(block_ended_at), '-infinity') from current_verdicts)
    and ($has_effects or exists (select 1 from current_verdicts where state <> 'on'))
order by until
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
    return {Key(*row[:3]): _stream(*row[3:]) for row in store.frame(_CURRENT).iter_rows()}


def written(store: Store, since: datetime) -> dict[Key, datetime]:
    """When each stream last had a row in `verdicts`, as far back as `since`."""
    return {Key(*row[:3]): row[3] for row in store.frame(_WRITTEN, {"since": since}).iter_rows()}


def listed(store: Store) -> dict[str, str]:
    """The policies of the last run: the body of each, as JSON text, by name."""
    return {row["policy"]: row["body"] for row in store.rows("select policy, body from policies")}


def newest(store: Store) -> dict[tuple[str, str], datetime]:
    """The newest block that each policy has judged, by its name and lever."""
    rows = store.rows("select policy, lever, max(block_ended_at) as newest from current_verdicts group by all")
    return {(row["policy"], row["lever"]): row["newest"] for row in rows}


def starts(
    policies: Iterable[Policy],
    newest: Mapping[tuple[str, str], datetime],
    listed: Container[str],
    removed: Mapping[tuple[str, str], datetime] = MappingProxyType({}),
) -> dict[str, datetime]:
    """For each lever, the block from which on one of its policies has not judged.

    A policy that was there in the last run and has no stream had nothing to judge up to that run's newest block. One that was `removed` and
    is back goes on from there: what it said before is over.
    """
    horizon = max(newest.values(), default=NEVER)
    levers: dict[str, datetime] = {}
    for policy in policies:
        key = policy.name, policy.lever
        start = newest.get(key) or removed.get(key) or (horizon if policy.name in listed else NEVER)
        levers[policy.lever] = min(levers.get(policy.lever, start), start)
    return levers


def effects(store: Store, starts: Mapping[str, datetime], policies: Iterable[Policy], until: datetime | None = None) -> pl.DataFrame:
    """The effects of each lever's blocks that end after its start, and by `until`, in block order: what its policies name."""
    named = sorted({(policy.lever, name) for policy in policies for name in _named(policy)})
    asked = {"levers": list(starts), "starts": list(starts.values()), "earliest": min(starts.values(), default=NEVER), "until": until}
    return store.frame(_EFFECTS, asked | {"of": [lever for lever, _ in named], "named": [name for _, name in named]})


def ends(store: Store, frame: pl.DataFrame) -> list[datetime]:
    """The ends of the blocks of a frame of effects, and of those that closed since the last one judged: a lever may be off in them."""
    closed = store.frame(_CLOSED, {"has_effects": len(frame) > 0})["until"].to_list()
    return sorted({*frame["block_ended_at"].unique().to_list(), *closed})


def at_ends(frame: pl.DataFrame, ends: Iterable[datetime]) -> Iterator[tuple[datetime, pl.DataFrame]]:
    """The rows of a frame of effects at each of these ends, in order; no rows where it has none."""
    rows = {until: part for (until,), part in frame.partition_by("block_ended_at", maintain_order=True, as_dict=True).items()}
    for until in ends:
        yield until, rows.get(until, frame.clear())


def blocks(frame: pl.DataFrame) -> Iterator[Block]:
    """The rows of `effects` as one `Block` per block end, lever and segment, in block order."""
    for (lever, segment, until), rows in groupby(frame.iter_rows(), key=lambda row: row[:3]):
        yield Block(lever, segment, until, {row[3]: Effect(*row[3:]) for row in rows})


def blocks_at(frame: pl.DataFrame) -> Iterator[tuple[str, dict[str, Effect]]]:
    """The rows of `effects` of one lever and one block end: each segment with its effects by metric."""
    for block in blocks(frame):
        yield block.segment, block.effects


def _named(policy: Policy) -> Iterator[str]:
    chain = (policy.measured_bottleneck, policy.receiving_budget, policy.expected_benefit, policy.failure_mode)
    yield from (effect_name(part.metric) for part in (*chain, policy.enabling_condition, policy.re_enable_when))
    for condition in (*policy.disable_when, *policy.gates, *policy.advise_when):
        yield from (effect_name(one.metric) for one in (condition, *getattr(condition, "where", ())))


def _stream(
    verdict: str,
    action: str,
    reason_code: str,
    block_ended_at: datetime,
    state: State,
    state_since: datetime,
    streak: int,
    cause: str,
    advised: Action | None,
    confirmed_at: datetime | None,
    counts: str | None,
    untold_since: datetime | None,
) -> Stream:
    counted = json.loads(counts) if counts else NO_COUNTS
    standing = Standing(state, state_since, streak, reason_code, cause, advised, confirmed_at, counted, untold_since)
    return Stream(standing, (verdict, action, reason_code), block_ended_at)
