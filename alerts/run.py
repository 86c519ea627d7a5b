"""The judging job: effects in, verdicts, current verdicts, flips and policies out, in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import polars as pl

from alerts import closings, rounds, streams, turns, writing
from alerts.around import Around
from alerts.chain import Policy
from alerts.dues import due_at
from alerts.flip_rows import flip_rows
from alerts.judge import stale
from alerts.outcome import REPEAT, Outcome
from alerts.rounds import Widening
from alerts.soundness import NOT_A_NUMBER
from alerts.streams import BLOCK
from queries.store import Store

log = logging.getLogger(__name__)


def run(
    store: Store,
    policies: Sequence[Policy],
    now: datetime,
    newest_watermark: datetime | None = None,
    *,
    caught_up: bool = True,
    since: datetime | None = None,
    base_url: str = "",
    widening: Widening | None = None,
    closes: bool = True,
) -> int:
    """Judges every block that has closed since the last run, in block order; gives the number of rows written.

    Event time: a decision is dated by its block's end. `since` reaches further back than the policies' last judged
    blocks, for history that was loaded late. With `caught_up`, a stream far behind `newest_watermark` is frozen.
    `widening` says which segments of a lever may get more traffic; where it is missing, none is advised. With `closes`, what policies said
    that are not among these any more is over, and who was told of it is told so.
    """
    listed, newest, removed = streams.listed(store), streams.newest(store), closings.removed(store)
    ended = closings.find(store, policies, newest) if closes else closings.NOTHING
    starts = streams.starts(policies, newest, listed, removed)
    starts = {lever: min(start, since) for lever, start in starts.items()} if since else starts
    frame = streams.effects(store, starts, policies)
    watermark = newest_watermark if caught_up else None
    loaded_at = None if listed == writing.bodies(policies) else now
    ends = streams.ends(store, frame)
    if not (ends or loaded_at or ended or (watermark and _any_stale(store, policies, watermark))):
        return 0
    by_name = {policy.name: policy for policy in policies}
    first = ends[0] if ends else watermark or now
    outcome = Outcome(streams.current(store), streams.written(store, first - REPEAT), by_name, removed)
    outcome.hush(ended)
    if ends:
        _judge_blocks(store, policies, frame, ends, outcome, widening)
    if watermark is not None:
        _freeze_stale(outcome, by_name, watermark)
    return writing.write(store, policies, outcome, flip_rows(store, outcome.flips, now, base_url), loaded_at, ended)


def _any_stale(store: Store, policies: Sequence[Policy], watermark: datetime) -> bool:
    """Whether some stream may be too far behind: a cheap look that saves reading all of them when nothing is new."""
    before = watermark - timedelta(seconds=min((policy.stale_after_s for policy in policies), default=0.0))
    asked = (
        "select 1 from current_verdicts where block_ended_at < $before and reason_code <> 'stale' and list_contains($names, policy) limit 1"
    )
    return bool(store.rows(asked, {"before": before, "names": [policy.name for policy in policies]}))


def _judge_blocks(
    store: Store, policies: Sequence[Policy], frame: pl.DataFrame, ends: Sequence[datetime], outcome: Outcome, widening: Widening | None
) -> None:
    """Every block's end in order: all streams that have a block there, together."""
    around = Around(store, policies, ends[0], ends[-1])
    by_lever: dict[str, list[Policy]] = {}
    for policy in policies:
        by_lever.setdefault(policy.lever, []).append(policy)
    interacts = turns.interacting(policies)
    for until, rows in streams.at_ends(frame, ends):
        around.look_at((key, outcome.known[key].standing) for key in outcome.off)
        keys, due, quick = due_at(until, rows, by_lever, outcome, around)
        said = rounds.judged(due, outcome.opened(until), interacts, until, quick=quick, widening=widening)
        for key, one, judgment in zip(keys, due, said, strict=True):
            if judgment.reason_code == NOT_A_NUMBER and not outcome.has_said(key, NOT_A_NUMBER):
                log.warning("%s on %s %s is frozen from %s on: %s", key.policy, key.lever, key.segment, until, judgment.reason)
            outcome.add(one.policy, key, judgment, until, until, one.effects)


def _freeze_stale(outcome: Outcome, policies: Mapping[str, Policy], watermark: datetime) -> None:
    """Streams whose last block lies too far behind the newest data."""
    decided_at = watermark - timedelta(seconds=watermark.timestamp() % BLOCK.total_seconds())
    oldest = {(one.name, one.lever): watermark - timedelta(seconds=one.stale_after_s) for one in policies.values()}
    for key, stream in list(outcome.known.items()):
        limit = oldest.get(key[:2])
        if limit is not None and stream.block_ended_at < limit and stream.said[2] != "stale":
            judgment = stale(stream.standing, stream.block_ended_at, watermark)
            outcome.add(policies[key.policy], key, judgment, decided_at, stream.block_ended_at, {})
