"""What is said of many segments at once is what would be said of each of them alone."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from alerts.calm import calm
from alerts.chain import Condition, Policy, PremiseLost
from alerts.columns import Columns, Late
from alerts.conditions import gain_limit, past
from alerts.effects import ALPHA, BLOCKS_A_CYCLE, NULLS, Effect, effect_name
from alerts.judge import judge
from alerts.policy import shipped
from alerts.standing import Seen, Standing
from pipeline.metrics import judged

UNTIL = datetime(2026, 3, 2, 12, tzinfo=UTC)
ON = Standing("on", UNTIL - timedelta(days=1))
SEGMENTS = 160
_LOGS = pl.List(pl.Float64)
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("lever", "segment"), pl.String),
    "block_ended_at": pl.Datetime("us", "UTC"),
    **dict.fromkeys(Effect._fields, pl.Float64),
    **dict.fromkeys(("metric", "basis", "note", "trap", "upstream", "grade", "says", "permission", "permission_reason"), pl.String),
    **dict.fromkeys(("since", "until"), pl.Datetime("us", "UTC")),
    **dict.fromkeys(("blocks", "n_a", "n_b", "tests", "turned_blocks", "blocks_together"), pl.Int64),
    **dict.fromkeys(("evidence_below", "evidence_above"), _LOGS),
    **dict.fromkeys(("sample_ratio_off", "uncalibrated"), pl.Boolean),
    "premise_evidence": pl.List(pl.Struct({"threshold": pl.Float64, "is_above": pl.Boolean, "log_m": pl.Float64})),
}


def conditions(policy: Policy) -> list[Condition]:
    named: list[Any] = [*policy.disable_when, *policy.gates, *policy.advise_when, policy.enabling_condition, policy.re_enable_when]
    return [one for outer in named for one in (outer, *getattr(outer, "where", ()))]


def effects(policy: Policy, rng: np.random.Generator, trouble: float) -> dict[str, Effect]:
    """Effects of a segment in which most is well; each thing that may be wrong is so with a probability of `trouble`."""
    is_controlled = rng.random() >= 0.2
    named: dict[str, list[Condition]] = {"tpot_s": []}
    for one in conditions(policy):
        named.setdefault(effect_name(one.metric), []).append(one)
    found = {}
    for name, asked in named.items():
        if name == "quality" or rng.random() < trouble / 2:
            continue
        own = [one for one in asked if gain_limit(one, judged()[one.metric]) is None]
        value = _well(own) if rng.random() >= trouble else rng.choice([one.threshold or 0.0 for one in own] or [0.03])
        if len(own) < len(asked):
            found[name] = _compared(name, rng, trouble, is_controlled)._replace(value_a=float(value))
        else:
            found[name] = _alone(name, float(value), [one for one in own if isinstance(one, PremiseLost)], rng, trouble)
    return found


def _well(asked: list[Condition]) -> float:
    """A value past as few thresholds as can be."""
    values = [0.031, *(factor * (one.threshold or 0.0) for one in asked for factor in (0.0, 0.4, 0.9, 1.1, 1.6, 3.0))]
    return min(values, key=lambda value: sum(bool(past(value, one.is_ == "above", one.threshold)) for one in asked))


def _compared(name: str, rng: np.random.Generator, trouble: float, is_controlled: bool) -> Effect:
    odd = rng.random(12) < trouble
    middle = rng.choice([-0.3, -0.01, 0.0, 0.02]) if odd[0] else rng.normal(0.1, 0.03)
    logs = [float(log) for log in rng.normal(-2, 3, len(NULLS))]
    if odd[1]:
        logs[int(rng.integers(len(NULLS)))] = math.log(BLOCKS_A_CYCLE / ALPHA) + float(rng.choice([-1e-12, 0.0, 1e-12, 4.0]))
    basis = "control" if is_controlled else str(rng.choice(["none", "switchback", "off_steps", "before_after"]))
    return Effect(
        name, UNTIL - timedelta(hours=2), UNTIL, 3 if odd[2] else 24, 50 if odd[3] else 4000, 50 if odd[4] else 400,
        0.031, None if odd[5] else 0.027, middle, None if odd[6] else middle - 0.04, None if odd[6] else middle + 0.04, basis,
        0.5 if odd[7] else 1.0, "a note", "a trap" if odd[8] else None, None, 0.3 if odd[8] else 0.0,
        None if rng.random() < 0.3 else logs, None if rng.random() < 0.3 else logs[::-1], None if odd[9] else int(rng.integers(1, 4)), 9,
        -0.2, str(rng.choice(["good", "fair"])), None if is_controlled else [None, None, "loses", "pays"][int(rng.integers(4))],
        permission=str(rng.choice(["refused", "unseen", "widened_null"])) if odd[10] else None, margin=0.05 if odd[10] else None,
        permission_reason="it stays", sample_ratio_off=bool(odd[11]) if rng.random() < 0.5 else None, control_share=0.04,
        intended_control_share=0.05, uncalibrated=bool(rng.random() < trouble / 2), contrast_spread=1.4, blocks_together=2,
    )  # fmt: skip


def _alone(name: str, value: float, premises: list[PremiseLost], rng: np.random.Generator, trouble: float) -> Effect:
    evidence = [
        {"threshold": one.threshold, "is_above": one.is_ == "above", "log_m": 9.0 if rng.random() < trouble else -3.0} for one in premises
    ]
    return Effect(
        name, UNTIL - timedelta(hours=2), UNTIL, 24, 4000, 0, value, None, None, None, None, "premise",
        0.4 if rng.random() < trouble / 2 else 1.0, None, own_value=None if rng.random() < 0.8 else value,
        premise_evidence=evidence if evidence and rng.random() < 0.7 else None, tests=2,
    )  # fmt: skip


def columns_of(segments: list[dict[str, Effect]]) -> Columns:
    rows = [
        {"lever": "l", "segment": f"s{number:04d}", "block_ended_at": UNTIL, **effect._asdict()}
        for number, effects in enumerate(segments)
        for effect in effects.values()
    ]
    return Columns(pl.DataFrame(rows, schema=_SCHEMA))


def standings(rng: np.random.Generator, count: int) -> list[Standing | None]:
    odd: list[Standing | None] = [
        None,
        ON._replace(streak=1, reason_code="harm_pending"),
        ON._replace(counts={"gate.latency.ttft_s_p95": 1}),
        Standing("off_recommended", ON.state_since, cause="harm", advised="disable"),
        Standing("off", ON.state_since),
        Standing("probation", ON.state_since),
    ]
    return [odd[int(rng.integers(len(odd)))] if rng.random() < 0.1 else ON for _ in range(count)]


@pytest.mark.parametrize("policy", shipped(), ids=lambda policy: policy.name)
@pytest.mark.parametrize("trouble", [0.01, 0.05, 0.3])
def test_many_at_once_are_judged_as_one_by_one(policy: Policy, trouble: float) -> None:
    rng = np.random.default_rng(int(1000 * trouble))
    segments = [found for found in (effects(policy, rng, trouble) for _ in range(SEGMENTS)) if found]
    before, again = standings(rng, len(segments)), "to be judged again: tensor_parallel went from 4 to 8"
    seen = [Seen(quality=f"quality {number % 3}", again=again if number % 7 == 0 else None) for number in range(len(segments))]
    breach = Effect("quality", UNTIL, UNTIL, 5, 5, 5, 0.7, 0.9, -0.2, -0.25, -0.15, "evaluations", 1.0, None, says="loses")
    scores = [
        [None, None, breach, breach._replace(gain=0.0, gain_low=-0.1, gain_high=0.1, says="pays")][n % 4] for n in range(len(segments))
    ]
    columns = columns_of(segments)
    found = calm(policy, columns, before, seen, scores)
    for place, judgment in found.items():
        alone = segments[place] | ({"quality": scores[place]} if scores[place] else {})  # type: ignore[dict-item]
        standing = before[place]
        assert standing is not None
        assert judgment == judge(policy, alone, standing, UNTIL, seen[place]), place
    if trouble < 0.02:
        assert len(found) > 0.3 * len(segments)  # a test in which nothing is calm would show nothing
        assert {judgment.verdict for judgment in found.values()} == {"keep", "insufficient"}


def test_effects_are_read_late_as_they_are_written() -> None:
    rng = np.random.default_rng(3)
    segments = [effects(shipped()[-1], rng, 0.2) for _ in range(30)]
    columns = columns_of(segments)
    for place, expected in enumerate(segments):
        late = Late(columns, place)
        assert len(late) == len(expected)
        assert {name: late[name] for name in late} == {
            name: effect._replace(evidence_below=late[name].evidence_below, evidence_above=late[name].evidence_above)
            for name, effect in expected.items()
        }
        for name, effect in expected.items():
            assert Counter(late[name].evidence_below or ()) == Counter(effect.evidence_below or ())


def test_a_segment_without_a_metric_has_no_row_of_it() -> None:
    rng = np.random.default_rng(4)
    first = _compared("ttft_s", rng, 0.0, True)
    columns = columns_of([{"ttft_s": first}, {"tpot_s": first._replace(metric="tpot_s")}, {"ttft_s": first._replace(n_a=7)}])
    assert columns.places("ttft_s").tolist() == [0, -1, 2]
    assert columns.places("unheard_of").tolist() == [-1, -1, -1]
    assert columns.at("n_a", "ttft_s").tolist()[::2] == [4000.0, 7.0]
    assert np.isnan(columns.at("n_a", "ttft_s")[1])
    assert np.isnan(columns.evidence("below", "unheard_of")).all()
