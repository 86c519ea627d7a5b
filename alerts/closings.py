"""The policies that are loaded in, rows of flips out that end what people were told by those that are gone, or went into the shadow.

Who was told of a recommendation hears that it is over, whatever took away its policy: else it would stand forever where it was sent to.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import polars as pl

from alerts import canonical, wording
from alerts.chain import Policy
from queries import files
from queries.store import Store, Transaction

REMOVED, SHADOWED = "policy_removed", "shadowed"
Pair = tuple[str, str]
"""A policy and its lever."""
_TIME = pl.Datetime("us", "UTC")
_NO_MORE: Mapping[str, Any] = {
    **dict.fromkeys(("evidence", "commands", "steps"), ()),
    **dict.fromkeys(("query", "query_note", "commands_note", "ledger", "after_check", "served_by", "impact")),
}
"""What a notice says of the numbers that were judged and of what is to be done: nothing was judged, and nothing is asked for."""

log = logging.getLogger(__name__)


class Closings(NamedTuple):
    """What ends because of the policies that are loaded: `flips` of streams, and the policies whose streams leave, as of a moment."""

    flips: tuple[dict[str, Any], ...] = ()
    removed: tuple[Pair, ...] = ()
    removed_at: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.flips or self.removed)


NOTHING = Closings()


def find(store: Store, policies: Sequence[Policy], judged: Mapping[Pair, datetime]) -> Closings:
    """What is to be ended: of policies that have `judged` up to a block and are not loaded any more, and of those newly in shadow.

    Where no policy is loaded at all nothing is: that is a server that cannot read them, not an operator who wants none.
    """
    gone = tuple(sorted(judged.keys() - {(policy.name, policy.lever) for policy in policies}))
    if not policies or not judged or not (gone or any(policy.shadow for policy in policies)):
        return NOTHING
    asked = {"policies": [policy.name for policy in policies], "levers": [policy.lever for policy in policies]}
    rows = store.rows(files.question("closings"), asked | {"shadows": [policy.shadow for policy in policies]})
    horizon = max(judged.values())
    return Closings(tuple(_row(row, horizon) for row in rows), gone, horizon if gone else None)


def write(transaction: Transaction, closings: Closings) -> int:
    """Writes the flips, and takes the streams of removed policies out of `current_verdicts`; gives the number of rows."""
    rows = 0
    if closings.flips:
        frame = pl.DataFrame(list(closings.flips), schema_overrides={"decided_at": _TIME, "shadow": pl.Boolean, "severity": pl.String})
        rows += transaction.using(frame, "insert into flips by name select * from incoming anti join flips using (flip_id)")
    for policy, lever in closings.removed:
        pair = {"policy": policy, "lever": lever}
        for table in ("removed_policies", "current_verdicts"):
            transaction.execute(f"delete from {table} where policy = $policy and lever = $lever", pair)
        row = pl.DataFrame([pair | {"removed_at": closings.removed_at}], schema_overrides={"removed_at": _TIME})
        transaction.insert("removed_policies", row)
        log.warning("policy %s for %s is not loaded any more: its streams are closed, and who was told hears of it", policy, lever)
    return rows + len(closings.removed)


def removed(store: Store) -> dict[Pair, datetime]:
    """The policies that were in use and then were not, and the newest block that was judged then."""
    rows = store.rows("select policy, lever, removed_at from removed_policies")
    return {(row["policy"], row["lever"]): row["removed_at"] for row in rows}


def _row(row: Mapping[str, Any], horizon: datetime) -> dict[str, Any]:
    """A flip in the place of the stream's newest: dated right behind the newest block, so that whatever is judged next comes after it."""
    decided_at = max(horizon, row["last_at"]) + timedelta(seconds=1)
    after, code = ("on", REMOVED) if row["is_removed"] else (row["state"], SHADOWED)
    flip_id = canonical.digest([row["policy"], row["lever"], row["segment"], wording.utc(decided_at)])[:32]
    said = {
        "flip_id": flip_id,
        "verdict": "insufficient",
        "action": "hold",
        "state_before": row["state"],
        "state_after": after,
        "decided_at": wording.utc(decided_at),
        "reason_code": code,
        "reason": _reason(row),
    }
    notice = json.loads(row["notice"].replace(row["flip_id"], flip_id))
    return {
        "flip_id": flip_id,
        **{name: row[name] for name in ("policy", "lever", "segment", "severity")},
        **{name: said[name] for name in ("state_before", "state_after", "reason", "action")},
        "decided_at": decided_at,
        "shadow": bool(row["shadow"]) if row["is_removed"] else False,
        "notice": canonical.text(notice | said | _kept(_NO_MORE, notice)),
    }


def _reason(row: Mapping[str, Any]) -> str:
    state = wording.plain(row["state"])
    if row["is_removed"]:
        return (
            f"the policy {row['policy']} is not loaded any more: what it said here is over, with the stream {state}; nothing was measured"
        )
    return f"the policy {row['policy']} is in shadow from now on: it judges, and tells nobody; the stream is {state} as before"


def _kept(empty: Mapping[str, Any], notice: Collection[str]) -> dict[str, Any]:
    """The parts that are empty now, of those that a notice has."""
    return {name: value for name, value in empty.items() if name in notice}
