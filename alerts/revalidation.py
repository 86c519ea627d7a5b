"""Levers whose setting changed in, which other levers' policies have to be judged again out, until they have: table `revalidations`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from alerts import wording
from alerts.chain import Policy
from alerts.settings import Change, agrees
from alerts.traffic import told
from queries import files
from queries.store import Store, Transaction

GIVEN_UP_AFTER = timedelta(days=7)
JUDGED, SUPERSEDED, UNJUDGED = "judged", "superseded", "not judged"
_TIME = pl.Datetime("us", "UTC")
_ROW: dict[str, pl.DataType] = {
    **dict.fromkeys(("lever", "changed_from", "changed_to"), pl.String()),
    "changed_at": _TIME,
    **dict.fromkeys(("scope", "other_lever", "policy"), pl.String()),
    "blocks_seen": pl.Int64(),
    "blocks_needed": pl.Int64(),
}
_SAME = "lever = $lever and scope = $scope and policy = $policy and done_at is null"


class _Open(NamedTuple):
    """One policy that waits for blocks since a change."""

    lever: str
    scope: str
    changed_at: datetime
    policy: str


def listed(store: Store, lever: str | None = None, *, everything: bool = False, limit_rows: int = 1000) -> pl.DataFrame:
    """One row per change and policy that is to be judged again for it; with `everything` also those that were."""
    return store.frame(files.question("revalidations"), {"all": everything, "lever": lever, "limit_rows": limit_rows})


def due(store: Store) -> Mapping[tuple[str, str], str]:
    """For each lever and segment that is to be judged again, a sentence: what changed, and how many blocks there are since."""
    found: dict[tuple[str, str], str] = {}
    waiting = store.rows(files.question("revalidations"), {"all": False, "lever": None, "limit_rows": 1000})
    for row in waiting:
        for segment in _segments(store, row["policy"], row["scope"]):
            said = found.get((row["other_lever"], segment))
            found[row["other_lever"], segment] = f"{said}; {sentence(row)}" if said else sentence(row)
    return found


def sentence(row: Mapping[str, Any]) -> str:
    """`to be judged again: kv_quantization went from fp8 to bf16 at 2026-03-02T00:10:00Z, 2 of 6 blocks since`."""
    changed = f"{row['lever']} went from {row['changed_from']} to {row['changed_to']} at {wording.utc(row['changed_at'])}"
    return f"to be judged again: {changed}, {row['blocks_seen']} of {wording.blocks(row['blocks_needed'])} since"


def list_changes(store: Store, policies: Sequence[Policy], changes: Sequence[Change]) -> int:
    """Lists what has to be judged again since settings changed; gives how many rows it wrote."""
    streams = {policy.name: _streams(store, policy) for policy in policies} if changes else {}
    rows = [row for change in changes for row in _asked(policies, streams, change)]
    if rows:
        with store.write() as transaction:
            for row in rows:
                _supersede(transaction, row)
                transaction.insert("revalidations", pl.DataFrame([row], schema=_ROW))
    return len(rows)


def close_judged(store: Store, until: datetime) -> int:
    """Closes what has been judged on enough blocks since, and what nobody will; gives how many rows it changed. In event time."""
    updates = list(_updates(store, until))
    if updates:
        with store.write() as transaction:
            for values in updates:
                transaction.execute(
                    f"update revalidations set blocks_seen = $blocks, done_at = $done_at, outcome = $outcome where {_SAME}", values
                )
    return len(updates)


def _asked(policies: Sequence[Policy], streams: Mapping[str, list[str]], change: Change) -> Iterator[dict[str, Any]]:
    """A row for each policy in use there whose lever shares a budget with the one that changed. The first setting seen is no change."""
    lever, scope = change.place
    named = {other for policy in policies if policy.lever == lever for other in policy.revalidates}
    for other in policies if change.before else ():
        if other.lever in named and any(agrees(told(scope), told(segment)) for segment in streams[other.name]):
            values = (lever, change.before, change.setting, change.since, scope, other.lever, other.name, 0, other.minimum_blocks)
            yield dict(zip(_ROW, values, strict=True))


def _updates(store: Store, until: datetime) -> Iterator[dict[str, Any]]:
    """What changed of each row that waits: blocks seen since, and whether that is enough in every segment, or never comes."""
    opened = {
        _Open(row["lever"], row["scope"], row["changed_at"], row["policy"]): row["blocks_seen"]
        for row in store.rows("select lever, scope, changed_at, policy, blocks_seen from revalidations where done_at is null")
    }
    seen = store.rows(files.question("revalidation_seen")) if opened else []
    for one, before in opened.items():
        mine = [row for row in seen if _Open(row["lever"], row["scope"], row["changed_at"], row["policy"]) == one and _is_of(row)]
        ends = [row["enough_at"] for row in mine]
        blocks = min((row["blocks"] for row in mine), default=0)
        done_at, outcome = (max(ends), JUDGED) if ends and None not in ends else (None, None)
        if done_at is None and until - one.changed_at > GIVEN_UP_AFTER:
            done_at, outcome = one.changed_at + GIVEN_UP_AFTER, UNJUDGED
        if done_at is not None or blocks != before:
            key = {"lever": one.lever, "scope": one.scope, "policy": one.policy}
            yield key | {"blocks": blocks, "done_at": done_at, "outcome": outcome}


def _is_of(row: Mapping[str, Any]) -> bool:
    return agrees(told(row["scope"]), told(row["segment"]))


def _supersede(transaction: Transaction, row: Mapping[str, Any]) -> None:
    values = {name: row[name] for name in ("lever", "scope", "policy", "changed_at")}
    transaction.execute(f"update revalidations set done_at = $changed_at, outcome = '{SUPERSEDED}' where {_SAME}", values)


def _streams(store: Store, policy: Policy) -> list[str]:
    asked = "select segment from current_verdicts where policy = $policy and lever = $lever"
    return [row["segment"] for row in store.rows(asked, {"policy": policy.name, "lever": policy.lever})]


def _segments(store: Store, policy: str, scope: str) -> list[str]:
    rows = store.rows("select segment from current_verdicts where policy = $policy", {"policy": policy})
    return [row["segment"] for row in rows if agrees(told(scope), told(row["segment"]))]
