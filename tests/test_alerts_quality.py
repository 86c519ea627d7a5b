from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import polars as pl
import pytest
from around_judging import close, policy, serve

from alerts import scores, settings
from alerts.quality import Reading, Scores, noise_of
from pipeline.metrics import by_name
from queries.report import report
from queries.store import Store

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
POLICY = policy(name="weights", lever="weight_quantization")
ORIGINAL = (0.80, 0.81, 0.82, 0.83, 0.84)


def score(store: Store, setting: str, values: tuple[float, ...], at: datetime = NOW, **columns: Any) -> None:
    """A run of a suite, one repeat a minute."""
    common = {"suite": "tickets", "kind": "product", "model": "m", "lever": "weight_quantization", "setting": setting, "better": "higher"}
    common |= {"run_id": f"{setting}-{at}", "sender": "s", "received_at": at} | columns
    rows = [
        common | {"score": value, "repeat": number, "evaluated_at": at - timedelta(minutes=len(values) - number)}
        for number, value in enumerate(values, 1)
    ]
    ids = [f"{setting}-{at}-{columns}-{number}" for number in range(len(values))]
    with store.write() as transaction:
        transaction.insert("evaluations", pl.DataFrame(rows).with_columns(pl.Series("evaluation_id", ids)))


def told(store: Store, until: datetime = NOW) -> Reading:
    return scores.read(store, [POLICY], until, until).of_segment(POLICY, '{"model":"m","hardware":"h100"}', until)


def test_the_noise_is_the_range_of_differences_between_two_repeats() -> None:
    # deviation of 0.80..0.84 is sqrt(0.00025) = 0.0158; t with 4 degrees of freedom 2.776; sqrt(2) * 0.0158 * 2.776
    scored = Scores()
    for number, value in enumerate(ORIGINAL):
        scored.add(NOW + timedelta(minutes=number), value, "one")
    later = NOW + timedelta(days=1)
    assert noise_of(scored, ORIGINAL, NOW - timedelta(days=1), later) == pytest.approx(0.0621, abs=1e-4)
    alone = Scores()
    for number, value in enumerate(ORIGINAL):
        alone.add(NOW + timedelta(minutes=number), value, f"{number}")
    assert noise_of(alone, ORIGINAL, NOW - timedelta(days=1), later) == pytest.approx(0.0621, abs=1e-4), "runs of one repeat each"
    for number, value in enumerate(ORIGINAL):
        scored.add(later + timedelta(minutes=number), value + 0.3, "two")
    both = noise_of(scored, ORIGINAL, NOW - timedelta(days=1), later + timedelta(days=1))
    # eight degrees of freedom, the same deviation within each run: t is 2.306
    assert both == pytest.approx(0.0621 * 2.306 / 2.776, abs=1e-4)
    assert scored.variance(later - timedelta(minutes=1), later + timedelta(days=1)) == (pytest.approx(0.00025), 4)


def test_a_setting_within_the_noise_of_the_original_is_well(store: Store) -> None:
    score(store, "original", ORIGINAL)
    score(store, "int4", (0.77, 0.77))
    said = told(store)
    assert said.status == "ok"
    assert said.said == (
        "quality in tickets: 0.77 with int4 (2 repeats) against 0.82 of the original (5 repeats), "
        "worse by 0.05 where repeats of it differ by up to 0.062"
    )
    assert said.effect is not None
    assert said.effect.gain == pytest.approx(-0.05 / 0.82)
    assert said.effect.gain_high == pytest.approx((-0.05 + 0.0621) / 0.82, abs=1e-4)
    assert (said.effect.metric, said.effect.basis, said.effect.says) == ("quality", "evaluations", "pays")


def test_a_setting_worse_than_repeats_differ_is_a_breach_whichever_way_is_better(store: Store) -> None:
    score(store, "original", ORIGINAL)
    score(store, "int4", (0.75,))
    said = told(store)
    assert (said.status, said.effect and said.effect.says) == ("breach", "loses")
    assert said.effect is not None
    assert said.effect.gain_high is not None
    assert said.effect.gain_high < 0
    for setting, values in (("original", (5.60, 5.61, 5.62, 5.63, 5.64)), ("int4", (5.73,))):
        score(store, setting, values, suite="wiki", kind="perplexity", better="lower")
    gate = msgspec.structs.replace(POLICY.quality_gate, suite="wiki", kind="perplexity")
    lower = scores.readings(store, msgspec.structs.replace(POLICY, quality_gate=gate), NOW)["m"]
    assert lower.status == "breach"
    assert lower.effect is not None
    assert lower.effect.gain == pytest.approx(-0.11 / 5.62)


def test_the_newest_run_of_each_is_compared_and_not_the_month(store: Store) -> None:
    for hours in (48, 24):
        score(store, "original", ORIGINAL, NOW - timedelta(hours=hours))
        score(store, "int4", ORIGINAL, NOW - timedelta(hours=hours))
    assert told(store).status == "ok"
    score(store, "int4", (0.70, 0.71, 0.72))
    assert told(store).status == "breach"
    assert told(store, NOW - timedelta(hours=1)).status == "ok", "as of then"


def test_runs_of_one_repeat_are_taken_together_to_three(store: Store) -> None:
    score(store, "original", ORIGINAL, NOW - timedelta(hours=4))
    for hours, value in ((3, 0.82), (2, 0.82), (1, 0.70), (0, 0.71)):
        score(store, "int4", (value,), NOW - timedelta(hours=hours))
    assert told(store, NOW - timedelta(hours=1)).status == "ok", "0.82, 0.82 and 0.70"
    assert told(store).status == "breach", "0.82, 0.70 and 0.71"


def test_fewer_repeats_of_the_original_than_needed_are_insufficient(store: Store) -> None:
    score(store, "original", ORIGINAL[:4])
    score(store, "int4", (0.1,))
    said = told(store)
    assert (said.status, said.said) == ("insufficient", "quality in tickets: 4 repeats of the original, 5 are needed")
    assert said.is_doubted
    assert said.effect is not None
    assert said.effect.gain_low is None


def test_old_scores_are_aged_and_never_pass(store: Store) -> None:
    score(store, "original", ORIGINAL, NOW - timedelta(days=31))
    score(store, "int4", (0.82,))
    said = told(store)
    assert (said.status, said.effect and said.effect.gain_low) == ("aged", None)
    assert "the original was scored last at 2026-01-30T12:00:00Z, more than 30 days ago" in said.said
    assert told(store, NOW + timedelta(days=100)).status == "not_measured", "too old to be told of"


def test_without_scores_it_is_said_that_quality_was_not_measured(store: Store) -> None:
    assert told(store) == Reading("not_measured", "quality not measured: no score of weight quantization of m in the suite product yet")
    score(store, "original", ORIGINAL)
    assert told(store).status == "not_measured"


def test_repeats_that_are_all_alike_show_no_noise_and_are_insufficient_for_what_is_worse(store: Store) -> None:
    score(store, "original", (0.8,) * 5)
    score(store, "int4", (0.8,))
    assert told(store).status == "ok"
    score(store, "int4", (0.79,) * 3, NOW + timedelta(minutes=1))
    assert told(store, NOW + timedelta(minutes=1)).status == "insufficient"


def test_of_several_suites_the_worst_decides_and_other_temperatures_are_apart(store: Store) -> None:
    for suite, value in (("tickets", 0.82), ("forms", 0.70)):
        score(store, "original", ORIGINAL, suite=suite)
        score(store, "int4", (value,), suite=suite)
    assert told(store).status == "breach"
    assert told(store).said.startswith("quality in forms:")
    score(store, "int4", (0.82,), NOW + timedelta(minutes=1), suite="forms", temperature=0.8)
    assert told(store, NOW + timedelta(minutes=1)).status == "breach", "another temperature is another suite"


def test_a_setting_that_is_not_in_use_does_not_decide(store: Store) -> None:
    score(store, "original", ORIGINAL)
    score(store, "int4", (0.5,))
    score(store, "fp8", (0.82,))
    assert told(store).status == "breach", "as long as nobody knows which is in use"
    serve(store, 0, 30, {"weight_quantization": "fp8"}, {"weight_quantization": "treated"})
    close(store, [0])
    settings.read_next(store)
    assert told(store).status == "ok"


def test_an_original_that_names_no_lever_counts_for_each(store: Store) -> None:
    score(store, "original", ORIGINAL, lever=None)
    score(store, "int4", (0.82,))
    assert told(store).status == "ok"


def test_the_ratio_is_that_of_reports(store: Store) -> None:
    score(store, "original", ORIGINAL)
    score(store, "int4", (0.75, 0.77))
    serve(store, 0, 3, {"weight_quantization": "int4"})
    statement = report((by_name()["quality"],), store.frame("select * from requests limit 0").columns)
    [row] = store.rows(statement.sql, statement.params)
    effect = told(store).effect
    assert effect is not None
    assert effect.gain is not None
    assert row["quality"] == pytest.approx(1.0 + effect.gain)
