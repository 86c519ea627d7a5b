"""A back-test in, the rows of its answer out: one object a change of verdict."""

from __future__ import annotations

import json
from typing import Any

from alerts import wording
from alerts.backtest_told import Backtest


def change_rows(found: Backtest) -> list[dict[str, Any]]:
    """Each change of verdict as `{policy, lever, segment, verdict, action, decided_at, reason}`, in the order they were decided."""
    return [
        {
            "policy": one.policy,
            "lever": one.lever,
            "segment": json.loads(one.segment),
            "verdict": one.verdict,
            "action": one.action,
            "decided_at": wording.utc(one.decided_at),
            "reason": one.reason,
        }
        for one in found.changes
    ]
