"""Nothing is widened before every load of a full cycle was seen in both arms, and what is missing is said in numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.inference import cycle
from pipeline.inference.cycle import DAY_S, WEEK_S, Seen

BLOCKS_PER_DAY = 288
HOURS = np.arange(BLOCKS_PER_DAY) / BLOCKS_PER_DAY * 2 * np.pi
DAY_LOAD = 10 * (1 + 0.6 * np.sin(HOURS))
WEEK = np.tile(DAY_LOAD, 7)
ENOUGH = Seen(DAY_S, DAY_S, np.full(10, 28), 1.0, gain_low=0.07, peak_gain_low=0.01)


def asked(seen: Seen, **other: float) -> cycle.Widening:
    return cycle.widening(seen, gain_on=0.05, guard_log_m=other.pop("guard_log_m", 0.0), guard_threshold=5_760, split_off=False, **other)


def test_a_full_cycle_with_a_gain_everywhere_may_be_widened() -> None:
    assert asked(ENOUGH) == cycle.Widening(True, ())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"elapsed_s": DAY_S / 2}, "12.0 h of a cycle of 24 h"),
        ({"blocks_per_decile": np.array([28] * 8 + [5, 0])}, "load deciles [9, 10] have fewer than 6"),
        ({"peak_share": 0.8}, "80 % of the week's highest"),
        ({"gain_low": 0.04}, "the gain is at least 4.0 %; at least 5.0 % is asked for"),
        ({"peak_gain_low": -0.02}, "at the highest tenth of load the gain is at least -2.0 %; at least 0.0 % is asked for"),
        ({"gain_low": float("nan")}, "the gain is not known; at least 5.0 % is asked for"),
    ],
)
def test_each_thing_that_is_missing_blocks_and_is_said(change: dict[str, object], said: str) -> None:
    found = asked(replace(ENOUGH, **change))
    assert not found.may
    assert len(found.missing) == 1
    assert said in found.missing[0]


def test_a_guardrail_that_stirs_or_a_broken_split_blocks() -> None:
    assert asked(ENOUGH, guard_log_m=0.51 * np.log(5_760)).missing == ("a guardrail's evidence is past the root of its threshold",)
    found = cycle.widening(ENOUGH, gain_on=0.05, guard_log_m=0, guard_threshold=5_760, split_off=True)
    assert found.missing == ("requests are not split between the arms as meant",)


def test_a_small_loss_at_peak_may_stay_open_once_twenty_blocks_were_seen_there() -> None:
    uncertain = replace(ENOUGH, peak_gain_low=-0.01)
    assert asked(uncertain, loss_at_peak=0.02).may
    assert not asked(replace(uncertain, blocks_per_decile=np.full(10, 19)), loss_at_peak=0.02).may


def test_one_night_does_not_stand_for_a_day() -> None:
    """A lever that gains at night and loses at peak: 12 hours at low load leave the upper deciles empty."""
    night = DAY_LOAD[BLOCKS_PER_DAY // 2 :]
    both = np.ones(len(night), bool)
    blocks = cycle.blocks_per_decile(night, WEEK, both)
    assert blocks[:4].min() >= 6
    assert blocks[6:].sum() == 0
    assert cycle.peak_share(night, WEEK, both) == pytest.approx(10 / 16, rel=0.01)


def test_a_day_of_both_arms_fills_each_decile() -> None:
    blocks = cycle.blocks_per_decile(DAY_LOAD, WEEK, np.ones(BLOCKS_PER_DAY, bool))
    assert blocks.sum() == BLOCKS_PER_DAY
    assert blocks.min() >= 25


def test_blocks_without_control_or_load_do_not_count() -> None:
    load = np.where(np.arange(BLOCKS_PER_DAY) % 2 == 0, DAY_LOAD, np.nan)
    has_both = np.arange(BLOCKS_PER_DAY) % 4 == 0
    assert cycle.blocks_per_decile(load, WEEK, has_both).sum() == BLOCKS_PER_DAY // 4
    assert cycle.peak_share(load, WEEK, np.zeros(BLOCKS_PER_DAY, bool)) == 0.0
    assert (cycle.decile(load, np.full(5, np.nan)) == -1).all()


def test_days_that_differ_make_the_cycle_a_week() -> None:
    assert cycle.length_s(WEEK, BLOCKS_PER_DAY) == DAY_S
    quiet_weekend = np.concatenate([np.tile(DAY_LOAD, 5), np.tile(DAY_LOAD * 0.5, 2)])
    assert cycle.length_s(quiet_weekend, BLOCKS_PER_DAY) == WEEK_S


def test_with_less_than_a_week_of_load_a_week_is_asked_for() -> None:
    assert cycle.length_s(WEEK[: 6 * BLOCKS_PER_DAY], BLOCKS_PER_DAY) == WEEK_S
    unknown = WEEK.copy()
    unknown[:BLOCKS_PER_DAY] = np.nan
    assert cycle.length_s(unknown, BLOCKS_PER_DAY) == WEEK_S


def test_gaps_in_the_load_are_left_out() -> None:
    gaps = WEEK.copy()
    gaps[np.arange(len(gaps)) % 50 < 15] = np.nan
    assert cycle.length_s(gaps, BLOCKS_PER_DAY) == DAY_S
