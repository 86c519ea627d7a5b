"""Strata of many groups at once give what one group after another gives."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.inference import contrast, standardize, strata
from pipeline.inference.contrast import Reference, Sums
from pipeline.inference.strata import Level

BLOCKS = 12
WEIGHT = np.array([0.5, 0.45, 0.05, 0.3, 0.7])
OF = np.array([0, 0, 0, 1, 1])
LEVELS = (Level(np.arange(5), OF), Level(np.array([0, 1, 1, 2, 3]), np.array([0, 0, 1, 1])), Level(OF, np.array([0, 1])))


def arm(rng: np.random.Generator, level: float) -> Sums:
    """Requests of five strata; the second and the last are thin now and then."""
    n = rng.integers(5, 90, (5, BLOCKS, 1)).astype(float)
    n[[0, 3]] += 40
    mean = level * rng.lognormal(0, 0.1, n.shape)
    return Sums(n, mean * n, n.copy(), mean**2 * n * 1.2, n.copy(), mean * n)


@pytest.mark.parametrize("seed", range(4))
def test_each_group_has_what_the_kernel_of_one_group_gives_block_by_block(seed: int) -> None:
    rng = np.random.default_rng(seed)
    treated, control = arm(rng, 1.1), arm(rng, 1.0)
    found = strata.series(treated, control, WEIGHT, LEVELS, lambda a, b: (a, b), np.ones(1))
    used = set()
    for group, members in enumerate((slice(0, 3), slice(3, 5))):
        parents = [np.unique(level.nodes[members], return_inverse=True)[1] for level in LEVELS[1:]]
        reference = Reference.start(len(WEIGHT[members]))
        for number in range(BLOCKS):
            mine, theirs = (Sums(*(getattr(one, name)[members, number, 0] for name in Sums.__slots__)) for one in (treated, control))
            told, at = standardize.total(mine, theirs, reference, WEIGHT[members], parents)
            assert found.level[group, number, 0] == at
            for name in ("difference", "share", "ih", "b"):
                assert getattr(found, name)[group, number, 0] == pytest.approx(getattr(told, name), nan_ok=True), (number, name)
            reference = contrast.learn(reference, mine, theirs)
            used.add(at)
    assert len(used) > 1, "strata are merged now and then"


def test_the_first_block_says_nothing_and_refers_to_nothing() -> None:
    rng = np.random.default_rng(9)
    found = strata.series(arm(rng, 1.0), arm(rng, 1.0), WEIGHT, LEVELS, lambda a, b: (a, b), np.ones(1))
    assert np.isnan(found.difference[:, 0]).all()
    assert np.isfinite(found.difference[1, 1:]).any()


def test_no_strata_give_no_groups() -> None:
    empty = Sums(*np.zeros((6, 0, 3, 1)))
    nobody = Level(np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert strata.chosen(empty.n, empty.n, np.zeros(0), (nobody,)).shape == (0, 3, 1)
