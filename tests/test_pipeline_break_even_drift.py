"""Signs of buckets that are held to: when they count as stale, what a new epoch forgets, and how often chance alone speaks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline import break_even_drift
from pipeline.break_even_drift import Drift, inflation, step
from pipeline.inference import break_even
from pipeline.inference.break_even import LOSES, OPEN, PAYS
from pipeline.inference.contrast import Contrast

BUCKETS = 5
Reals = npt.NDArray[np.float64]


def contrast(gains: Reals) -> Contrast:
    """A block's contrasts of these gains, of 400 and 60 requests."""
    told = np.where(np.isfinite(gains), 1.0, np.nan)
    return Contrast(-gains, told * (1 / 400 + 1 / 60), told * 0.1, told * 0.02, told * 0.87)


def after(drift: Drift, mean: float, blocks: int, seed: int) -> Drift:
    drawn = np.random.default_rng(seed)
    for _ in range(blocks):
        drift = break_even_drift.step(drift, contrast(drawn.normal(mean, 0.06, len(drift.signs))), BUCKETS)
    return drift


def held(sign: int, streams: int = 1) -> Drift:
    """Streams whose scale is known, and that are held to a sign."""
    learned = after(Drift.start(streams), 0.1, 60, seed=1)
    return break_even_drift.held(learned, np.full(streams, sign, np.int64), np.zeros(streams, np.bool_))


def is_stale(drift: Drift, sign: int = OPEN) -> npt.NDArray[np.bool_]:
    return break_even_drift.is_stale(drift, np.full(len(drift.signs), sign, np.int64), BUCKETS)


def test_nothing_is_stale_of_which_nothing_was_said() -> None:
    drift = after(Drift.start(3), -0.3, 100, seed=2)
    assert np.isneginf(drift.log_m).all()
    assert not is_stale(drift).any()


def test_a_sign_is_stale_soon_after_the_gain_has_turned_and_not_before() -> None:
    for sign, gain in ((PAYS, -0.1), (LOSES, 0.1)):
        assert not is_stale(after(held(sign), -gain, 100, seed=3))[0]
        assert is_stale(after(held(sign), gain, 30, seed=3))[0]


def test_an_epoch_that_says_the_opposite_as_a_whole_is_stale_at_once() -> None:
    assert is_stale(held(PAYS), LOSES)[0]
    assert not is_stale(held(PAYS), PAYS)[0]
    assert not is_stale(held(OPEN), LOSES)[0]


def test_a_sign_is_kept_while_the_band_is_open_again_and_taken_anew_once_the_order_is_refuted() -> None:
    drift = after(held(PAYS), -0.1, 5, seed=4)
    is_open = np.array([OPEN])
    kept = break_even_drift.held(drift, is_open, np.array([False]))
    assert (kept.signs[0], kept.log_m.tolist()) == (PAYS, drift.log_m.tolist())
    anew = break_even_drift.held(drift, is_open, np.array([True]))
    assert anew.signs[0] == OPEN
    assert np.isneginf(anew.log_m).all()


def test_chance_alone_makes_at_most_one_pair_in_twenty_stale_in_a_day() -> None:
    pairs = 400
    drift, drawn = held(PAYS, pairs * BUCKETS), np.random.default_rng(5)
    over = np.zeros(pairs, np.bool_)
    for _ in range(break_even_drift.BLOCKS_A_CYCLE):
        drift = break_even_drift.step(drift, contrast(drawn.normal(0.0, 0.06, pairs * BUCKETS)), BUCKETS)
        over |= is_stale(drift).reshape(pairs, BUCKETS).any(axis=1)
    assert 0 <= over.mean() <= 0.05


def test_a_restart_forgets_signs_and_evidence_and_compares_no_block_across_the_change() -> None:
    drift = after(held(PAYS, 2), -0.1, 30, seed=6)
    begun = break_even_drift.restarted(drift, np.array([True, False]))
    assert begun.signs.tolist() == [OPEN, PAYS]
    assert np.isneginf(begun.log_m[0]).all()
    assert np.isnan(begun.scale.known.recent[0]).all()
    np.testing.assert_array_equal(begun.numbers()[1], drift.numbers()[1])
    np.testing.assert_array_equal(begun.scale.known.squares, drift.scale.known.squares)


def test_what_is_kept_comes_back_as_it_was() -> None:
    drift = after(held(LOSES, 3), 0.0, 7, seed=7)
    again = Drift.of_numbers(drift.numbers())
    assert drift.numbers().shape == (3, break_even_drift.WIDTH)
    np.testing.assert_array_equal(again.signs, drift.signs)
    np.testing.assert_array_equal(again.log_m, drift.log_m)
    np.testing.assert_array_equal(again.scale.numbers(), drift.scale.numbers())


def test_a_bucket_without_both_arms_is_carried_on_unchanged() -> None:
    drift = held(PAYS)
    np.testing.assert_array_equal(break_even_drift.step(drift, contrast(np.array([np.nan])), BUCKETS).numbers(), drift.numbers())


def covered(rho: float, *, knows: bool, pairs: int = 100) -> float:
    """In which share of pairs a band of 4 buckets held all true gains at every block of a day whose gains wander by `rho`."""
    rng, true = np.random.default_rng(8), np.tile([0.1, 0.03, -0.03, -0.1], (pairs, 1))
    sums, drift, wander = break_even.start(*true.shape), Drift.start(true.size), np.zeros(true.shape)
    held, each = np.ones(pairs, np.bool_), np.ones(true.size)
    for _ in range(288):
        wander = rho * wander + np.sqrt(1 - rho**2) * rng.normal(0, 0.05, true.shape)
        sums = sums.add(true + wander)
        drift = step(drift, Contrast(-(true + wander).reshape(-1), each / 300, each * 0.05, each, each / 2), true.shape[1])
        kappa = inflation(drift, true.shape[1]) if knows else 1.0
        found = break_even.band(sums, 0.05, kappa=kappa)
        held &= ((found.low <= true) & (true <= found.high)).all(axis=1)
    return float(held.mean())


def test_bands_of_blocks_that_are_alike_hold_only_with_their_inflation() -> None:
    assert covered(0.5, knows=False) < 0.6
    assert covered(0.5, knows=True) >= 0.95
    assert covered(0.0, knows=True) >= 0.95


def test_an_inflation_that_is_not_known_yet_is_none() -> None:
    assert inflation(Drift.start(8), 4).tolist() == [[1.0], [1.0]]
