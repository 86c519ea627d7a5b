"""What to believe of a lever's newest effects: the current list of e-BH, over all segments and metrics, harm and gain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from pipeline.believed import BLOCKS_A_CYCLE, with_belief
from pipeline.evidence_families import NO_GAIN, NULLS

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
Row = tuple[str, str, float | None, float | None]


def effects(rows: list[Row], until: datetime = NOW, **changes: object) -> pl.DataFrame:
    """Rows of segment, metric and the e-values of harm and of gain at the null 0; None = no evidence yet."""
    said = [(segment, metric, until, _logs(harm), _logs(gain)) for segment, metric, harm, gain in rows]
    schema = {"segment": pl.String, "metric": pl.String, "until": pl.Datetime("us", "UTC")}
    lists = {name: pl.List(pl.Float64) for name in ("evidence_below", "evidence_above")}
    allowed = {"permission": "rotating", "margin": 0.0, "sample_ratio_off": None, "uncalibrated": None} | changes
    return pl.DataFrame(said, schema=schema | lists, orient="row").with_columns(
        pl.lit(value).alias(name) for name, value in allowed.items()
    )


def _logs(e_value: float | None) -> list[float | None] | None:
    if e_value is None:
        return None
    logs: list[float | None] = [50.0] * len(NULLS)
    logs[NO_GAIN] = float(np.log(e_value * BLOCKS_A_CYCLE))
    return logs


def believed(frame: pl.DataFrame) -> list[str | None]:
    return with_belief(frame)["believed"].to_list()


def test_one_stream_of_two_is_believed_past_the_level_that_its_share_of_the_weight_asks_for() -> None:
    """Both sides of one primary metric: each has half of the weight, so 1 / (0.1 * 0.5) is asked for."""
    assert believed(effects([("a", "net_itl_s", 20.1, 0.1)])) == ["harm"]
    assert believed(effects([("a", "net_itl_s", 19.9, 0.1)])) == [None]
    assert believed(effects([("a", "net_itl_s", 0.1, 20.1)])) == ["gain"]


def test_what_is_believed_together_asks_less_of_each() -> None:
    many = [(f"s{number}", "net_itl_s", 45.0, 0.1) for number in range(10)]
    assert believed(effects(many)) == ["harm"] * 10
    assert believed(effects([*many[:1], *((name, metric, 0.1, 0.1) for name, metric, _, _ in many[1:])])) == [None] * 10


def test_the_primary_metric_has_more_weight_than_a_guardrail() -> None:
    for metric, expected in (("net_itl_s", "harm"), ("ttft_s_p95", None), ("error_rate", None)):
        e_values = {"net_itl_s": 0.1, "ttft_s_p95": 0.1, "error_rate": 0.1} | {metric: 45.0}
        frame = with_belief(effects([("a", name, value, 0.1) for name, value in e_values.items()]))
        assert frame.filter(metric=metric)["believed"].item() == expected


def test_rows_without_evidence_are_no_streams_and_believe_nothing() -> None:
    rows: list[Row] = [("a", "net_itl_s", 20.1, 0.1), *((f"s{n}", "net_itl_s", None, None) for n in range(50))]
    assert believed(effects(rows)) == ["harm", *[None] * 50]


def test_rows_of_a_day_ago_or_of_fewer_nulls_are_not_believed() -> None:
    old = effects([("b", "net_itl_s", 1e6, 0.1)], NOW - timedelta(days=1))
    short = effects([("c", "net_itl_s", 1e6, 0.1)]).with_columns(pl.col("evidence_below", "evidence_above").list.head(4))
    assert believed(pl.concat([effects([("a", "net_itl_s", 0.1, 0.1)]), old, short])) == [None, None, None]


@pytest.mark.parametrize(
    "changes", [{"permission": "refused"}, {"permission": "unseen"}, {"sample_ratio_off": True}, {"uncalibrated": True}]
)
def test_what_may_not_decide_is_not_believed(changes: dict[str, object]) -> None:
    assert believed(effects([("a", "net_itl_s", 1e6, 0.1)], **changes)) == [None]


def test_a_margin_asks_for_the_null_beyond_it() -> None:
    """At every null but 0 the evidence of these rows is e^50."""
    assert believed(effects([("a", "net_itl_s", 0.1, None)], margin=0.03)) == ["harm"]
    assert believed(effects([("a", "net_itl_s", 0.1, None)], margin=0.2)) == [None], "no null lies beyond it"


def test_nothing_gives_nothing_with_the_column() -> None:
    assert with_belief(effects([])).columns[-1] == "believed"


@pytest.mark.parametrize("harmed", [0, 20])
def test_of_200_streams_few_are_believed_falsely(harmed: int) -> None:
    """E-values of the null have a mean of 1 at most; 200 draws of all 200 streams."""
    rng = np.random.default_rng(harmed)
    false, true = [], 0
    for _ in range(200):
        e_values = rng.exponential(1.0, (200, 2)) ** 2 / 2
        e_values[:harmed, 0] = 2_000
        found = believed(effects([(f"s{n}", "net_itl_s", *pair) for n, pair in enumerate(e_values.tolist())]))
        wrong = sum(said is not None for said in found[harmed:])
        true += sum(said == "harm" for said in found[:harmed])
        false.append(wrong / max(wrong + harmed, 1))
    assert np.mean(false) <= 0.1
    assert true == 200 * harmed
