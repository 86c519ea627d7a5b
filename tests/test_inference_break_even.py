"""Where a lever stops paying: the band holds at every look, says what is not resolved, and gives way where the order is refuted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.inference import break_even
from pipeline.inference.break_even import LOSES, OPEN, PAYS
from pipeline.inference.break_even_point import centers, isotonic, line
from pipeline.inference.interval import Running

Reals = npt.NDArray[np.float64]
KEYS = 2.0 ** np.arange(8)
CROSSING = 15.1
TRUTH = 0.12 * np.log2(CROSSING / KEYS)  # -1 % at 16
ALPHA = 0.05


def seen(means: list[float], spread: float = 0.01, blocks: int = 40) -> Running:
    """One stream whose buckets have these mean gains; NaN = no block there."""
    sums = break_even.start(1, len(means))
    for block in range(blocks):
        sums = sums.add(np.array([means]) + spread * (-1) ** block)
    return sums


def day(runs: int, noise: float, correlation: float, seed: int) -> list[Reals]:
    """The gains (runs, buckets) of each minute: a batch that walks with the hours, noise that remembers the minute before."""
    drawn = np.random.default_rng(seed)
    walk, left, minutes = np.zeros(runs), np.zeros(runs), []
    for minute in range(1440):
        walk = 0.95 * walk + drawn.normal(0, 0.25, runs)
        left = correlation * left + drawn.normal(0, noise * np.sqrt(1 - correlation**2), runs)
        at = np.clip(np.round(3.5 + 1.6 * np.sin(2 * np.pi * (minute / 1440 - 0.25)) + walk), 0, 7).astype(int)
        gains = np.full((runs, 8), np.nan)
        gains[np.arange(runs), at] = TRUTH[at] + left
        minutes.append(gains)
    return minutes


def edges(signs: npt.NDArray[np.int64]) -> tuple[float, float]:
    """The median over runs of the largest key that pays and of the smallest that loses."""
    pays = [KEYS[of == PAYS].max(initial=0) for of in signs]
    loses = [KEYS[of == LOSES].min(initial=np.inf) for of in signs]
    return float(np.median(pays)), float(np.median(loses))


@pytest.mark.parametrize(("noise", "correlation"), [(0.3, 0.3), (0.2, 0.6)])
def test_a_band_looked_at_each_minute_of_a_day_miscovers_at_most_as_often_as_stated(noise: float, correlation: float) -> None:
    runs = 150
    sums, is_wrong, refuted, found = break_even.start(runs, 8), np.zeros(runs, bool), np.zeros(runs, bool), {}
    for minute, gains in enumerate(day(runs, noise, correlation, seed=7), start=1):
        sums = sums.add(gains)
        band = break_even.band(sums, ALPHA, was_refuted=refuted)
        refuted = band.is_refuted
        is_wrong |= ((band.signs == PAYS) & (TRUTH < 0)).any(axis=1) | ((band.signs == LOSES) & (TRUTH > 0)).any(axis=1)
        if minute in (60, 1440):
            found[minute] = edges(band.signs)
    assert is_wrong.mean() <= ALPHA + 2.33 * np.sqrt(ALPHA * (1 - ALPHA) / runs)
    assert refuted.mean() <= ALPHA
    assert found[60][1] == np.inf
    assert found[1440] == (8, 32)  # 16, where the gain is -1 %, is rightly open
    point, straight = np.median(isotonic(KEYS, sums)), np.nanmedian(line(KEYS, sums).points)
    assert point == pytest.approx(CROSSING, rel=0.05)
    assert straight == pytest.approx(CROSSING, rel=0.05)


def test_a_bucket_without_a_block_gains_at_least_what_a_bucket_beyond_it_does() -> None:
    band = break_even.band(seen([np.nan, 0.3, np.nan, -0.2, np.nan]), ALPHA)
    assert band.signs.tolist() == [[PAYS, PAYS, OPEN, LOSES, LOSES]]
    assert not band.is_refuted.any()


def test_a_gain_that_rises_along_the_key_is_the_mirror_of_one_that_falls() -> None:
    falling = break_even.band(seen([0.3, 0.1, 0.001, -0.2]), ALPHA)
    rising = break_even.band(seen([-0.2, 0.001, 0.1, 0.3]), ALPHA, falls=False)
    np.testing.assert_array_equal(rising.signs[:, ::-1], falling.signs)
    np.testing.assert_array_equal(rising.low[:, ::-1], falling.low)
    assert isotonic(KEYS[:4], seen([-0.2, -0.1, 0.1, 0.3]), falls=False)[0] == pytest.approx(2 * np.sqrt(2))


def test_few_blocks_resolve_nothing() -> None:
    for blocks in (0, 1, 2, 3):
        band = break_even.band(seen([0.3, -0.3], blocks=blocks), ALPHA)
        assert band.signs.tolist() == [[OPEN, OPEN]]
    assert np.isnan(isotonic(KEYS[:2], seen([0.3, -0.3], blocks=0))[0])


def test_an_order_that_the_data_refutes_lets_every_bucket_stand_for_itself_as_long_as_the_epoch_lasts() -> None:
    sums = seen([-0.2, 0.3, 0.001, -0.3])
    band = break_even.band(sums, ALPHA)
    assert band.is_refuted.tolist() == [True]
    assert band.signs.tolist() == [[LOSES, PAYS, OPEN, LOSES]]
    later = break_even.band(seen([0.2, 0.1, 0.001, -0.3]), ALPHA, was_refuted=band.is_refuted)
    assert later.is_refuted.tolist() == [True]
    begun = break_even.restarted(sums, np.array([True]))
    assert break_even.band(begun, ALPHA).is_refuted.tolist() == [False]


def test_between_the_ends_of_the_band_a_lever_stays_as_it_is() -> None:
    signs = np.array([[PAYS, OPEN, LOSES]])
    assert break_even.settings(signs, np.array([[False, False, True]])).tolist() == [[True, False, False]]
    assert break_even.settings(signs, np.array([[True, True, True]])).tolist() == [[True, True, False]]


def test_extra_looks_and_the_order_of_streams_change_nothing() -> None:
    minutes = day(6, 0.2, 0.0, seed=3)[:200]
    looked, blind = break_even.start(6, 8), break_even.start(6, 8)
    for gains in minutes:
        looked = looked.add(gains)
        break_even.band(looked, ALPHA)
        blind = blind.add(gains)
    order = np.array([3, 0, 5, 1, 4, 2])
    whole, turned = break_even.band(blind, ALPHA), break_even.band(Running(looked.n[order], looked.s[order], looked.ss[order]), ALPHA)
    np.testing.assert_array_equal(whole.low[order], turned.low)
    np.testing.assert_array_equal(isotonic(KEYS, blind)[order], isotonic(KEYS, looked)[order])


def test_what_the_epoch_before_knew_is_held_against_new_gains_where_it_knew() -> None:
    against = break_even.contrary(np.array([[PAYS, OPEN, LOSES]]), np.array([[-0.1, -0.1, 0.2]]))
    np.testing.assert_array_equal(against, [[0.1, np.nan, 0.2]])


def test_dependent_blocks_widen_the_band() -> None:
    sums = seen([0.05, -0.05], spread=0.05)
    assert break_even.band(sums, ALPHA).signs.tolist() == [[PAYS, LOSES]]
    assert break_even.band(sums, ALPHA, kappa=8.0).signs.tolist() == [[OPEN, OPEN]]


def test_the_line_is_shown_where_it_fits_and_not_where_the_gains_bend() -> None:
    straight, bent = seen([0.3, 0.2, 0.1, 0.0, -0.1]), seen([0.3, 0.3, 0.3, 0.3, -0.9])
    assert line(KEYS[:5], straight).points[0] == pytest.approx(8.0)
    assert line(KEYS[:5], straight).slopes[0] == pytest.approx(-0.1)
    assert not line(KEYS[:5], bent).fits[0]
    assert np.isnan(line(KEYS[:5], bent).points[0])
    assert not line(KEYS[:3], seen([0.1, 0.0, -0.1])).fits[0]
    assert not line(KEYS[:5], straight, falls=False).fits[0]


def test_gains_of_one_sign_have_no_point() -> None:
    assert np.isnan(isotonic(KEYS[:3], seen([0.3, 0.2, 0.1]))[0])
    assert np.isnan(isotonic(KEYS[:3], seen([-0.1, -0.2, -0.3]))[0])


def test_a_bucket_is_stood_for_by_the_middle_of_its_whole_numbers() -> None:
    np.testing.assert_allclose(centers((2, 4, 8)), [1, np.sqrt(2 * 3), np.sqrt(4 * 7), np.sqrt(8 * 15)])


@pytest.mark.parametrize(
    ("signs", "falls", "told"),
    [
        ((OPEN, OPEN, OPEN), True, "not resolved yet in any bucket"),
        ((PAYS, PAYS, PAYS), True, "pays in every bucket"),
        ((LOSES, LOSES, LOSES), True, "loses in every bucket"),
        ((PAYS, OPEN, LOSES), True, "pays up to 1, loses from 4-7 on, not resolved yet between"),
        ((PAYS, PAYS, OPEN), True, "pays up to 2-3, not resolved yet elsewhere"),
        ((OPEN, LOSES, LOSES), True, "loses from 2-3 on, not resolved yet elsewhere"),
        ((LOSES, OPEN, PAYS), False, "pays from 4-7 on, loses up to 1, not resolved yet between"),
        ((PAYS, LOSES, LOSES), True, "pays up to 1, loses from 2-3 on"),
    ],
)
def test_a_band_is_told_in_a_sentence(signs: tuple[int, ...], falls: bool, told: str) -> None:
    assert break_even.words(signs, ("1", "2-3", "4-7"), falls=falls) == told


def test_a_refuted_order_is_told_bucket_by_bucket() -> None:
    told = break_even.words((LOSES, PAYS, OPEN), ("1", "2-3", "4-7"), is_refuted=True)
    assert told == "the gain does not go one way along the buckets: pays in 2-3; loses in 1; not resolved yet in 4-7"
