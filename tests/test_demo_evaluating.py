"""Quality scores: repeats of the original and of the model as it is served, in order of time, sent as events that are taken."""

from __future__ import annotations

from itertools import islice

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors import evaluations
from demo import evaluating, scenarios
from demo.engines import evaluation_job
from demo.engines.exports import Exports
from demo.records import Score
from demo.scenarios.layout import Scenario

BEGAN_NS = 1_764_400_000 * 1_000_000_000
HOUR_NS = 3_600_000_000_000


def scenario() -> Scenario:
    text = """
name = "x"
what = "x"
hours = 4
[[pools]]
name = "p"
model = "m"
engine = "vllm"
network = "dense-8b"
hardware = "h100"
groups = 2
lever = "weight_quantization"
setting = "fp8"
[[traffic]]
name = "t"
pool = "p"
requests_per_s = 1
input_tokens = [10, 20]
output_median_tokens = 5
[[evaluations]]
suite = "support-answers"
kind = "product"
pool = "p"
better = "higher"
original = 0.8
treated = 0.79
sd = 0.01
repeats = 5
from_hour = 2
treated_after = 0.6
[[evaluations]]
suite = "wiki"
kind = "perplexity"
pool = "p"
better = "lower"
original = 6.0
treated = 6.01
sd = 0.02
every_hours = 2
"""
    return scenarios.parse(text, "here.toml")


def scored(count: int, seed: int = 1, from_hour: float = 0.0) -> list[Score]:
    return list(islice(evaluating.scores(scenario(), BEGAN_NS, seed, from_hour), count))


def test_scores_come_in_order_of_time_each_run_with_its_repeats_of_both() -> None:
    scores = scored(60)
    assert [score.at_ns for score in scores] == sorted(score.at_ns for score in scores)
    first = [score for score in scores if score.run_id == "support-answers-p-0"]
    assert [(score.setting, score.repeat) for score in first] == [("original", n) for n in range(1, 6)] + [("fp8", n) for n in range(1, 6)]
    assert {(score.model, score.lever) for score in scores} == {("m", "weight_quantization")}


def test_the_treated_model_s_score_falls_from_the_hour_that_is_stated() -> None:
    treated = [score for score in scored(80) if score.suite == "support-answers" and score.setting == "fp8"]
    before = [score.score for score in treated if score.at_ns < BEGAN_NS + 2 * HOUR_NS]
    after = [score.score for score in treated if score.at_ns >= BEGAN_NS + 2 * HOUR_NS]
    assert sum(before) / len(before) == pytest.approx(0.79, abs=0.02)
    assert sum(after) / len(after) == pytest.approx(0.6, abs=0.02)


def test_the_same_seed_gives_the_same_scores_and_a_later_beginning_later_ones() -> None:
    assert scored(20) == scored(20)
    assert scored(20) != scored(20, seed=2)
    assert scored(1, from_hour=3.0)[0].at_ns == BEGAN_NS + 3 * HOUR_NS


def test_a_score_arrives_whole_as_an_evaluation() -> None:
    score = scored(1)[0]
    [(body, _)] = Exports().bodies(list(evaluation_job.Emitter().spans(score)))
    [found] = evaluations.of_spans(body, score.at_ns)
    assert isinstance(found, evaluations.Evaluation)
    same = ("suite", "kind", "model", "lever", "setting", "run_id", "repeat", "score", "better", "n", "temperature")
    assert {name: getattr(found, name) for name in same} == {name: getattr(score, name) for name in same}
    assert found.evaluated_at is not None
    assert found.evaluated_at.timestamp() == pytest.approx(score.at_ns / 1e9)


def test_a_score_is_a_span_of_the_job_with_one_event() -> None:
    score = scored(1)[0]
    [(body, count)] = Exports().bodies(list(evaluation_job.Emitter().spans(score)))
    [resource] = ExportTraceServiceRequest.FromString(body).resource_spans
    [span] = resource.scope_spans[0].spans
    assert (count, span.name, len(span.events), span.events[0].name) == (1, "evaluate support-answers", 1, "gen_ai.evaluation.result")
