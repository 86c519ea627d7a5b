"""A shift of the mix is no effect: the standardized contrast stays, where the pooled one turns round."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import contrast as contrasts
from pipeline.inference import detector, scale, standardize
from pipeline.inference.contrast import Reference, Sums

SHORT_LONG = np.array([0.5, 0.5])
LEVEL_S = np.array([0.020, 0.040])  # short and long prompts


def block(rng: np.random.Generator, long_share: float, gain: float = 0.10) -> tuple[np.ndarray, np.ndarray]:
    """Sums and requests by stratum, treated and control: 1,900 requests of treated of which `long_share` are long, 100 of control."""
    arms = []
    for requests, share, factor in ((1_900, long_share, 1 - gain), (200, 0.5, 1.0)):
        n = np.array([requests * (1 - share), requests * share])
        arms.append(np.stack([n * LEVEL_S * factor * (1 + rng.normal(0, 0.4, 2) / np.sqrt(n)), n], axis=1))
    return arms[0], arms[1]


def contrast(treated: np.ndarray, control: np.ndarray) -> np.ndarray:
    mine, theirs = treated[:, 0] / treated[:, 1], control[:, 0] / control[:, 1]
    return (mine - theirs) / ((treated[:, 0] + control[:, 0]) / (treated[:, 1] + control[:, 1]))


@pytest.mark.parametrize(("long_share", "pooled_gain"), [(0.5, 0.10), (0.7, -0.02), (0.8, -0.08)])
def test_more_long_prompts_in_treated_change_the_pooled_effect_and_not_the_standardized_one(long_share: float, pooled_gain: float) -> None:
    rng = np.random.default_rng(6)
    blocks = [block(rng, long_share) for _ in range(200)]
    treated, control = sum(one[0] for one in blocks), sum(one[1] for one in blocks)
    found = standardize.mix(treated, control, SHORT_LONG)
    assert found.pooled == pytest.approx(pooled_gain, abs=0.012)
    assert found.standardized == pytest.approx(0.10, abs=0.01)
    assert found.strata == pytest.approx([0.10, 0.10], abs=0.015)
    assert found.is_misleading is (long_share > 0.5)


def test_block_by_block_the_standardized_contrast_is_the_effect() -> None:
    rng = np.random.default_rng(7)
    totals = []
    for _ in range(300):
        treated, control = block(rng, 0.8)
        totals.append(standardize.standardized(contrast(treated, control), treated[:, 1], control[:, 1], np.full(2, 0.16), SHORT_LONG))
    differences = np.array([one.difference for one in totals])
    assert differences.mean() == pytest.approx(-0.1 / 0.913, abs=0.008)  # relative to both arms, of which control is a part
    assert {one.coverage for one in totals} == {1.0}


def test_its_noise_is_what_ih_and_b_say() -> None:
    rng = np.random.default_rng(8)
    totals = []
    for _ in range(3_000):
        treated, control = block(rng, 0.7, gain=0.0)
        totals.append(standardize.standardized(contrast(treated, control), treated[:, 1], control[:, 1], np.full(2, 0.16), SHORT_LONG))
    spread = np.std([one.difference for one in totals])
    assert spread == pytest.approx(np.sqrt(totals[0].b * totals[0].ih), rel=0.05)


def test_a_stratum_without_data_is_left_out_up_to_a_tenth_of_the_weight() -> None:
    n = np.array([500.0, 500.0, 500.0])
    weight = np.array([0.5, 0.42, 0.08])
    kept = standardize.standardized(np.array([0.1, 0.2, np.nan]), n, n, np.ones(3), weight)
    assert kept.coverage == pytest.approx(0.92)
    assert kept.difference == pytest.approx((0.5 * 0.1 + 0.42 * 0.2) / 0.92)
    lost = standardize.standardized(np.array([0.1, np.nan, 0.1]), n, n, np.ones(3), weight)
    assert np.isnan(lost.difference)
    assert lost.coverage == pytest.approx(0.58)


def test_too_thin_strata_lose_their_finest_key_first() -> None:
    """Four strata of model and input length; level 1 has models alone, level 2 everything."""
    treated, weight = np.full(4, 900.0), np.full(4, 0.25)
    parents = [np.array([0, 0, 1, 1]), np.zeros(4, int)]
    levels = [standardize.level(treated, np.full(4, each), weight, parents) for each in (20.0, 12.0, 6.0, 4.0)]
    assert levels == [0, 1, 2, -1]


def test_weights_are_those_of_the_last_cycle_and_of_both_arms() -> None:
    assert standardize.weights(np.array([300.0, 100.0])).tolist() == [0.75, 0.25]
    assert standardize.weights(np.zeros(2)).tolist() == [0.0, 0.0]


def test_collapsed_sums_are_those_of_their_strata() -> None:
    sums = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert standardize.collapse(sums, np.array([1, 0, 1]), 2).tolist() == [[3.0, 4.0], [6.0, 8.0]]


def test_the_mix_of_strata_that_only_one_arm_has_is_not_told() -> None:
    treated, control = np.array([[1.0, 100.0], [5.0, 100.0]]), np.array([[1.0, 100.0], [0.0, 0.0]])
    found = standardize.mix(treated, control, SHORT_LONG)
    assert np.isnan(found.standardized)
    assert found.coverage == 0.5
    assert np.isnan(found.strata[1])
    assert not found.is_misleading


def test_where_higher_is_better_a_rise_is_a_gain() -> None:
    treated, control = np.array([[66.0, 100.0], [44.0, 100.0]]), np.array([[60.0, 100.0], [40.0, 100.0]])
    assert standardize.mix(treated, control, SHORT_LONG, sign=-1.0).standardized == pytest.approx(0.1)


def sums(n: list[float], mean_s: list[float]) -> Sums:
    """Of requests that all take the mean, by stratum."""
    count, value = np.array(n), np.array(mean_s)
    return Sums(count, count * value, count, count * value**2, count, count * value)


PARENTS = [np.array([0, 0, 1]), np.zeros(3, int)]
WEIGHT = np.array([0.4, 0.2, 0.4])


def test_a_block_with_enough_requests_is_standardized_over_the_strata_as_given() -> None:
    treated, control = sums([800, 400, 800], [0.018, 0.018, 0.036]), sums([40, 20, 40], [0.02, 0.02, 0.04])
    reference = contrasts.learn(Reference.start(3), treated, control)
    found, level = standardize.total(treated, control, reference, WEIGHT, PARENTS)
    assert level == 0
    assert contrasts.gain(np.array([found.difference]), np.array([found.share]))[0] == pytest.approx(0.10, abs=1e-9)


def test_a_thin_block_is_standardized_over_the_parents_and_the_coverage_stays_whole() -> None:
    """The second stratum has 5 control requests: models are left, input lengths dropped."""
    treated, control = sums([800, 400, 800], [0.018, 0.018, 0.036]), sums([40, 5, 40], [0.02, 0.02, 0.04])
    reference = contrasts.learn(Reference.start(3), treated, control)
    found, level = standardize.total(treated, control, reference, WEIGHT, PARENTS)
    assert (level, found.coverage) == (1, pytest.approx(1.0))
    assert contrasts.gain(np.array([found.difference]), np.array([found.share]))[0] == pytest.approx(0.10, abs=0.001)


def test_a_block_that_no_level_covers_says_nothing() -> None:
    treated, control = sums([800, 400, 800], [0.018] * 3), sums([3, 2, 4], [0.02] * 3)
    found, level = standardize.total(treated, control, Reference.start(3), WEIGHT, PARENTS)
    assert level == -1
    assert np.isnan(found.difference)


def drawn(rng: np.random.Generator, requests: np.ndarray, level_s: np.ndarray) -> Sums:
    """Of requests whose spread is 0.4 of their mean, by stratum."""
    n = rng.poisson(requests).astype(float)
    value = n * level_s * (1 + rng.normal(0, 0.4, len(n)) / np.sqrt(n))
    return Sums(n, value, n, n * level_s**2 * 1.16, n, value)


def pooled(arm: Sums) -> Sums:
    return Sums(*(np.array([getattr(arm, name).sum()]) for name in Sums.__slots__))


def watched(seed: int, *, standardized: bool) -> tuple[bool, float]:
    """(whether harm was alarmed in a day, the mean gain): it is 10 % in each stratum, and long prompts move to treated after 8 hours."""
    rng = np.random.default_rng(seed)
    state, log_m = scale.State.start(1, 12), detector.start(1)
    reference, alarmed, gains = Reference.start(2), False, []
    for block in range(288):
        mix = np.array([0.5, 0.5]) if block < 96 else np.array([0.2, 0.8])
        load = np.exp(rng.normal(0, 0.1))
        treated = drawn(rng, 1_900 * mix, LEVEL_S * load * 0.9 * np.exp(rng.normal(0, 0.005)))
        control = drawn(rng, 150 * np.array([0.5, 0.5]), LEVEL_S * load * np.exp(rng.normal(0, 0.02)))
        if standardized:
            told, _ = standardize.total(treated, control, reference, SHORT_LONG, [np.zeros(2, int)])
            difference, ih, b, share = (np.array([value]) for value in (told.difference, told.ih, told.b, told.share))
        else:
            whole = Reference(*(np.array([getattr(reference, name).sum()]) for name in Reference.__slots__))
            plain = contrasts.block(pooled(treated), pooled(control), whole)
            difference, ih, b, share = plain.difference, plain.ih, plain.b, plain.share
        log_m = detector.step(log_m, difference / scale.sd(state, ih))
        state = scale.update(state, difference, ih, b, detector.freezes(log_m, 5_760.0))
        alarmed |= bool(detector.alarms(log_m, 5_760.0)[0])
        if np.isfinite(difference[0]):
            gains.append(contrasts.gain(difference, share)[0])
        reference = contrasts.learn(reference, treated, control)
    return alarmed, float(np.mean(gains))


def test_a_shift_of_the_mix_alarms_in_the_pooled_stream_and_never_in_the_standardized_one() -> None:
    days = [watched(seed, standardized=True) for seed in range(4)]
    assert not any(alarmed for alarmed, _ in days)
    assert all(abs(gain - 0.10) < 0.01 for _, gain in days)
    assert all(watched(seed, standardized=False)[0] for seed in range(2))


def test_arms_of_one_mix_are_not_said_to_mislead_because_other_traffic_had_other_weights() -> None:
    """Both arms have 3 : 1 of the strata, the weights are of a day with 1 : 9: pooled and standardized differ, and neither lies."""
    control = np.array([[30.0, 30.0], [10.0, 10.0]]) * 100
    treated = control * np.array([[1.3, 1.0], [0.6, 1.0]]) * 3
    found = standardize.mix(treated, control, np.array([0.1, 0.9]))
    assert found.pooled < 0 < found.standardized
    assert not found.is_misleading
