"""A store, policies and a segment in, the budget ledgers of a lever there out, as `GET /api/budgets` answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from alerts import ledger
from alerts.chain import Policy
from queries.store import Store


def budgets(store: Store, policies: Sequence[Policy], lever: str, segment: str, until: datetime | None = None) -> list[dict[str, Any]]:
    """Per policy of the lever: `policy`, `until`, the ledger's `rows` and what they say; nothing where no effect is known."""
    end = until or store.rows("select max(until) as until from effects")[0]["until"]
    if end is None:
        return []
    of = [policy for policy in policies if policy.lever == lever]
    found = ledger.read_all(store, [(policy, segment, end) for policy in of])
    return [{"policy": policy.name, "until": end, **one.plain()} for policy, one in zip(of, found, strict=True)]
