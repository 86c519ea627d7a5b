"""Quality scores: what an event says, what is the same evaluation, and in which direction a score is better."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from collectors_bodies import START, attribute, body, span
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import evaluations
from collectors.evaluations import EVENT, Evaluation, EvaluationError

SAID = {"gen_ai.evaluation.name": "faithful", "gen_ai.evaluation.score.value": "0.75", "gen_ai.response.id": "resp-1"}


def rows(*said: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = evaluations.rows(evaluations.posted(json.dumps(said).encode()), 0, "s", START).to_pylist()
    return found


def test_an_event_is_a_score_of_its_response_and_its_explanation_is_not_read() -> None:
    found = evaluations.of_event(SAID | {"gen_ai.evaluation.explanation": "a secret", "gen_ai.request.model": "m"}, START, "01" * 16)
    wanted = Evaluation(
        "faithful", 0.75, evaluated_at=datetime.fromtimestamp(START / 1e9, UTC), model="m", request_id="resp-1", trace_id="01" * 16
    )
    assert found == wanted


def test_an_event_may_say_more_under_our_own_names() -> None:
    own = {"leverwatch.evaluation.lever": "kv_quantization", "leverwatch.evaluation.setting": "fp8", "leverwatch.evaluation.repeat": "3"}
    found = evaluations.of_event(SAID | own | {"leverwatch.evaluation.better": "lower"}, START, "")
    assert (found.lever, found.setting, found.repeat, found.better) == ("kv_quantization", "fp8", 3, "lower")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"gen_ai.evaluation.score.value": None}, "without gen_ai.evaluation.score.value: a label alone is no score"),
        ({"gen_ai.evaluation.score.value": "good"}, "Expected `float`"),
        ({"gen_ai.evaluation.score.value": "nan"}, "score = nan is no number"),
        ({"gen_ai.evaluation.name": None}, "missing required field `suite`"),
        ({"leverwatch.evaluation.lever": "speculaton"}, "did you mean 'speculation'?"),
    ],
)
def test_an_event_that_is_no_score_says_why(fields: dict[str, str | None], told: str) -> None:
    said = {key: value for key, value in (SAID | fields).items() if value is not None}
    with pytest.raises(EvaluationError) as caught:
        evaluations.of_event(said, START, "")
    assert told in str(caught.value)


def test_events_of_spans_are_found_with_the_trace_of_their_span() -> None:
    event = Span.Event(name=EVENT, time_unix_nano=START, attributes=[attribute(key, value) for key, value in SAID.items()])
    broken = Span.Event(name=EVENT, attributes=[attribute("gen_ai.evaluation.name", "n")])
    found = list(evaluations.of_spans(body(span(1, events=[event, broken]), span(2), service__name="x"), START))
    assert [getattr(one, "trace_id", None) for one in found] == ["00" * 15 + "01", None]
    assert list(evaluations.of_spans(body(span(1)), START)) == []
    assert list(evaluations.of_spans(EVENT.encode() + b"\xff", START)) == []


def test_the_same_content_is_the_same_evaluation_and_a_repeat_is_another() -> None:
    one = {"suite": "s", "score": 0.5}
    ids = [row["evaluation_id"] for row in rows(one, one, one | {"repeat": 1}, one | {"repeat": 2}, one | {"score": 0.6})]
    assert (ids[0] == ids[1], len(set(ids))) == (True, 4)


def test_a_perplexity_is_better_when_lower_unless_it_is_said() -> None:
    said = ({"kind": "perplexity"}, {"kind": "product"}, {"kind": "public_benchmark", "better": "lower"})
    assert [row["better"] for row in rows(*({"suite": "s", "score": 1} | one for one in said))] == ["lower", "higher", "lower"]


def test_a_score_without_a_time_was_made_when_it_came_and_one_without_an_offset_is_utc() -> None:
    found = rows({"suite": "s", "score": 1}, {"suite": "s", "score": 1, "evaluated_at": "2026-11-29T12:00:00"})
    assert [row["evaluated_at"] for row in found] == [datetime.fromtimestamp(START / 1e9, UTC), datetime(2026, 11, 29, 12, tzinfo=UTC)]


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z"])
def test_a_time_that_no_evaluation_has_is_refused(moment: str) -> None:
    with pytest.raises(EvaluationError, match="row 0: evaluated_at = "):
        rows({"suite": "s", "score": 1, "evaluated_at": moment})


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("temperature", -1, "row 0: temperature = -1.0: a number from 0 on is taken"),
        ("trace_id", "zz", "row 0: trace_id = 'zz': 32 hex digits are taken"),
        ("trace_id", "0" * 33, "32 hex digits are taken"),
        ("suite", "a\0b", "row 0: suite holds NUL"),
        ("setting", "\0", "row 0: setting holds NUL"),
    ],
)
def test_a_value_that_no_evaluation_has_is_refused(field: str, value: Any, told: str) -> None:
    with pytest.raises(EvaluationError, match=re.escape(told)):
        rows({"suite": "s", "score": 1} | {field: value})


def test_a_trace_is_named_as_spans_name_it_and_an_odd_one_of_a_record_costs_no_score() -> None:
    assert [row["trace_id"] for row in rows({"suite": "s", "score": 1, "trace_id": "AB" * 16})] == ["ab" * 16]
    assert evaluations.of_event(SAID, START, "0102").trace_id is None


@pytest.mark.parametrize("said", ["what somebody asked", "x" * 257, ""])
def test_a_text_in_place_of_a_response_id_is_not_kept(said: str) -> None:
    assert evaluations.of_event(SAID | {"gen_ai.response.id": said}, START, "").request_id is None


def test_a_nested_or_broken_post_is_refused() -> None:
    for text in (b"[" * 100_000, b"{", b'{"suite": "s", "score": 1e999}', b"\xff"):
        with pytest.raises(EvaluationError):
            evaluations.posted(text)
