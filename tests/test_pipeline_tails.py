"""Tails: exceedances of control's earlier percentile, the percentiles of a window with their interval, and both from the store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from pipeline_requests import frame_of
from tail_rows import BEGAN, BLOCK, bins_of, names, offered_of, segment

from pipeline import cell_store, evidence_job, evidence_store, measure, tail_counts, tail_effects, tail_families
from pipeline.evidence import ALPHA, BLOCKS_A_CYCLE, advanced
from pipeline.evidence_families import NO_GAIN
from pipeline.evidence_streams import Streams
from pipeline.metrics import TAILS, by_name, judged, of_quantile
from pipeline.tail_families import BASES
from pipeline.tuning import PLAIN
from queries import files
from queries.store import Store

FIRST, BINS, WINDOW = 200, 160, 24
THRESHOLD = np.log(BLOCKS_A_CYCLE / ALPHA)
LONG = 72  # blocks, after which the scale of p95 is known

Counts = npt.NDArray[np.float64]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def counts(blocks: int, *, streams: int = 1, n: tuple[int, int] = (800, 250), seed: int = 1) -> Counts:
    """(streams, blocks, arms, bins) of a lognormal time that wanders: alike in both arms."""
    rng = np.random.default_rng(seed)
    made = np.zeros((streams, blocks, 2, BINS))
    for stream, block in np.ndindex(streams, blocks):
        common = rng.normal(0, 0.05)
        for arm, count in enumerate(n):
            logs = common + rng.normal(0, 0.01) + rng.normal(0, 0.3, count)
            made[stream, block, arm] = np.bincount(np.clip(np.floor(logs / np.log(1.02)) + 70, 0, BINS - 1).astype(int), minlength=BINS)
    return made


def slower(made: Counts, bins: int, since: int = 0) -> Counts:
    """Treated so many bins of 2 % slower from a block on."""
    moved = made.copy()
    moved[:, since:, 0] = np.roll(made[:, since:, 0], bins, axis=2)
    return moved


def played(made: Counts, failed: Counts | None = None, base: str = "ttft_s") -> list[pl.DataFrame]:
    """What evidence says of tails at the end of each block."""
    bins, offered = bins_of(made, FIRST), offered_of(made, failed)
    streams, told = [Streams.start(family) for family in tail_families.FAMILIES], []
    for block in range(made.shape[1]):
        found = [tail_counts.counted(offered, block), *tail_counts.exceeding(bins, offered, base, block, WINDOW - 1)]
        moved = [advanced(one, tail_counts.cells(offered.names, found), BEGAN + (block + 1) * BLOCK) for one in streams]
        streams = [one for one, _ in moved]
        told.append(pl.concat([said for _, said in moved]))
    return told


def log_below(found: pl.DataFrame, metric: str) -> float:
    logs = found.filter(metric=metric)["evidence_below"].item()
    return float("-inf") if logs is None else float(logs[NO_GAIN])


def row(made: Counts, name: str, failed: Counts | None = None) -> dict[str, Any]:
    base = of_quantile(name)
    held = list(tail_effects.columns(bins_of(made, FIRST), offered_of(made, failed), base, 0, made.shape[1]))
    frame = tail_effects.effects(names(len(made)), held, BEGAN, BEGAN + made.shape[1] * BLOCK)
    return frame.filter(metric=name).to_dicts()[0]


def test_every_tail_has_a_family_and_is_a_metric_of_its_own() -> None:
    assert sorted(name for family in tail_families.FAMILIES for name in family.metrics) == sorted(TAILS)
    assert [family.needed for family in tail_families.FAMILIES] == [200, 1000]
    assert judged()["ttft_s_p95"].unit == by_name()["ttft_s"].unit


def test_a_slower_tail_is_found_and_one_that_is_alike_is_not() -> None:
    made = counts(LONG + 16)
    innocent = played(made)
    assert max(log_below(found, "ttft_s_p95") for found in innocent) < THRESHOLD
    harmed = played(slower(made, 12, LONG))
    assert log_below(harmed[LONG - 1], "ttft_s_p95") < THRESHOLD < log_below(harmed[-1], "ttft_s_p95")
    row = harmed[-1].filter(metric="ttft_s_p95").to_dicts()[0]
    assert row["turned_gain"] is None  # a contrast of exceedances is no gain in time
    assert [place for place, log in enumerate(row["evidence_below"]) if log is not None] == [NO_GAIN]


def test_requests_that_fail_exceed_every_threshold() -> None:
    made = counts(LONG + 16)
    failed = np.zeros((1, 2, LONG + 16))
    failed[:, 0, LONG:] = 100.0
    assert log_below(played(made, failed)[-1], "ttft_s_p95") > THRESHOLD


def test_the_threshold_is_of_earlier_blocks_of_control_alone() -> None:
    made, block = counts(14), 13
    bins, offered = bins_of(made, FIRST), offered_of(made)
    moved = made.copy()
    moved[:, block] = np.roll(made[:, block], 40, axis=2)
    moved[:, :block, 0] = np.roll(made[:, :block, 0], 40, axis=2)
    plain, other = (
        {one.metric: one for one in tail_counts.exceeding(of, offered, "ttft_s", block, WINDOW - 1)} for of in (bins, bins_of(moved, FIRST))
    )
    control_upto = made[0, 1:block, 1].sum(axis=0).cumsum()
    limit = int((control_upto < 0.95 * control_upto[-1]).sum())
    for counted, of in ((plain, made), (other, moved)):
        expected = of[0, block][:, limit + 1 :].sum(axis=1)
        np.testing.assert_array_equal(counted["ttft_s_p95"].over[0], expected)


def test_without_enough_earlier_requests_of_control_nothing_is_told() -> None:
    made = counts(10, n=(800, 30))
    bins, offered = bins_of(made, FIRST), offered_of(made)
    told = {one.metric: bool(one.is_told[0]) for one in tail_counts.exceeding(bins, offered, "ttft_s", 9, WINDOW - 1)}
    assert told == {"ttft_s_p50": True, "ttft_s_p95": True, "ttft_s_p99": False}


def test_thin_traffic_looks_back_for_two_hours() -> None:
    made = counts(24, n=(800, 12))
    bins, offered = bins_of(made, FIRST), offered_of(made)
    for window, expected in ((12, False), (23, True)):
        told = {one.metric: bool(one.is_told[0]) for one in tail_counts.exceeding(bins, offered, "ttft_s", 23, window)}
        assert told["ttft_s_p95"] is expected


def test_a_row_has_both_percentiles_and_an_interval_about_the_gain() -> None:
    found = row(slower(counts(WINDOW), 9), "ttft_s_p95")
    truth = 1 - 1.02**9
    assert found["gain"] == pytest.approx(truth, abs=0.04)
    assert found["gain_low"] <= truth <= found["gain_high"] < 0
    assert found["value_a"] / found["value_b"] == pytest.approx(1 - found["gain"])
    assert (found["blocks"], found["n_a"], found["n_b"], found["basis"], found["note"]) == (
        WINDOW,
        800 * WINDOW,
        250 * WINDOW,
        "control",
        None,
    )


def test_a_tail_with_too_few_requests_says_that_it_is_insufficient() -> None:
    found = row(counts(WINDOW, n=(800, 30)), "ttft_s_p99")
    assert found["note"] == "insufficient: 720 requests in the thinner arm, 1000 are needed"
    assert (found["gain"], found["gain_low"], found["value_a"] is None) == (None, None, False)


def test_a_segment_without_control_shows_treated_s_percentile_alone() -> None:
    made = counts(WINDOW)
    made[:, :, 1] = 0
    found = row(made, "tpot_s_p50")
    assert (found["arm_b"], found["basis"], found["gain"], found["n_b"], found["value_b"]) == (None, "none", None, 0, None)
    assert found["value_a"] > 0


def test_blocks_of_one_arm_count_in_neither() -> None:
    made = counts(WINDOW)
    made[:, 12:, 1] = 0
    found = row(made, "ttft_s_p50")
    assert (found["blocks"], found["n_a"]) == (12, 800 * 12)


def requests(rng: np.random.Generator, count: int, blocks: int, **fields: Any) -> pl.DataFrame:
    frame = frame_of([{"model": "m", "outcome": "ok", "output_tokens": 11} for _ in range(count)])
    after = pl.Series(rng.integers(0, 300 * blocks * 1_000, count)).cast(pl.Duration("ms"))
    begun = (pl.lit(BEGAN) + after).cast(pl.Datetime("us", "UTC"))
    arm = pl.Series("arm", np.where(rng.random(count) < 0.3, "control", "treated"))
    frame = frame.with_columns(begun.alias("started_at"), arm, pl.Series("ttft_s", rng.lognormal(-1, 0.4, count)))
    frame = frame.with_columns(pl.concat_list(pl.struct(pl.lit("speculation").alias("key"), pl.col("arm").alias("value"))).alias("arms"))
    return frame.with_columns(**{name: pl.lit(value) for name, value in fields.items()})


def put(store: Store, frame: pl.DataFrame) -> None:
    with store.write() as transaction:
        cell_store.add(transaction, measure.cells(frame))


def read(store: Store, blocks: int) -> tuple[pl.DataFrame, list[evidence_job.Reading]]:
    asked = {"since": BEGAN - 2 * WINDOW * BLOCK, "until": BEGAN + blocks * BLOCK, "metrics": ["requests", "error_rate"], "alone": []}
    cells = store.frame(files.question("compare_cells"), asked)
    return cells, list(evidence_job.readings(store, [BEGAN + (number + 1) * BLOCK for number in range(blocks)], cells))


def test_percentiles_of_the_store_are_those_of_its_requests(store: Store) -> None:
    frame = requests(np.random.default_rng(1), 3_000, 3)
    put(store, frame)
    _, found = read(store, 3)
    held = {(one["metric"]): one for one in found[-1].tails.effects.to_dicts()}
    assert set(held) == set(BASES["ttft_s"])
    for tag, share in (("p50", 0.5), ("p95", 0.95)):
        for column, arm in (("value_a", "treated"), ("value_b", "control")):
            exact = frame.filter(arm=arm)["ttft_s"].quantile(share, "linear")
            assert held[f"ttft_s_{tag}"][column] == pytest.approx(exact, rel=0.02)
    assert held["ttft_s_p50"]["coverage"] == 1.0
    assert [len(one.tails.effects) for one in found] == [3, 3, 3]


def test_blocks_are_read_alike_alone_and_together_and_whatever_the_order_of_their_requests(store: Store, tmp_path: Path) -> None:
    frame = requests(np.random.default_rng(2), 6_000, 4)
    put(store, frame)
    cells, together = read(store, 4)
    other = Store(tmp_path / "other")
    for part in frame.sample(fraction=1.0, shuffle=True, seed=3).iter_slices(1_500):
        put(other, part)
    _, shuffled = read(other, 4)
    other.close()
    for number in range(4):
        alone = next(evidence_job.readings(store, [BEGAN + (number + 1) * BLOCK], cells))
        for again in (alone, shuffled[number]):
            assert again.tails.cells.equals(together[number].tails.cells)
            assert again.tails.effects.equals(together[number].tails.effects)


def test_a_restart_in_the_middle_changes_nothing(store: Store) -> None:
    put(store, requests(np.random.default_rng(4), 8_000, 6))
    cells, readings = read(store, 6)
    kept = evidence_job.kept(store)
    for number, reading in enumerate(readings):
        block = cells.filter(pl.col("block_started_at") == BEGAN + number * BLOCK)
        kept, told = evidence_job.advanced(store, kept, block, reading, BEGAN + (number + 1) * BLOCK, PLAIN)
        with store.write() as transaction:
            evidence_job.keep(transaction, kept)
        again = evidence_job.kept(store)
        for one, other in zip((*kept.tails, kept.incidents), (*again.tails, again.incidents), strict=True):
            np.testing.assert_array_equal(one.numbers(), other.numbers())
            assert (one.pairs, one.until) == (other.pairs, other.until)
        kept = again
    assert set(told["metric"]) >= set(TAILS) | {"error_rate"}
    assert told.filter(metric="ttft_s_p50")["blocks_seen"].item() == 4  # the first has no earlier hour, the second only teaches
    assert evidence_store.kept(store, tail_families.FAMILIES[0]).pairs == (("speculation", '{"model":"m"}'),)


def test_many_streams_are_one_by_one_what_they_are_together() -> None:
    made = counts(8, streams=3)
    together = played(made)
    for stream in range(3):
        alone = played(made[[stream]])[-1].drop("segment", "tests")
        assert together[-1].filter(segment=segment(stream)).drop("segment", "tests").equals(alone)


def test_the_window_of_a_row_is_that_of_other_rows(store: Store) -> None:
    put(store, requests(np.random.default_rng(5), 500, 1))
    _, (reading,) = read(store, 1)
    assert reading.tails.effects["until"].unique().to_list() == [BEGAN + BLOCK]
    assert reading.tails.effects["since"].unique().to_list() == [BEGAN + BLOCK - timedelta(hours=2)]
