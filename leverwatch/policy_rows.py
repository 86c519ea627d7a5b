"""Policies and back-tests in, the rows that the command line and the API answer with out."""

from __future__ import annotations

import json
from typing import Any

from alerts import wording
from alerts.backtest_told import Backtest
from alerts.chain import Policy, kind_of


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


def policy_row(policy: Policy, origin: str) -> dict[str, Any]:
    """A policy in short: whose it is, what it advises on which metrics, and where its text is from."""
    triggers = [
        {"kind": kind_of(one), "metric": one.metric, "action": one.action, "severity": one.severity or policy.severity}
        for one in policy.disable_when
    ]
    return {
        "policy": policy.name,
        "lever": policy.lever,
        "version": str(policy.version),
        "owner": policy.owner,
        "severity": policy.severity,
        "shadow": policy.shadow,
        "triggers": triggers,
        "from": origin,
    }
