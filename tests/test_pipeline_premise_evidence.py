"""Premises past the thresholds that policies name: evidence in long blocks, the same however blocks come and whatever restarts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pipeline_requests import frame_of

from alerts.policy import shipped
from leverwatch import switchback_settings
from pipeline import cell_store, measure, premise_evidence, premise_store
from pipeline.premise_evidence import Premises, Watched
from queries.store import Store

BEGAN = datetime(2026, 11, 29, tzinfo=UTC)
LEVER, METRIC = "speculation", "acceptance_length"
LOST, BACK = Watched(LEVER, METRIC, 1.25, False), Watched(LEVER, METRIC, 1.5, True)
ENOUGH = math.log(premise_evidence.BLOCKS_A_CYCLE / premise_evidence.ALPHA)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def sums(level: float, drawn: np.random.Generator, segments: int = 1, metric: str = METRIC) -> pl.DataFrame:
    """A long block's sums: 400 requests whose acceptance length lies about `level`, by 2 % off from block to block."""
    rows = []
    for segment in range(segments):
        steps = drawn.integers(50, 150, 400).astype(float)
        tokens = steps * level * float(drawn.normal(1, 0.02)) * drawn.normal(1, 0.1, 400)
        parts = (tokens.sum(), steps.sum(), (tokens**2).sum(), (steps**2).sum(), (tokens * steps).sum())
        rows.append(
            {"lever": LEVER, "segment": f"s{segment}", "metric": metric, "n": 400}
            | dict(zip(premise_evidence.SUMS[1:], parts, strict=True))
        )
    return pl.DataFrame(rows)


def after(levels: list[float], segments: int = 1, premises: Premises | None = None, seed: int = 1) -> Premises:
    kept, drawn = premises or Premises.start(), np.random.default_rng(seed)
    for number, level in enumerate(levels):
        ended_at = BEGAN + timedelta(seconds=premise_evidence.LONG_S * (number + 1))
        kept = premise_evidence.advanced(kept, sums(level, drawn, segments), (LOST, BACK), ended_at)
    return kept


def logs(premises: Premises) -> dict[tuple[str, float], float]:
    return {(row["segment"], row["threshold"]): row["log_m"] for row in premise_evidence.listed(premises).iter_rows(named=True)}


def test_a_premise_that_holds_has_no_evidence_and_one_that_goes_has_it_within_an_hour_or_two() -> None:
    good = after([1.6] * 40)
    assert logs(good)["s0", 1.25] < ENOUGH - 3
    assert logs(good)["s0", 1.5] >= ENOUGH
    gone = after([1.6] * 40 + [1.1] * 5)
    assert logs(gone)["s0", 1.25] >= ENOUGH
    assert logs(after([1.6] * 40 + [1.1] * 24))["s0", 1.5] < ENOUGH  # it is not back any more


def test_evidence_stops_growing_a_little_past_where_it_may_act() -> None:
    assert logs(after([1.1] * 90))["s0", 1.25] == pytest.approx(ENOUGH + premise_evidence.BEYOND, abs=1e-6)
    assert logs(after([1.1] * 90, segments=2))["s0", 1.25] == pytest.approx(ENOUGH + premise_evidence.BEYOND + math.log(2), abs=1e-6)


def test_before_the_scale_is_known_there_is_none() -> None:
    assert logs(after([1.1] * 20))["s0", 1.25] == -math.inf
    told = premise_evidence.with_evidence(effects(), premise_evidence.listed(after([1.1] * 20)))
    assert told["premise_evidence"].to_list() == [None, None]


def test_numbers_go_on_exactly_where_they_stopped_and_an_older_block_changes_nothing() -> None:
    whole = after([1.6] * 30 + [1.2] * 10, segments=3)
    half, drawn = Premises.start(), np.random.default_rng(1)
    for number, level in enumerate([1.6] * 30 + [1.2] * 10):
        ended_at = BEGAN + timedelta(seconds=premise_evidence.LONG_S * (number + 1))
        half = premise_evidence.advanced(half, sums(level, drawn, 3), (LOST, BACK), ended_at)
        half = Premises.of_numbers(half.keys, half.ended_at, half.numbers())
    np.testing.assert_array_equal(whole.numbers(), half.numbers())
    again = premise_evidence.advanced(whole, sums(9.0, drawn, 3), (LOST, BACK), BEGAN + timedelta(hours=1))
    np.testing.assert_array_equal(whole.numbers(), again.numbers())


def effects(until: datetime = BEGAN, **changes: Any) -> pl.DataFrame:
    rows = [
        {"lever": LEVER, "segment": "s0", "metric": METRIC, "basis": "premise", "until": until, "tests": None},
        {"lever": LEVER, "segment": "s0", "metric": "net_itl_s", "basis": "none", "until": until, "tests": 7},
    ]
    return pl.DataFrame([row | changes for row in rows], infer_schema_length=None)


def test_effects_tell_the_evidence_of_premises_alone_and_how_many_segments_are_told_apart() -> None:
    told = premise_evidence.with_evidence(effects(), premise_evidence.listed(after([1.1] * 40, segments=2)))
    lost, back = told["premise_evidence"][0].to_list()
    assert (lost["threshold"], lost["is_above"]) == (1.25, False)
    assert (back["threshold"], back["is_above"]) == (1.5, True)
    assert lost["log_m"] >= ENOUGH
    assert told["premise_evidence"][1] is None
    assert told["tests"].to_list() == [2, 7]


def test_every_premise_of_the_shipped_policies_is_watched_where_it_is_lost_and_where_it_is_back() -> None:
    watched = switchback_settings.watched(shipped())
    assert {LOST, BACK} <= set(watched)
    assert Watched(LEVER, "batch_at_admission", 64, True) in watched
    assert Watched(LEVER, "batch_at_admission", 48, False) in watched


def put(store: Store, hours: float, accepted: int, from_s: int = 0) -> None:
    """A request a second for so many hours, whose four drafts a step are accepted so many times in 100 steps."""
    row = {"replica": "r0", "model": "m", "arm": "treated", "outcome": "ok", "verify_steps": 100, "draft_tokens": 400}
    made = [row | {"after_s": from_s + after_s, "accepted_tokens": accepted + after_s % 7} for after_s in range(0, int(hours * 3600), 20)]
    with store.write() as transaction:
        cell_store.add(transaction, measure.cells(frame_of(made)), 1)


def told(store: Store, *ends: datetime) -> tuple[list[pl.DataFrame], Premises | None]:
    segment = store.rows("select distinct segment from cells where lever <> ''")[0]["segment"]
    frames, premises = premise_store.told(store, [effects(end, segment=segment) for end in ends], (LOST, BACK))
    with store.write() as transaction:
        premise_store.keep(transaction, premises)
    return frames, premises


def test_long_blocks_are_taken_once_as_they_end_and_the_newest_evidence_is_told_between_them(store: Store) -> None:
    put(store, 12, 10)
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)  # when these requests begin
    frames, premises = told(store, *(noon + timedelta(minutes=5 * block) for block in range(1, 143)))
    assert premises is not None
    assert premises.ended_at[0] == noon + timedelta(minutes=700)
    assert frames[0]["premise_evidence"].to_list() == [None, None]
    last = frames[-1]["premise_evidence"][0].to_list()
    assert last[0]["log_m"] > last[1]["log_m"]
    between, nothing = told(store, noon + timedelta(minutes=715))
    assert nothing is None
    assert between[0]["premise_evidence"][0].to_list() == last
    _, moved = told(store, noon + timedelta(minutes=720))
    assert moved is not None
    assert moved.ended_at[0] == noon + timedelta(minutes=720)


def test_one_run_and_many_give_the_same(tmp_path: Path) -> None:
    noon, kept = datetime(2026, 11, 29, 12, tzinfo=UTC), []
    ends = [noon + timedelta(minutes=5 * block) for block in range(1, 37)]
    for name, parts in (("one", [ends]), ("many", [[end] for end in ends])):
        store = Store(tmp_path / name)
        put(store, 3, 10)
        for part in parts:
            told(store, *part)
        kept.append(store.rows("select * from premise_state order by threshold"))
        store.close()
    assert kept[0] == kept[1]
    assert len(kept[0]) == 2


def test_a_long_block_in_which_traffic_stopped_counts_however_often_effects_are_made(tmp_path: Path) -> None:
    noon, kept = datetime(2026, 11, 29, 12, tzinfo=UTC), []
    ends = [noon + timedelta(minutes=5 * block) for block in (*range(1, 15), *range(25, 37))]  # of the silence there are none
    for name, parts in (("one", [ends]), ("many", [[end] for end in ends])):
        store = Store(tmp_path / name)
        put(store, 65 / 60, 10)
        put(store, 1, 10, from_s=7_200)
        for part in parts:
            told(store, *part)
        kept.append(store.rows("select * from premise_state order by threshold"))
        store.close()
    assert kept[0] == kept[1]
    assert len(kept[0]) == 2


def test_thresholds_that_no_policy_names_any_more_are_forgotten(store: Store) -> None:
    put(store, 3, 10)
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)
    told(store, noon + timedelta(minutes=60))
    other = Watched(LEVER, METRIC, 1.3, False)
    frames, premises = premise_store.told(store, [effects(noon + timedelta(minutes=80))], (other,))
    assert premises is not None
    assert [key[3] for key in premises.keys] == [1.3]
    assert premise_store.told(store, frames, ())[0][0].equals(frames[0])
