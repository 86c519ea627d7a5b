"""The gain at which a condition turns, and the null at which evidence of it is read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from alerts import policy
from alerts.chain import Compared
from alerts.conditions import gain_limit, holds
from alerts.effects import NULLS, Effect, effect_name
from pipeline.metrics import judged

T0 = datetime(2026, 3, 4, tzinfo=UTC)
ENOUGH = 20.0
SPEAKS_TO = {0.95: 0.05, 0.98: 0.02, 1.0: 0.0, 1.02: -0.02, 1.05: -0.05, 1.1: -0.1}
"""What a time has to be beyond, as a share of control's, and the null at which evidence says so."""


def turning(factor: float) -> Compared:
    return Compared(
        metric="ttft_s", is_="above" if factor >= 1 else "below", relative_to_control=factor, unit="ratio", for_blocks=1, source="here"
    )


@pytest.mark.parametrize("factor", SPEAKS_TO)
def test_a_factor_is_read_at_the_null_that_it_names(factor: float) -> None:
    assert gain_limit(turning(factor), judged()["ttft_s"]) == SPEAKS_TO[factor]


@pytest.mark.parametrize("factor", SPEAKS_TO)
def test_evidence_at_the_null_that_a_factor_names_is_enough_and_at_the_next_is_not_asked_for(factor: float) -> None:
    null = SPEAKS_TO[factor]
    logs = [ENOUGH if one == null else 0.0 for one in NULLS]
    effect = Effect("ttft_s", T0, T0, 24, 4000, 4000, 1.0, 1.0, 0.0, -0.5, 0.5, "control", 1.0, None)
    sides = {"evidence_below": logs, "evidence_above": [0.0] * 7} if factor >= 1 else {"evidence_below": [0.0] * 7, "evidence_above": logs}
    known = {"ttft_s": effect._replace(**sides)}
    assert holds(policy.shipped()[0], turning(factor), known)


def test_no_condition_of_a_shipped_policy_lies_a_hair_beside_a_null() -> None:
    beside = []
    for one in policy.shipped():
        for condition in (*one.disable_when, *one.gates, one.re_enable_when):
            limit = gain_limit(condition, judged()[effect_name(condition.metric)])
            beside += [(one.name, condition.metric, null) for null in NULLS if limit is not None and 0 < abs(limit - null) < 1e-6]
    assert beside == []
