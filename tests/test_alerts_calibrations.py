"""Uncalibrated streams: nothing is decided by them, and the reason says what was seen and what mends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from alerts import calibrations, conditions
from alerts.effects import Effect
from alerts.judge import Standing, judge
from alerts.policy import shipped
from pipeline.inference import calibration
from pipeline.measure import BLOCK_S

UNTIL = datetime(2026, 3, 2, 12, tzinfo=UTC)
POLICY = next(policy for policy in shipped() if policy.name == "speculation-net-itl")
HARMED = Effect(
    metric="net_itl_s", since=UNTIL - timedelta(hours=2), until=UNTIL, blocks=24, n_a=900, n_b=600, value_a=0.025, value_b=0.02,
    gain=-0.25, gain_low=-0.3, gain_high=-0.2, basis="control", coverage=1.0, note=None, evidence_below=[50.0] * 7,
    evidence_above=[-5.0] * 7, tests=1, permission="rotating", uncalibrated=True, contrast_spread=1.34, contrast_neighbors=0.41,
    blocks_together=2,
)  # fmt: skip


def test_the_limits_are_those_of_the_pipeline() -> None:
    limits = (calibrations.MOST_SPREAD, calibrations.MOST_NEIGHBORS, calibrations.BLOCK_S)
    assert limits == (calibration.MOST_SPREAD, calibration.MOST_NEIGHBORS, BLOCK_S)


@pytest.mark.parametrize("state", ["on", "off_recommended"])
def test_an_uncalibrated_stream_decides_nothing_and_keeps_its_state(state: str) -> None:
    found = judge(POLICY, {"net_itl_s": HARMED}, Standing(state, UNTIL - timedelta(hours=5)), UNTIL)  # type: ignore[arg-type]
    assert (found.verdict, found.action, found.reason_code, found.state) == ("insufficient", "hold", "uncalibrated", state)
    assert found.reason.startswith(
        "net ITL: a day of contrasts of 10 min is uncalibrated: spread 1.34 of at most 1.2, neighbors' correlation 0.41 of at most "
        "0.3; `leverwatch calibrate` finds a scale that holds, or longer blocks"
    )


def test_a_calibrated_one_with_the_same_numbers_is_decided() -> None:
    harm = next(trigger for trigger in POLICY.disable_when if trigger.metric == "net_itl_gain")
    assert conditions.holds(POLICY, harm, {"net_itl_s": HARMED._replace(uncalibrated=False)})
    assert conditions.holds(POLICY, harm, {"net_itl_s": HARMED}) is None


def test_a_stream_whose_splits_found_no_scale_says_so() -> None:
    found = calibrations.doubt(HARMED._replace(contrast_spread=None, contrast_neighbors=None))
    assert found is not None
    assert "splits of one arm found no scale that holds" in found[1]


def test_an_arm_s_own_value_is_judged_all_the_same() -> None:
    assert conditions.shortfall(POLICY, HARMED, compared=False) is None
