"""Block contrasts: what each arm's sums say of treated against control, and when they say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import contrast
from pipeline.inference.contrast import Reference, Sums


def sums(num: list[float], den: list[float] | None = None) -> Sums:
    """One stream's sums of requests, one entry a request."""
    a = np.array(num)
    d = np.ones_like(a) if den is None else np.array(den)
    return Sums(*(np.array([float(x)]) for x in (len(a), a.sum(), d.sum(), (a * a).sum(), (d * d).sum(), (a * d).sum())))


def taught(treated: Sums, control: Sums, blocks: int = 3) -> Reference:
    reference = Reference.start(1)
    for _ in range(blocks):
        reference = contrast.learn(reference, treated, control)
    return reference


def drawn(rng: np.random.Generator, n: int, ratio: float, longer: float = 1.0) -> Sums:
    d = rng.poisson(100 * longer, n) + 1.0
    return sums(list(ratio * d * np.exp(rng.normal(0, 0.3, n) - 0.045)), list(d))


def test_the_first_block_only_teaches_the_reference() -> None:
    arm = sums([1.0] * 10)
    assert np.isnan(contrast.block(arm, arm, Reference.start(1)).difference[0])
    assert contrast.block(arm, arm, taught(arm, arm, 1)).difference[0] == 0.0


def test_a_mean_is_its_own_pseudo_value_whatever_the_reference() -> None:
    treated, control = sums([1.0, 2.0, 3.0, 4.0, 5.0]), sums([1.0, 1.0, 2.0, 2.0, 4.0, 2.0])
    found = contrast.block(treated, control, taught(sums([9.0] * 5), sums([7.0] * 5)))
    level = (15 + 12) / 11
    assert found.level[0] == pytest.approx(level)
    assert found.difference[0] == pytest.approx((3 - 2) / level)
    assert found.ih[0] == pytest.approx(1 / 5 + 1 / 6)


@pytest.mark.parametrize(("n_treated", "n_control"), [(4, 50), (50, 4), (0, 50)])
def test_an_arm_with_fewer_than_five_requests_says_nothing(n_treated: int, n_control: int) -> None:
    arm = sums([1.0] * 10)
    found = contrast.block(sums([1.0] * n_treated), sums([1.0] * n_control), taught(arm, arm))
    assert np.isnan([found.difference[0], found.ih[0], found.b[0], found.level[0], found.share[0]]).all()


def test_a_block_in_which_both_arms_are_zero_says_nothing() -> None:
    arm = sums([0.0] * 10)
    assert np.isnan(contrast.block(arm, arm, taught(arm, arm)).difference[0])


@pytest.mark.parametrize(("sign", "ratio", "harmful"), [(1.0, 1.1, True), (1.0, 0.9, False), (-1.0, 0.9, True), (-1.0, 1.1, False)])
def test_positive_is_worse_whichever_direction_is_better(sign: float, ratio: float, harmful: bool) -> None:
    treated, control = sums([ratio] * 100), sums([1.0] * 100)
    found = contrast.block(treated, control, taught(treated, control), sign=sign)
    assert bool(found.difference[0] > 0) is harmful


@pytest.mark.parametrize("theta0", [1.0, 0.9])
@pytest.mark.parametrize("longer", [1.0, 1.3, 0.7])
def test_a_ratio_at_its_null_leans_to_no_side_even_where_requests_are_longer_than_before(theta0: float, longer: float) -> None:
    """Both arms get requests of other lengths than the blocks from which the reference was taken."""
    rng = np.random.default_rng(4)
    reference = taught(drawn(rng, 4000, 0.025 * theta0), drawn(rng, 4000, 0.025))
    found = [contrast.block(drawn(rng, 400, 0.025 * theta0, longer), drawn(rng, 60, 0.025, longer), reference, theta0) for _ in range(400)]
    differences = np.array([one.difference[0] for one in found])
    assert abs(differences.mean()) < 3 * differences.std() / np.sqrt(400)


def test_the_requests_own_noise_is_what_b_says() -> None:
    rng = np.random.default_rng(5)
    reference = taught(drawn(rng, 4000, 0.025), drawn(rng, 4000, 0.025))
    found = [contrast.block(drawn(rng, 400, 0.025), drawn(rng, 60, 0.025), reference) for _ in range(600)]
    variance = np.var([one.difference[0] for one in found])
    assert variance == pytest.approx(np.mean([one.b[0] * one.ih[0] for one in found]), rel=0.2)


def test_what_is_charged_to_each_request_is_in_all_sums() -> None:
    plain = Sums(*np.array([[3.0], [6.0], [30.0], [14.0], [302.0], [62.0]]))  # a = 1, 2, 3; d = 9, 10, 11
    charged = plain.charged(np.array([0.5]))
    again = sums([1.5, 2.5, 3.5], [9.0, 10.0, 11.0])
    assert [field[0] for field in (charged.num, charged.num_sq, charged.num_den)] == pytest.approx(
        [field[0] for field in (again.num, again.num_sq, again.num_den)]
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.0, 1.2, 2.0])
def test_the_gain_is_relative_to_control_however_large_treated_is(sign: float, ratio: float) -> None:
    treated, control = sums([ratio] * 95), sums([1.0] * 5)
    found = contrast.block(treated, control, taught(treated, control), sign=sign)
    assert contrast.gain(found.difference, found.share, sign)[0] == pytest.approx(sign * (1 - ratio))


def test_theta0_is_the_ratio_at_the_least_gain() -> None:
    assert contrast.theta0(0.05, 1.0) == pytest.approx(0.95)
    assert contrast.theta0(0.05, -1.0) == pytest.approx(1.05)


def test_a_block_without_requests_leaves_the_reference_of_that_arm() -> None:
    arm, none = sums([1.0] * 10), sums([])
    before = taught(arm, arm)
    after = contrast.learn(before, none, arm)
    assert after.treated_n[0] == before.treated_n[0]
    assert after.control_n[0] > before.control_n[0]


def test_the_order_of_streams_does_not_matter() -> None:
    rng = np.random.default_rng(6)
    treated, control = Sums(*rng.uniform(5, 9, (6, 4))), Sums(*rng.uniform(5, 9, (6, 4)))
    reference = contrast.learn(Reference.start(4), treated, control)
    order = np.array([2, 0, 3, 1])
    turned = [type(one)(*(getattr(one, name)[order] for name in one.__slots__)) for one in (treated, control, reference)]
    assert (contrast.block(*turned).difference == contrast.block(treated, control, reference).difference[order]).all()
