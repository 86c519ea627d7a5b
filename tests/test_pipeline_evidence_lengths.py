"""How many blocks make one contrast: as few as say something new each time, and no burn-in is lost when they become more."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from evidence_days import BEGAN, BLOCK, LEVER, SEGMENT, cells, days
from lever_cells_rows import put
from scipy.stats import binom

from pipeline import evidence_lengths, evidence_store
from pipeline.evidence import ALPHA, advanced, stepped
from pipeline.evidence_families import NO_GAIN, TIMES, Family
from pipeline.evidence_lengths import BLOCKS_A_DAY, due, lengthened, reach
from pipeline.evidence_streams import Streams
from pipeline.inference import detector, scale
from queries.store import Store

Reals = npt.NDArray[np.float64]
PAIR = (LEVER, SEGMENT)
ENDED = BEGAN + BLOCKS_A_DAY * BLOCK
CYCLES = 60 * 2 * 2  # pairs, sides and days of the last test
FAST, SLOW, SLOWEST = (days(BLOCKS_A_DAY, rho, 1, sd=sd) for rho, sd in ((0.0, 0.05), (0.75, 0.05), (0.98, 0.15)))


def aged(age: int = BLOCKS_A_DAY, pairs: int = 1, family: Family = TIMES) -> Streams:
    """Pairs that have seen so many blocks since they began."""
    named = [PAIR] if pairs == 1 else [(LEVER, str(number)) for number in range(pairs)]
    return replace(Streams.start(family, named), age=np.full(pairs, age))


def test_the_length_is_asked_for_a_day_after_a_pair_began_and_not_again() -> None:
    assert due(aged(BLOCKS_A_DAY - 1)) == ()
    assert due(aged()) == (PAIR,)
    after = lengthened(aged(), (PAIR,), FAST)
    assert (after.multiple.tolist(), after.age.tolist(), due(after)) == ([1], [-1], ())


def test_of_many_pairs_the_same_are_asked_first_in_whatever_order_they_came() -> None:
    streams = aged(pairs=300)
    turned = replace(streams, pairs=streams.pairs[::-1])
    assert due(streams) == due(turned)
    assert len(due(streams)) == evidence_lengths.LIMIT_PAIRS


def test_a_block_that_is_taken_makes_a_pair_older_until_it_was_asked() -> None:
    for age, after in ((5, 6), (-1, -1)):
        streams, _ = advanced(aged(age), cells(FAST[0, :1]), BEGAN + BLOCK)
        assert streams.age.tolist() == [after]


def test_neighbors_that_are_alike_make_blocks_longer_and_the_day_teaches_their_scale() -> None:
    after = lengthened(aged(), (PAIR,), SLOW)
    [length] = after.multiple.tolist()
    assert length in (4, 6, 12)
    assert np.isfinite(scale.sd(after.scale.known, np.full(3, 0.01))).all()
    assert after.scale.known.reach.tolist() == [4] * 3
    assert after.running.n.tolist() == [0] * 3
    told = pl.DataFrame()
    for (began,), block in cells(days(length, 0.75, 2)[0], BLOCKS_A_DAY).group_by("block_started_at", maintain_order=True):
        assert isinstance(began, datetime)
        after, told = advanced(after, block, began + BLOCK)
    assert told["evidence"].null_count() == 0
    assert told["blocks_seen"].to_list() == [1] * 3
    assert told["blocks_together"].to_list() == [length] * 3
    np.testing.assert_array_equal(after.numbers(), Streams.of_numbers(TIMES, after.pairs, after.until, after.numbers()).numbers())


def test_cells_of_a_day_are_its_sums() -> None:
    np.testing.assert_allclose(evidence_lengths.sums(aged(), (PAIR,), cells(SLOW[0]), ENDED), SLOW)


def test_a_pair_s_last_day_is_read_from_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    put(store, cells(SLOW[0]).with_columns(pl.lit("r").alias("replica")).to_dicts())
    again = evidence_store.lengthened(store, aged(), ENDED)
    assert again.multiple.tolist() == lengthened(aged(), (PAIR,), SLOW).multiple.tolist() != [1]
    assert evidence_store.lengthened(store, aged(5), ENDED).multiple.tolist() == [1]
    store.close()


def test_longer_blocks_have_fewer_lags_but_an_hour_and_four_of_them() -> None:
    assert [reach(length) for length in (1, 2, 3, 4, 6, 12)] == [12, 6, 4, 4, 4, 4]


def test_a_day_whose_neighbors_were_alike_asks_once_a_day() -> None:
    streams = aged(-1)
    streams = replace(streams, checks=replace(streams.checks, neighbors=np.array([0.4, 0.0, 0.0]), spread=np.ones(3)))
    assert due(streams) == (PAIR,)
    after = lengthened(streams, (PAIR,), FAST)
    assert (after.age.tolist(), due(after)) == ([0], ())


def test_a_metric_that_is_alike_at_any_length_is_marked_at_once_and_asks_for_none_but_the_first() -> None:
    mixed = FAST.copy()
    mixed[:, :, 2] = SLOWEST[:, :, 2]
    after = lengthened(aged(), (PAIR,), mixed)
    assert (after.multiple.tolist(), after.checks.is_off().tolist()) == ([1], [False, False, True])
    mixed[:, :, 1] = SLOWEST[:, :, 1]
    after = lengthened(aged(), (PAIR,), mixed)
    assert (after.multiple.tolist(), after.checks.is_off().tolist()) == ([12], [True, True, True])


def test_too_few_requests_for_any_length_are_left_to_counts_alone() -> None:
    assert evidence_lengths.multiple(SLOW / 100)[0].tolist() == [1]


def alarms(streams: Streams, made: Reals) -> tuple[float, Streams]:
    """(false alarms of both sides a stream and cycle, the streams after these blocks)."""
    cycle = BLOCKS_A_DAY / np.repeat(streams.multiple, len(TIMES.metrics))
    log_m, reached = detector.start(2 * len(cycle)), 0
    for block in range(made.shape[1]):
        taking = np.ones(len(made), np.bool_)
        streams, z = stepped(streams, made[:, block, 1:].reshape(len(made), -1), made[:, block, 0, 1, 0], taking, scale.PHI)
        log_m = detector.step(log_m, np.concatenate([z, -z]))
        hits = detector.alarms(log_m, detector.threshold(np.tile(cycle, 2), ALPHA))
        log_m[hits] = -np.inf
        reached += int(hits.reshape(2, len(made), -1)[:, :, 1].sum())
    return reached / (2 * len(made) * made.shape[1] / BLOCKS_A_DAY), streams


def test_longer_blocks_hold_the_rate_of_false_alarms_that_short_ones_break() -> None:
    """Replicas that wander for half an hour: at 5 minutes their luck is mistaken for an effect."""
    made = days(3 * BLOCKS_A_DAY, 0.77, 9, 0.0, pairs=60, sd=0.08)
    _, streams = alarms(aged(0, 60, replace(TIMES, nulls=(NO_GAIN,))), made[:, :BLOCKS_A_DAY])
    longer = lengthened(streams, streams.pairs, made[:, :BLOCKS_A_DAY])
    assert (longer.multiple > 1).mean() > 0.9
    (short, before), (long, _) = (alarms(one, made[:, BLOCKS_A_DAY:]) for one in (streams, longer))
    assert short > 0.2
    assert long <= binom.ppf(0.99, CYCLES, ALPHA) / CYCLES
    assert before.checks.is_alike().reshape(60, -1)[:, 1].mean() > 0.7
