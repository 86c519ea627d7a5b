"""Splits of one arm in two: fair halves that rotate, contrasts of the code that serves, and what is too little to split."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pytest

from pipeline.calibrating import BLOCKS_A_DAY, FAMILY, METRICS, Sample, calibrated, contrasts, halves
from pipeline.evidence import stepped
from pipeline.evidence_families import SUMS
from pipeline.evidence_lengths import reach
from pipeline.evidence_streams import Streams
from pipeline.inference import scale

Reals = npt.NDArray[np.float64]
BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
LEVELS_S = {"tpot_s": (0.02, 0.35, 100.0), "ttft_s": (0.3, 0.4, 1.0)}


def replicas(blocks: int, count: int = 8, seed: int = 1, apart: float = 0.02, rho: float = 0.0) -> Reals:
    """(blocks, replicas, METRICS, SUMS): replicas that differ by `apart` for good, and wander by 5 % as `rho` says."""
    rng = np.random.default_rng(seed)
    made, drift, offsets = np.zeros((blocks, count, len(METRICS), len(SUMS))), np.zeros(count), rng.normal(0, apart, count)
    for block in range(blocks):
        drift = rho * drift + np.sqrt(1 - rho**2) * rng.normal(0, 0.05, count)
        n, common = rng.poisson(60, count) + 1.0, rng.normal(0, 0.1)
        made[block, :, METRICS.index("requests"), 0] = n
        for metric, (level_s, cv, each) in LEVELS_S.items():
            mean = level_s * np.exp(common + drift + offsets) * (1 + rng.normal(0, cv, count) / np.sqrt(n))
            told = (n, mean * each * n, each * n, n * (mean * each) ** 2 * (1 + cv**2), each**2 * n, mean * each**2 * n)
            made[block, :, METRICS.index(metric)] = np.stack(told, axis=1)
    return made


def sample(sums: Reals) -> Sample:
    return Sample("speculation", '{"model":"m"}', "treated", BEGAN, sums)


DAYS = replicas(3 * BLOCKS_A_DAY)


def test_halves_are_of_half_the_replicas_that_serve_and_together_all_of_them() -> None:
    sums = DAYS[:24].copy()
    sums[6:12, 5:] = 0.0
    split = halves(sums, 20)
    np.testing.assert_allclose(split.sum(axis=3), np.broadcast_to(sums.sum(axis=1), (20, *sums.sum(axis=1).shape)))
    counted = np.zeros_like(sums)
    counted[..., 0, 0] = sums[..., 0, 0] > 0
    served = halves(counted, 20)[:, :, 0, :, 0]
    assert served[:, 0].tolist() == [[4.0, 4.0]] * 20
    assert {tuple(pair) for pair in served[:, 6]} == {(3.0, 2.0)}


def test_halves_are_drawn_anew_each_half_hour_and_alike_each_time_they_are_asked_for() -> None:
    split = halves(DAYS[:24], 5)[:, :, 0, 0, 0] / DAYS[:24, :, 0, 0].sum(axis=1)
    marked = np.zeros((24, 8, *DAYS.shape[2:]))
    marked[:, :, 0, 0] = 2.0 ** np.arange(8)
    first = halves(marked, 50)[:, :, 0, 0, 0]
    assert (first[:, :6] == first[:, :1]).all()
    assert (first[:, 6] != first[:, 5]).mean() > 0.9
    np.testing.assert_array_equal(split, halves(DAYS[:24], 5)[:, :, 0, 0, 0] / DAYS[:24, :, 0, 0].sum(axis=1))


def test_contrasts_of_blocks_taken_together_are_those_that_serve_gives() -> None:
    split = halves(DAYS[:288], 2)
    found = contrasts(split, 3)
    streams = Streams.start(FAMILY, [("", "0"), ("", "1")])
    known = scale.State.start(2 * len(FAMILY.metrics), 12)
    known = replace(known, reach=np.full(2 * len(FAMILY.metrics), reach(3)))
    streams = replace(streams, multiple=np.full(2, 3), scale=replace(streams.scale, known=known))
    told = []
    for block in range(288):
        sums = split[:, block, 1:].reshape(2, -1)
        streams, z = stepped(streams, sums, split[:, block, 0, 1, 0], np.ones(2, np.bool_), 1.0)
        told.append(z)
    np.testing.assert_array_equal(np.array(told[2::3]).reshape(96, 2, len(FAMILY.metrics)), found)


def test_noise_that_the_model_knows_takes_about_the_widening_that_is_shipped() -> None:
    rows = {(row["metric"], row["blocks_together"]): row for row in calibrated([sample(DAYS)], 8)}
    row = rows["tpot_s", 1]
    assert row["phi"] in (1.0, 1.05, 1.1, 1.15, 1.2)
    assert row["rates"] == sorted(row["rates"], reverse=True)
    assert (row["spread"], row["neighbors"]) == (pytest.approx(1.0, abs=0.1), pytest.approx(0.0, abs=0.1))
    assert {length for _, length in rows} == {1, 2, 3, 4, 6, 12}
    assert all(row["contrasts"] > 0 for row in rows.values())


def test_replicas_that_wander_for_half_an_hour_take_more_at_short_blocks_than_at_long_ones() -> None:
    rows = {(row["metric"], row["blocks_together"]): row for row in calibrated([sample(replicas(2 * BLOCKS_A_DAY, rho=0.93))], 10)}
    assert rows["tpot_s", 1]["phi"] is None
    assert rows["tpot_s", 1]["neighbors"] > 0.3
    assert rows["tpot_s", 12]["rates"][0] < rows["tpot_s", 1]["rates"][-1]


def test_too_few_replicas_or_days_cannot_be_split_and_it_says_what_is_missing() -> None:
    assert sample(DAYS).missing() is None
    assert sample(DAYS[:200, :3]).missing() == "3 replicas in treated, 4 are needed; 0.7 days with requests in treated, 2 are needed"
    silent = DAYS.copy()
    silent[100:, :, 0, 0] = 0.0
    assert sample(silent).missing() == "0.3 days with requests in treated, 2 are needed"
