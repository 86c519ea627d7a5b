"""The rows of one run of judging in, all of them in one transaction out: policies, verdicts, current verdicts and flips."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import polars as pl

from alerts import canonical, closings
from alerts.chain import Policy
from alerts.closings import Closings
from alerts.outcome import CURRENT, VERDICTS, Outcome
from queries.store import Store, Transaction

_TIME = pl.Datetime("us", "UTC")


def write(
    store: Store,
    policies: Sequence[Policy],
    outcome: Outcome,
    flips: list[dict[str, Any]],
    loaded_at: datetime | None,
    ended: Closings = closings.NOTHING,
) -> int:
    """All rows of one run in one transaction, and their number; no transaction where there is nothing to write.

    `loaded_at` is set where the set of policies has changed; `ended` is what is over because of that.
    """
    if loaded_at is None and not outcome.current and not ended:
        return 0
    rows = 0
    with store.write() as transaction:
        if loaded_at is not None:
            rows += _write_policies(transaction, policies, loaded_at)
        if outcome.verdicts:
            rows += transaction.insert("verdicts", pl.DataFrame(outcome.verdicts, schema=VERDICTS, orient="row"))
        if flips:
            rows += transaction.using(
                pl.DataFrame(flips, schema_overrides={"decided_at": _TIME}),
                "insert into flips by name select * from incoming anti join flips using (flip_id)",
            )
        if outcome.current:
            rows += replace_current(transaction, pl.DataFrame(list(outcome.current.values()), schema=CURRENT, orient="row"))
        rows += closings.write(transaction, ended)
    return rows


def bodies(policies: Sequence[Policy]) -> dict[str, str]:
    """The body of each policy as JSON text, by its name."""
    return {policy.name: canonical.text(msgspec.to_builtins(policy)) for policy in policies}


def replace_current(transaction: Transaction, rows: pl.DataFrame) -> int:
    """Each stream's latest row in the place of the one before."""
    transaction.using(
        rows,
        "delete from current_verdicts using incoming where current_verdicts.policy = incoming.policy"
        " and current_verdicts.lever = incoming.lever and current_verdicts.segment = incoming.segment",
    )
    return transaction.insert("current_verdicts", rows)


def _write_policies(transaction: Transaction, policies: Sequence[Policy], loaded_at: datetime) -> int:
    transaction.execute("delete from policies")
    texts = bodies(policies)
    rows = [
        {
            "policy": policy.name,
            "version": str(policy.version),
            "lever": policy.lever,
            "owner": policy.owner,
            "body": texts[policy.name],
            "loaded_at": loaded_at,
            "shadow": policy.shadow,
        }
        for policy in policies
    ]
    return transaction.insert("policies", pl.DataFrame(rows)) if rows else 0
