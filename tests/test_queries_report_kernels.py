"""Sums and percentiles of groups, held against NumPy's."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from queries import report_kernels

SHARES = np.array([0.0, 0.5, 0.95, 0.99, 1.0])
ALL = np.empty(0, np.uint8)
RNG = np.random.default_rng(11)
VALUES = {
    "of a latency": RNG.lognormal(-3, 1, 6000),
    "of both signs": RNG.normal(size=6000),
    "few different": RNG.integers(0, 4, 6000).astype(float),
    "all the same": np.full(500, 0.25),
    "many zeros": np.where(RNG.random(6000) < 0.4, 0.0, RNG.lognormal(size=6000)),
    "one far away": np.append(RNG.normal(1, 1e-9, 6000), 1e300),
    "two clusters": np.append(RNG.normal(1, 1e-9, 3000), RNG.normal(1e9, 1, 3000)),
    "very few": np.array([3.0, -0.0, 0.0]),
    "whole numbers": RNG.integers(-50, 50, 6000),
}


def percentiles(values: npt.NDArray[np.generic], groups: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.float64]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=count))])
    ordered, found = np.empty(len(values) + 1, np.uint64), np.full((count, len(SHARES)), np.nan)
    report_kernels.spread(groups, values, ALL, 0, starts[:-1], ordered)
    report_kernels.percentiles(ordered, starts, SHARES, 0, count, found)
    return found


@pytest.mark.parametrize("groups", [1, 7, 300])
@pytest.mark.parametrize("kind", VALUES)
def test_percentiles_are_those_of_numpy_whatever_the_values(kind: str, groups: int) -> None:
    values = VALUES[kind]
    of = np.random.default_rng(groups).integers(0, groups, len(values)).astype(np.int32)
    found = percentiles(values, of, groups)
    for group in np.unique(of):
        np.testing.assert_allclose(found[group], np.quantile(values[of == group], SHARES), rtol=1e-12)


def test_what_is_no_number_comes_last_as_in_sql() -> None:
    found = percentiles(np.array([2.0, np.nan, 1.0, -np.nan, np.inf]), np.zeros(5, np.int32), 1)
    assert found[0, :2].tolist() == [1.0, np.inf]
    assert np.isnan(found[0, 2:]).all()


@pytest.mark.parametrize("offset", [0, 3, 8])
def test_only_rows_whose_bit_is_set_are_added_and_counted_and_have_percentiles(offset: int) -> None:
    known = RNG.random(1000) < 0.3
    bits = np.packbits(np.concatenate([np.ones(offset, bool), known]), bitorder="little")
    values = np.where(known, RNG.normal(size=1000), np.nan)
    groups = RNG.integers(0, 5, 1000).astype(np.int32)
    sums, counts, ordered = np.zeros(5), np.zeros(5, np.int64), np.zeros(known.sum() + 1, np.uint64)
    report_kernels.add(groups, values, bits, offset, sums)
    report_kernels.count_known(groups, bits, offset, counts)
    np.testing.assert_allclose(sums, np.bincount(groups[known], values[known], 5), rtol=1e-12)
    assert counts.tolist() == np.bincount(groups[known], minlength=5).tolist()
    found = np.zeros((5, len(SHARES)))
    starts = np.concatenate([[0], np.cumsum(counts)])
    report_kernels.spread(groups, values, bits, offset, starts[:-1], ordered)
    report_kernels.percentiles(ordered, starts, SHARES, 0, 5, found)
    np.testing.assert_allclose(found, [np.quantile(values[known & (groups == group)], SHARES) for group in range(5)], rtol=1e-12)


def test_codes_are_numbered_as_they_appear() -> None:
    codes, found = np.array([4, 4, 0, 2, 0], np.int32), np.empty(5, np.int32)
    count = report_kernels.number(codes, np.full(5, -1, np.int32), found)
    assert (codes.tolist(), found[:count].tolist()) == ([0, 0, 1, 2, 1], [4, 0, 2])


def test_every_kernel_can_be_compiled_ahead() -> None:
    report_kernels.warm()
    kernels = ("extend", "number", "add", "count_known", "join_words", "spread", "percentiles")
    assert [name for name in kernels if not getattr(report_kernels, name).signatures] == []
