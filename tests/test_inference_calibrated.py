"""On simulated days the detector alarms falsely on at most one day in twenty, and finds harm about as soon as the documents say.

`make test-long` runs it with days of its own seeds; `make calibrate` makes the tables of docs/statistics.md.
"""

from __future__ import annotations

import numpy as np
import pytest
from inference_days import SCENARIOS, days, harmed, on_end
from inference_ratios import acceptance_days
from inference_watch import ACCEPTANCE, delays, watch
from quiet_week import BLOCKS, BLOCKS_A_DAY, LEVERS, blocks, is_flip, judged, quiet
from scipy.stats import binom

from alerts import policy

pytestmark = pytest.mark.long
SEED, DAYS, CHANGED_AT = 90_000, 300, 600
ALPHA = 0.05
MOST = binom.ppf(0.999, DAYS, ALPHA) / DAYS
"""A rate that a true one of 5 % passes once in a thousand such runs."""
SERVED = [
    ("N1 base", 5), ("N1 base", 10), ("N2 rotating", 5), ("N2 rotating", 10), ("N3 heavy tail", 10), ("N4 one control, 4 req/min", 30),
    ("N5 10 % control", 5), ("N6 noise by load", 5), ("N7 slow replicas", 30),
]  # fmt: skip
"""Scenarios, and lengths of blocks in minutes that the rules of length and of control let decide there."""
STATED = {  # the median delay in minutes of +10 and +20 %, by docs/statistics.md
    ("N1 base", 5): (50, 25),
    ("N2 rotating", 5): (55, 25),
    ("N3 heavy tail", 10): (100, 50),
    ("N4 one control, 4 req/min", 30): (210, 120),
    ("N5 10 % control", 5): (30, 20),
    ("N6 noise by load", 5): (70, 30),
}


@pytest.mark.parametrize(("name", "minutes"), SERVED)
def test_where_nothing_happens_at_most_a_day_in_twenty_alarms_on_either_side(name: str, minutes: int) -> None:
    found = watch(days(SCENARIOS[name], range(SEED, SEED + DAYS)), minutes).at_all()
    assert max(found) <= MOST


@pytest.mark.parametrize(("name", "minutes"), [("N8 fixed control", 5), ("N7 slow replicas", 10)])
def test_what_the_rules_refuse_would_alarm_more_often(name: str, minutes: int) -> None:
    found = watch(days(SCENARIOS[name], range(SEED, SEED + DAYS)), minutes).at_all()
    assert max(found) > MOST


@pytest.mark.parametrize(("name", "minutes"), STATED)
def test_harm_is_found_within_a_block_or_a_fifth_of_the_stated_delay(name: str, minutes: int) -> None:
    plain = days(SCENARIOS[name], range(SEED, SEED + DAYS))
    for effect, stated in zip((0.10, 0.20), STATED[name, minutes], strict=True):
        found = float(np.quantile(delays(watch(harmed(plain, effect, CHANGED_AT), minutes).harm, CHANGED_AT), 0.5, method="inverted_cdf"))
        assert found <= stated + max(minutes, 0.2 * stated)


@pytest.mark.parametrize("name", ["N1 base", "N2 rotating"])
def test_five_days_on_end_alarm_no_more_often_a_day(name: str) -> None:
    found = watch(on_end(days(SCENARIOS[name], range(SEED, SEED + DAYS)), 5), 5).at_all()
    assert max(found) / 5 <= MOST


def test_a_ratio_of_sums_keeps_the_rate() -> None:
    found = watch(acceptance_days(range(SEED, SEED + DAYS)), 5, metric=ACCEPTANCE).at_all()
    assert max(found) <= MOST


@pytest.mark.parametrize(("alike", "sd"), [(0.3, 0.03), (0.5, 0.05), (0.8, 0.05)])
def test_shipped_policies_flip_a_lever_that_does_nothing_at_most_once_in_fifty_days(alike: float, sd: float) -> None:
    policies = [one for one in policy.shipped() if one.lever in LEVERS]
    flips = sum(map(is_flip, judged(policies, blocks(quiet(34, SEED, alike=alike, sd=sd)))))
    rate = flips / (34 * len(policies)) / (BLOCKS / BLOCKS_A_DAY)
    assert rate <= 0.02
