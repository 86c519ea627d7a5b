"""Every premise that a shipped policy names, of any kind of metric: evidence where it lies past its threshold, and none short of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from pipeline_requests import BEGAN, frame_of

from alerts.chain import Condition
from alerts.conditions import gain_limit
from alerts.effects import effect_name
from alerts.policy import shipped
from leverwatch import report_source, switchback_settings
from pipeline import cell_store, compare, measure, premise_evidence, premise_store
from pipeline.evidence_families import FAMILIES
from pipeline.metrics import TAILS, by_name, judged
from pipeline.premise_evidence import Premises, Watched
from queries.store import Store

WATCHED = switchback_settings.watched(shipped())
ENOUGH = math.log(premise_evidence.BLOCKS_A_CYCLE / premise_evidence.ALPHA)
REQUESTS_A_BLOCK = 400
SPREAD = Watched("speculation", "affinity_load_spread", 1.4, True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def levels(one: Watched) -> tuple[float, float]:
    """(past the threshold, short of it), within what the metric can be: two thirds of the way to a bound, at most a third off."""
    low, high = by_name()[one.metric].bounds
    above = min(one.threshold * 1.3, one.threshold + 0.66 * ((math.inf if high is None else high) - one.threshold))
    below = max(one.threshold * 0.7, one.threshold - 0.66 * (one.threshold - (low or 0.0)))
    return (above, below) if one.is_above else (below, above)


def block(one: Watched, level: float, drawn: np.random.Generator) -> pl.DataFrame:
    """A long block's sums of a premise; of a spread the largest replica's and the mean."""
    now = level * float(drawn.normal(1, 0.02))
    weighs = by_name()[one.metric].denominator != "1"
    den = drawn.integers(50, 150, REQUESTS_A_BLOCK).astype(float) if weighs else np.ones(REQUESTS_A_BLOCK)
    num = den * now * drawn.normal(1, 0.1, REQUESTS_A_BLOCK)
    parts = (num.sum(), den.sum(), (num**2).sum(), (den**2).sum(), (num * den).sum())
    if premise_evidence.is_spread(one.metric):
        parts = (now * 1e5, 1e5, 0.0, 0.0, 0.0)
    named = {"lever": one.lever, "segment": "s", "metric": one.metric, "n": REQUESTS_A_BLOCK}
    return pl.DataFrame([named | dict(zip(premise_evidence.SUMS[1:], parts, strict=True))])


def log_m(one: Watched, level: float, blocks: int = 45) -> float:
    kept, drawn = Premises.start(), np.random.default_rng(3)
    for number in range(blocks):
        ended_at = datetime(2026, 11, 29, tzinfo=UTC) + timedelta(seconds=premise_evidence.LONG_S * (number + 1))
        kept = premise_evidence.advanced(kept, block(one, level, drawn), (one,), ended_at)
    return float(premise_evidence.listed(kept)["log_m"].item())


@pytest.mark.parametrize("one", WATCHED, ids=lambda one: f"{one.lever}-{one.metric}-{one.threshold:g}")
def test_a_premise_past_its_threshold_is_evident_and_one_short_of_it_is_not(one: Watched) -> None:
    past, short = levels(one)
    assert log_m(one, past) >= ENOUGH
    assert log_m(one, short) < ENOUGH - 3


def test_every_metric_that_a_shipped_policy_names_has_a_row_of_effects_where_it_is_measured() -> None:
    known = {*compare.OF_BOTH_ARMS, *compare.OF_TREATED, *TAILS, "quality"}
    for policy in shipped():
        conditions = (*policy.disable_when, policy.re_enable_when, *policy.gates, *policy.advise_when)
        named = {effect_name(one.metric) for one in conditions} | {effect_name(policy.enabling_condition.metric)}
        assert named <= known, policy.name


def test_every_metric_that_a_shipped_policys_trigger_compares_with_control_has_evidence() -> None:
    evident = {metric for family in FAMILIES for metric in family.metrics} | {"error_rate", *TAILS, "quality"}
    for policy in shipped():
        compared = {one.metric for one in (*policy.disable_when, policy.re_enable_when) if _is_compared(one)}
        assert {effect_name(metric) for metric in compared} <= evident, policy.name


def _is_compared(condition: Condition) -> bool:
    metric = judged().get(condition.metric)
    return metric is not None and gain_limit(condition, metric) is not None


def put(store: Store, hours: int, uneven: float) -> None:
    """Ten requests a minute on three replicas; the first computes `uneven` times as many tokens a request as the others, or so."""
    drawn = np.random.default_rng(6)
    rows = [
        {"replica": f"r{number % 3}", "model": "m", "arm": "treated", "outcome": "ok", "after_s": 6 * number, "cached_tokens": 0}
        | {"prompt_tokens": int(drawn.integers(300, 700) * (uneven if number % 3 == 0 else 1.0))}
        for number in range(hours * 600)
    ]
    made = measure.cells(frame_of(rows))
    with store.write() as transaction:
        cell_store.add(transaction, made)


@pytest.mark.parametrize(("uneven", "is_lost"), [(2.2, True), (1.3, False)])
def test_how_uneven_replicas_are_is_read_of_a_store_by_long_blocks_as_a_report_has_it(store: Store, uneven: float, is_lost: bool) -> None:
    put(store, 18, uneven)
    until = BEGAN + timedelta(hours=18)
    segment = store.rows("select distinct segment from cells where lever <> ''")[0]["segment"]
    row = {"lever": SPREAD.lever, "segment": segment, "metric": SPREAD.metric, "basis": "premise", "until": until}
    (told,), premises = premise_store.told(store, [pl.DataFrame([row])], (SPREAD,))
    assert (told["premise_evidence"].item()[0]["log_m"] >= ENOUGH) == is_lost
    assert premises is not None
    since = until - timedelta(seconds=premise_evidence.LONG_S)
    question = report_source.from_cells(store, "cells", [by_name()[SPREAD.metric]], [], since, until, None)
    assert question is not None
    reported = store.frame(question.sql, question.params)[SPREAD.metric].item()
    newest = premises.scale.known.recent[0, 0]
    assert newest == pytest.approx(reported / SPREAD.threshold - 1, rel=1e-9)
