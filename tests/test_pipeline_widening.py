"""More traffic is advised after a whole peak cycle that paid at every load, and never without; what is missing is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.inference.cycle import Widening
from pipeline.widening import Blocks, advised, seen

PER_DAY = 288


def week(gain: float = 0.2, at_peak: float = 0.2, days: int = 8, blind_above: float = np.inf) -> Blocks:
    """Days of the same swing of load; above a load of `blind_above` control has no requests."""
    rng = np.random.default_rng(5)
    load = np.tile(1000 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(PER_DAY) / PER_DAY)), days)
    truth = np.where(load > np.quantile(load, 0.9), at_peak, gain)
    control = np.where(load > blind_above, 0.0, load * 0.1)
    noisy = truth + rng.normal(0, 0.02, len(load))
    difference = np.where(control > 0, -noisy / (1 - 0.9 * noisy), np.nan)
    share = np.where(control > 0, 0.9, np.nan)
    return Blocks(load, load * 0.9, control, difference, share, np.ones(len(load), np.bool_), 300.0)


def asked(blocks: Blocks, *, guard_log_m: float = 0.0, split_off: bool = False) -> Widening:
    return advised(blocks, gain_on=0.05, guard_log_m=guard_log_m, guard_threshold=5760, split_off=split_off)[0]


def test_a_whole_cycle_that_pays_at_every_load_may_widen() -> None:
    assert asked(week()) == Widening(True, ())


def test_the_gain_is_that_of_the_contrasts_and_holds_at_any_look() -> None:
    found = seen(week())
    assert 0.18 < found.gain_low < 0.2
    assert 0.17 < found.peak_gain_low < 0.2


@pytest.mark.parametrize(
    ("blocks", "missing"),
    [
        (week(gain=0.2, at_peak=-0.1), "at the highest tenth of load the gain is at least"),
        (week(gain=0.03, at_peak=0.03), "at least 5.0 % is asked for"),
        (week(blind_above=1300), "of the week's highest"),
        (week(blind_above=1300), "load deciles [8, 9, 10]"),
        (replace(week(), in_epoch=np.arange(8 * PER_DAY) > 8 * PER_DAY - 100), "8.2 h of a cycle of 24 h"),
        (week(days=2), "48.0 h of a cycle of 168 h"),
    ],
)
def test_what_is_missing_is_said_in_numbers(blocks: Blocks, missing: str) -> None:
    told = asked(blocks)
    assert not told.may
    assert any(missing in one for one in told.missing), told.missing


def test_a_guardrail_or_a_split_that_is_off_blocks_widening() -> None:
    assert asked(week(), guard_log_m=0.6 * np.log(5760)).missing == ("a guardrail's evidence is past the root of its threshold",)
    assert asked(week(), split_off=True).missing == ("requests are not split between the arms as meant",)
    assert asked(week(), guard_log_m=-np.inf).may


def test_blocks_without_any_contrast_know_no_gain() -> None:
    found = seen(replace(week(), difference=np.full(8 * PER_DAY, np.nan)))
    assert np.isnan([found.gain_low, found.peak_gain_low]).all()
