"""Evidence of a lever's gain: kept from block to block, the same after a restart, and not in a hurry."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pipeline import evidence, evidence_store
from pipeline.evidence import ALPHA, BLOCKS_A_CYCLE, advanced
from pipeline.evidence_families import MEANS, NULLS, SUMS
from pipeline.evidence_streams import LAGS, Streams
from queries.store import Store

METRICS = MEANS.metrics
BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
BLOCK = timedelta(minutes=5)
SEGMENT = '{"model":"m"}'
THRESHOLD = np.log(BLOCKS_A_CYCLE / ALPHA)


def cells(rng: np.random.Generator, gain: float, *, segment: str = SEGMENT, n: int = 200, control_n: int = 150) -> pl.DataFrame:
    """A block in which treated takes 1 - gain of control's time per token; both wander together."""
    common = rng.lognormal(0, 0.05)
    rows = []
    for arm, count, factor in (("treated", n, 1 - gain), ("control", control_n, 1.0)):
        tokens = rng.integers(50, 400, count).astype(float)
        tpot_s = 0.02 * factor * common * rng.lognormal(0, 0.01) * rng.lognormal(-0.045, 0.3, count)
        ttft_s = 0.3 * common * rng.lognormal(-0.02, 0.2, count)
        pairs = {"tpot_s": (tpot_s * tokens, tokens), "ttft_s": (ttft_s, np.ones(count)), "error_rate": (np.zeros(count), np.ones(count))}
        rows.append({"metric": "requests", "arm": arm, **dict(zip(SUMS, (count, 0.0, 0.0, 0.0, 0.0, 0.0), strict=True))})
        for metric, (a, d) in pairs.items():
            sums = (count, a.sum(), d.sum(), (a * a).sum(), (d * d).sum(), (a * d).sum())
            rows.append({"metric": metric, "arm": arm, **dict(zip(SUMS, sums, strict=True))})
    return pl.DataFrame(rows).with_columns(pl.lit("speculation").alias("lever"), pl.lit(segment).alias("segment"))


def played(
    gains: list[float], seed: int = 1, streams: Streams | None = None, first: int = 0, **more: int
) -> tuple[Streams, list[pl.DataFrame]]:
    """The streams after blocks with these gains, and what was told at the end of each."""
    streams, told = streams or Streams.start(MEANS), []
    for number, gain in enumerate(gains, first):
        block = cells(np.random.default_rng([seed, number]), gain, **more)
        streams, found = advanced(streams, block, BEGAN + (number + 1) * BLOCK)
        told.append(found)
    return streams, told


def log_below(found: pl.DataFrame, null: float = 0.0, metric: str = "net_itl_s") -> float:
    logs = found.filter(metric=metric)["evidence_below"].item()
    return float("-inf") if logs is None else float(logs[NULLS.index(null)])


GOOD = [0.2] * (4 * LAGS + 24)


def test_harm_after_a_good_history_is_seen_soon_and_a_good_lever_is_left_alone() -> None:
    streams, told = played(GOOD)
    assert max(log_below(found) for found in told) < THRESHOLD
    _, after = played([-0.15] * 12, streams=streams, first=len(GOOD))
    assert log_below(after[-1]) > THRESHOLD
    assert log_below(after[-1], metric="ttft_s") < THRESHOLD


def test_nothing_is_said_before_the_scale_is_known() -> None:
    _, told = played(GOOD[: 4 * LAGS])
    assert all(found["evidence"].null_count() == len(METRICS) for found in told)
    assert [found["blocks_seen"].to_list() for found in told[:3]] == [[0, 0, 0, 0, 0], [1, 1, 1, 0, 0], [2, 2, 2, 0, 0]]


def test_a_gain_that_is_gone_is_told_from_one_that_has_turned_into_harm() -> None:
    streams, _ = played(GOOD)
    _, after = played([0.03] * 40, streams=streams, first=len(GOOD))
    assert log_below(after[-1], 0.1) > THRESHOLD
    assert log_below(after[-1], 0.0) < THRESHOLD


def test_it_says_since_when_the_lever_is_worse_and_by_how_much_since() -> None:
    streams, told = played(GOOD)
    told_of = told[-1].filter(metric="net_itl_s")
    assert (told_of["turned_blocks"].item(), told_of["turned_gain"].item()) == (0, None)
    _, after = played([-0.15] * 10, streams=streams, first=len(GOOD))
    row = after[-1].filter(metric="net_itl_s").to_dicts()[0]
    assert row["turned_blocks"] in (10, 11)
    assert row["turned_gain"] == pytest.approx(-0.15, abs=0.05)


def test_evidence_of_a_gain_above_is_there_while_the_lever_pays() -> None:
    _, told = played(GOOD)
    above = told[-1].filter(metric="net_itl_s")["evidence_above"].item()
    assert above[NULLS.index(0.05)] > THRESHOLD


def test_a_restart_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    streams, _ = played(GOOD)
    store = Store(tmp_path)
    with store.write() as transaction:
        evidence_store.keep(transaction, [streams])
    again = evidence_store.kept(store, MEANS)
    store.close()
    np.testing.assert_array_equal(again.numbers(), streams.numbers())
    assert (again.pairs, again.until) == (streams.pairs, streams.until)
    gains = [-0.1] * 10
    one, told = played(gains, streams=streams, first=len(GOOD))
    other, retold = played(gains, streams=again, first=len(GOOD))
    np.testing.assert_array_equal(one.numbers(), other.numbers())
    assert told[-1].equals(retold[-1])


def test_the_order_of_a_block_s_rows_changes_nothing() -> None:
    block = cells(np.random.default_rng(3), 0.1)
    one, _ = advanced(Streams.start(MEANS), block, BEGAN + BLOCK)
    other, _ = advanced(Streams.start(MEANS), block.sample(fraction=1, shuffle=True, seed=5), BEGAN + BLOCK)
    np.testing.assert_array_equal(one.numbers(), other.numbers())


def test_a_block_that_was_seen_is_not_seen_again() -> None:
    streams, _ = played(GOOD[:5])
    again, _ = advanced(streams, cells(np.random.default_rng(9), -0.5), BEGAN + 5 * BLOCK)
    np.testing.assert_array_equal(again.numbers(), streams.numbers())


def test_a_block_of_long_ago_is_not_told_what_later_ones_have_taught() -> None:
    streams, told = played(GOOD)
    again, late = advanced(streams, cells(np.random.default_rng(9), -0.5), BEGAN + 5 * BLOCK)
    assert late.is_empty()
    np.testing.assert_array_equal(again.numbers(), streams.numbers())
    _, same = advanced(streams, cells(np.random.default_rng(9), -0.5), BEGAN + len(GOOD) * BLOCK)
    assert same.equals(told[-1])


def test_a_pair_that_has_not_been_seen_for_a_week_is_let_go(tmp_path: Path) -> None:
    streams, _ = played(GOOD[:3])
    streams, _ = advanced(streams, cells(np.random.default_rng(1), 0.2, segment='{"model":"n"}'), BEGAN + timedelta(days=8))
    store = Store(tmp_path)
    with store.write() as transaction:
        evidence_store.keep(transaction, [streams])
    assert evidence_store.kept(store, MEANS).pairs == (("speculation", '{"model":"n"}'),)
    store.close()


def test_thin_blocks_are_taken_together_until_control_has_enough() -> None:
    _, told = played([0.1] * 9, control_n=40)
    seen = [found.filter(metric="tpot_s")["blocks_seen"].item() for found in told]
    assert seen == [0, 0, 0, 0, 0, 1, 1, 1, 2]  # three blocks at a time, and the first one only teaches


def test_a_new_segment_begins_by_itself_and_disturbs_no_other() -> None:
    streams, _ = played(GOOD[:20])
    both = pl.concat([cells(np.random.default_rng([1, 20]), 0.2), cells(np.random.default_rng(7), 0.2, segment='{"model":"a"}')])
    mixed, found = advanced(streams, both, BEGAN + 21 * BLOCK)
    alone, _ = advanced(streams, cells(np.random.default_rng([1, 20]), 0.2), BEGAN + 21 * BLOCK)
    place = mixed.pairs.index(("speculation", SEGMENT))
    np.testing.assert_array_equal(mixed.numbers()[place], alone.numbers()[0])
    assert found["tests"].to_list() == [2] * 2 * len(METRICS)


def test_a_segment_without_a_control_arm_tells_no_evidence() -> None:
    treated = cells(np.random.default_rng(1), 0.1).filter(arm="treated")
    streams, found = advanced(Streams.start(MEANS), treated, BEGAN + BLOCK)
    assert (streams.pairs, len(found)) == ((), 0)


def test_what_spoke_for_a_lever_for_long_does_not_outweigh_an_hour_against_it() -> None:
    streams, told = played([0.3] * (4 * LAGS + 100))
    above = told[-1].filter(metric="net_itl_s")["evidence_above"].item()
    assert above[NULLS.index(0.0)] == pytest.approx(THRESHOLD + evidence.BEYOND)
    _, after = played([-0.3] * 12, streams=streams, first=4 * LAGS + 100)
    assert after[-1].filter(metric="net_itl_s")["evidence_above"].item()[NULLS.index(0.05)] < THRESHOLD


def test_many_segments_are_taken_at_once() -> None:
    many = 300
    block = cells(np.random.default_rng(1), 0.1)
    frame = pl.concat([block.with_columns(pl.lit(f'{{"model":"m{number}"}}').alias("segment")) for number in range(many)])
    streams, _ = advanced(Streams.start(MEANS), frame, BEGAN + BLOCK)
    streams, found = advanced(streams, frame, BEGAN + 2 * BLOCK)
    assert (len(streams.pairs), len(found)) == (many, many * len(METRICS))
    alone, _ = played([], streams=Streams.start(MEANS))
    for number in (1, 2):
        alone, _ = advanced(alone, block, BEGAN + number * BLOCK)
    np.testing.assert_array_equal(streams.numbers(), np.repeat(alone.numbers(), many, axis=0))
