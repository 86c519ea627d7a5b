"""Policies on tails: a condition may name a percentile whose arms are compared, and reads that percentile's effect."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from effect_evidence import evident

from alerts import streams
from alerts.conditions import explain, holds
from alerts.effects import BLOCKS_A_CYCLE, NULLS, Effect
from alerts.policy import PolicyError, parse, shipped_text
from alerts.sums import question
from queries.store import Store

T0 = datetime(2026, 3, 4, tzinfo=UTC)
TEXT = shipped_text("speculation-net-itl")
MEAN = 'metric = "ttft_s"\n'
FACTOR = 'relative_to_control = 1.25\nunit = "ratio"'


def policy(metric: str, limit: str = FACTOR) -> Any:
    """The shipped policy whose failure mode is watched by another metric, or held against another limit."""
    assert MEAN in TEXT
    assert FACTOR in TEXT
    text = TEXT.replace(MEAN, f'metric = "{metric}"\n').replace(FACTOR, limit, 1)
    return parse(text, "my.toml")


def effect(metric: str, **changes: Any) -> Effect:
    values: dict[str, Any] = {
        "since": T0,
        "until": T0,
        "blocks": 24,
        "n_a": 9000,
        "n_b": 4000,
        "value_a": 1.8,
        "value_b": 1.2,
        "gain": -0.5,
    }
    ends = {"gain_low": -0.6, "gain_high": -0.4, "basis": "control", "coverage": 1.0, "note": None}
    return evident(Effect(metric=metric, **(values | ends | changes)))


def logs(at_zero: float) -> list[float | None]:
    return [at_zero if null == 0.0 else None for null in NULLS]


def of(found: Any) -> Any:
    return next(trigger for trigger in found.disable_when if trigger.metric.startswith(("ttft", "tpot", "e2e")))


@pytest.mark.parametrize("metric", ["ttft_s_p50", "ttft_s_p95", "ttft_s_p99", "tpot_s_p95", "e2e_s_p95"])
def test_a_condition_may_name_a_percentile_that_is_compared(metric: str) -> None:
    assert of(policy(metric)).metric == metric


@pytest.mark.parametrize("metric", ["ttft_s_p90", "queue_s_p95", "e2e_s_p50", "ttft_p95"])
def test_a_percentile_that_is_not_compared_is_refused(metric: str) -> None:
    with pytest.raises(PolicyError, match=f"metric '{metric}' is unknown"):
        policy(metric)


def test_relative_to_control_reads_the_gain_of_the_percentile_s_own_row() -> None:
    found = policy("ttft_s_p95")
    good, bad = effect("ttft_s_p95", gain=-0.1, gain_low=-0.2, gain_high=0.0), effect("ttft_s_p95")
    assert holds(found, of(found), {"ttft_s_p95": bad, "ttft_s": good}) is True
    assert holds(found, of(found), {"ttft_s_p95": good, "ttft_s": bad}) is False
    assert holds(found, of(found), {"ttft_s": bad}) is None
    assert "TTFT p95 1.8 s against 1.2 s in control, gain -50 % (-60..-40 %)" in explain(found, of(found), {"ttft_s_p95": bad})


def test_a_limit_of_no_gain_is_decided_by_the_evidence_of_exceedances() -> None:
    found = policy("ttft_s_p95", 'relative_to_control = 1.0\nunit = "ratio"')
    weak, strong = (effect("ttft_s_p95", evidence_below=logs(log), tests=4) for log in (5.0, 12.0))
    assert [holds(found, of(found), {"ttft_s_p95": one}) for one in (weak, strong)] == [False, True]
    assert BLOCKS_A_CYCLE == 288


def test_a_threshold_is_held_against_treated_s_percentile() -> None:
    found = policy("ttft_s_p95", 'threshold = 2.0\nunit = "s"')
    said = [holds(found, of(found), {"ttft_s_p95": effect("ttft_s_p95", value_a=value)}) for value in (1.9, 2.1)]
    assert said == [False, True]


def test_the_sums_behind_a_percentile_are_counts_by_bin() -> None:
    asked = question("speculation", '{"model":"m"}', effect("ttft_s_p95")).sql
    assert "as bin" in asked
    assert "numerator" not in asked


def test_percentiles_that_no_policy_names_are_not_read(tmp_path: Path) -> None:
    store, ends = Store(tmp_path), {"until": T0, "since": T0}
    rows = [
        {"lever": "speculation", "segment": "{}", "metric": name, "arm_a": "treated"}
        for name in ("ttft_s", "ttft_s_p95", "ttft_s_p99", "tpot_s_p50")
    ]
    plain = {"blocks": 1, "n_a": 1, "n_b": 1, "method": "m", "basis": "control", "coverage": 1.0}
    with store.write() as transaction:
        transaction.insert("effects", pl.DataFrame([row | ends | plain for row in rows]))
    starts = {"speculation": T0 - timedelta(hours=1)}
    for named, expected in (("ttft_s", {"ttft_s_p95"}), ("ttft_s_p99", {"ttft_s_p95", "ttft_s_p99"})):
        assert set(streams.effects(store, starts, [policy(named)])["metric"]) - {"ttft_s"} == expected
    store.close()
