"""The judging job: effects in, verdicts, current verdicts, flips and policies out, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import polars as pl

from alerts import canonical, streams
from alerts.chain import Policy, code_of
from alerts.effects import Effects, effect_name
from alerts.judge import Judgment, Standing, judge, stale
from alerts.notice import Flip, notice
from alerts.streams import BLOCK, NEVER, Block, Key, Stream
from alerts.sums import ask
from queries.store import Store, Transaction

REPEAT = timedelta(hours=1)
_TIME = pl.Datetime("us", "UTC")
_SAID = ("policy", "policy_version", "lever", "segment", "verdict", "action", "reason_code", "reason", "decided_at", "block_ended_at")
_VERDICTS: dict[str, pl.DataType] = {name: _TIME if name.endswith("_at") else pl.String() for name in _SAID}
_CURRENT: dict[str, pl.DataType] = {**_VERDICTS, "state": pl.String(), "state_since": _TIME, "streak": pl.Int64()}


class _Outcome:
    """What one run has found so far, on top of what the store holds."""

    def __init__(self, known: dict[Key, Stream], written: dict[Key, datetime]) -> None:
        self.known = known
        self.written = written
        self.verdicts: list[tuple[Any, ...]] = []
        self.current: dict[Key, tuple[Any, ...]] = {}
        self.flips: list[tuple[Flip, Effects]] = []

    def add(self, policy: Policy, key: Key, judgment: Judgment, decided_at: datetime, block_ended_at: datetime) -> None:
        """Notes a judgment as the stream's latest, and as a verdict row where it says something new or an hour has passed."""
        said = (judgment.verdict, judgment.action, judgment.reason_code)
        before = self.known.get(key)
        row = (key.policy, str(policy.version), key.lever, key.segment, *said, judgment.reason, decided_at, block_ended_at)
        repeats = before is not None and before.said == said
        if not (repeats and (said[2] == "stale" or decided_at - self.written.get(key, NEVER) < REPEAT)):
            self.verdicts.append(row)
            self.written[key] = decided_at
        self.current[key] = (*row, judgment.state, judgment.state_since, judgment.streak)
        cause = before.standing.cause if before else ""
        if judgment.state == "off_recommended" and (before is None or before.standing.state != "off_recommended"):
            cause = judgment.reason_code
        standing = Standing(judgment.state, judgment.state_since, judgment.streak, judgment.reason_code, cause)
        self.known[key] = Stream(standing, said, block_ended_at)


def run(
    store: Store,
    policies: Sequence[Policy],
    now: datetime,
    newest_watermark: datetime | None = None,
    *,
    caught_up: bool = True,
    since: datetime | None = None,
    base_url: str = "",
) -> int:
    """Judges every block that has closed since the last run, in block order; gives the number of rows written.

    Event time: a decision is dated by its block's end. `since` reaches further back than the policies' last judged
    blocks, for history that was loaded late. With `caught_up`, a stream far behind `newest_watermark` is frozen.
    """
    listed = streams.listed(store)
    starts = streams.starts(policies, streams.newest(store), listed)
    starts = {lever: min(start, since) for lever, start in starts.items()} if since else starts
    frame = streams.effects(store, starts, policies)
    watermark = newest_watermark if caught_up else None
    loaded_at = None if listed == _bodies(policies) else now
    if not (len(frame) or loaded_at or (watermark and _any_stale(store, policies, watermark))):
        return 0
    outcome = _Outcome(streams.current(store), streams.written(store, _first(frame, watermark or now) - REPEAT))
    for block in streams.blocks(frame):
        for policy in policies:
            if policy.lever == block.lever:
                _judge_block(outcome, policy, block)
    if watermark is not None:
        _freeze_stale(outcome, policies, watermark)
    flips = [_flip_row(store, flip, effects, now, base_url) for flip, effects in outcome.flips]
    return _write(store, policies, outcome, flips, loaded_at)


def _first(frame: pl.DataFrame, otherwise: datetime) -> datetime:
    return frame.item(0, "block_ended_at") if len(frame) else otherwise


def _any_stale(store: Store, policies: Sequence[Policy], watermark: datetime) -> bool:
    """Whether some stream may be too far behind: a cheap look that saves reading all of them when nothing is new."""
    before = watermark - timedelta(seconds=min((policy.stale_after_s for policy in policies), default=0.0))
    asked = (
        "select 1 from current_verdicts where block_ended_at < $before and reason_code <> 'stale' and list_contains($names, policy) limit 1"
    )
    return bool(store.rows(asked, {"before": before, "names": [policy.name for policy in policies]}))


def _judge_block(outcome: _Outcome, policy: Policy, block: Block) -> None:
    key = Key(policy.name, policy.lever, block.segment)
    known = outcome.known.get(key)
    if known is not None and block.until <= known.block_ended_at:
        return
    before = known.standing if known else Standing("on", block.until)
    judgment = judge(policy, block.effects, before, block.until)
    if judgment.state != before.state:
        outcome.flips.append((Flip(policy, block.segment, before, judgment, block.until), block.effects))
    outcome.add(policy, key, judgment, block.until, block.until)


def _freeze_stale(outcome: _Outcome, policies: Sequence[Policy], watermark: datetime) -> None:
    """Streams whose last block lies too far behind the newest data."""
    by_name = {policy.name: policy for policy in policies}
    decided_at = watermark - timedelta(seconds=watermark.timestamp() % BLOCK.total_seconds())
    for key, stream in list(outcome.known.items()):
        policy = by_name.get(key.policy)
        if policy is None or stream.said[2] == "stale":
            continue
        if watermark - stream.block_ended_at > timedelta(seconds=policy.stale_after_s):
            judgment = stale(stream.standing, stream.block_ended_at, watermark)
            outcome.add(policy, key, judgment, decided_at, stream.block_ended_at)


def _flip_row(store: Store, flip: Flip, effects: Effects, now: datetime, base_url: str) -> dict[str, Any]:
    decisive = effects.get(_decisive(flip))
    sums = ask(store, flip.policy.lever, flip.segment, decisive) if decisive else None
    return {
        "flip_id": flip.flip_id,
        "policy": flip.policy.name,
        "lever": flip.policy.lever,
        "segment": flip.segment,
        "state_before": flip.before.state,
        "state_after": flip.judgment.state,
        "decided_at": flip.decided_at,
        "reason": flip.judgment.reason,
        "action": flip.judgment.action,
        "severity": flip.policy.severity,
        "shadow": flip.policy.shadow,
        "notice": canonical.text(notice(flip, effects.values(), sums, now, base_url)),
    }


def _decisive(flip: Flip) -> str:
    """The effect whose sums stand behind the flip: its trigger's, else the benefit's."""
    policy = flip.policy
    for trigger in policy.disable_when:
        if code_of(policy, trigger) == flip.judgment.reason_code:
            return effect_name(trigger.metric)
    return effect_name(policy.expected_benefit.metric)


def _write(store: Store, policies: Sequence[Policy], outcome: _Outcome, flips: list[dict[str, Any]], loaded_at: datetime | None) -> int:
    """All rows of one run in one transaction; no transaction where there is nothing to write.

    `loaded_at` is set where the set of policies has changed.
    """
    if loaded_at is None and not outcome.current:
        return 0
    rows = 0
    with store.write() as transaction:
        if loaded_at is not None:
            rows += _write_policies(transaction, policies, loaded_at)
        if outcome.verdicts:
            rows += transaction.insert("verdicts", pl.DataFrame(outcome.verdicts, schema=_VERDICTS, orient="row"))
        if flips:
            rows += transaction.using(
                pl.DataFrame(flips, schema_overrides={"decided_at": _TIME}),
                "insert into flips by name select * from incoming anti join flips using (flip_id)",
            )
        if outcome.current:
            rows += _replace_current(transaction, pl.DataFrame(list(outcome.current.values()), schema=_CURRENT, orient="row"))
    return rows


def _bodies(policies: Sequence[Policy]) -> dict[str, str]:
    return {policy.name: canonical.text(msgspec.to_builtins(policy)) for policy in policies}


def _write_policies(transaction: Transaction, policies: Sequence[Policy], loaded_at: datetime) -> int:
    transaction.execute("delete from policies")
    bodies = _bodies(policies)
    rows = [
        {
            "policy": policy.name,
            "version": str(policy.version),
            "lever": policy.lever,
            "owner": policy.owner,
            "body": bodies[policy.name],
            "loaded_at": loaded_at,
        }
        for policy in policies
    ]
    return transaction.insert("policies", pl.DataFrame(rows)) if rows else 0


def _replace_current(transaction: Transaction, rows: pl.DataFrame) -> int:
    transaction.using(
        rows,
        "delete from current_verdicts using incoming where current_verdicts.policy = incoming.policy"
        " and current_verdicts.lever = incoming.lever and current_verdicts.segment = incoming.segment",
    )
    return transaction.insert("current_verdicts", rows)
