"""Recorded response bodies: the tap's span from a line, the same line the same span, a broken line named."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from collectors_tap_app import COMPLETION, META, SGLANG_ANSWER, VLLM_ANSWER
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.response_bodies import ResponseBodyError, exports, is_response_body

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def spans(*items: Any) -> list[Any]:
    found = []
    for export in exports([json.dumps(item) for item in items], NOW):
        assert isinstance(export, bytes), export
        (resource,) = ExportTraceServiceRequest.FromString(export).resource_spans
        assert resource.scope_spans[0].scope.name == "leverwatch.response_tap"
        found += resource.scope_spans[0].spans
    return found


def said(span: Any) -> dict[str, Any]:
    values = {attribute.key.removeprefix("leverwatch.body."): attribute.value for attribute in span.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values.items()}


def test_a_bare_answer_of_vllm_is_the_taps_span_at_the_time_it_states() -> None:
    (span,) = spans(VLLM_ANSWER)
    assert span.name == "response_body"
    assert span.end_time_unix_nano == 1795956574 * 10**9
    expected = {"request_id": VLLM_ANSWER["id"], "cached_tokens": 512, "draft_tokens": 40, "accepted_tokens": 7, "verify_steps": 10}
    assert said(span) | expected == said(span)
    assert said(span)["accepted_by_position"] == "[4, 2, 1, 0]"


def test_a_bare_answer_of_sglang_is_joined_by_its_meta_infos_id() -> None:
    (span,) = spans(SGLANG_ANSWER)
    assert said(span)["request_id"] == META["id"]
    assert (said(span)["draft_tokens"], said(span)["accepted_tokens"], said(span)["cached_tokens"]) == (36, 19, 64)
    assert span.end_time_unix_nano == int(NOW.timestamp() * 1e9)
    assert span.end_time_unix_nano - span.start_time_unix_nano == 1_500_000_000


@pytest.mark.parametrize(
    ("names", "draft", "accepted"),
    [
        (("spec_num_proposed_drafts", "spec_num_correct_drafts"), 36, 19),
        (("spec_proposed_drafts", "spec_accepted_drafts"), 36, 19),
        (("spec_draft_token_num", "spec_accept_token_num"), 36, 19),
        (("spec_unknown", "spec_accept_rate"), None, None),
    ],
)
def test_sglangs_older_names_are_read(names: tuple[str, str], draft: int | None, accepted: int | None) -> None:
    meta = {"id": "a", "spec_verify_ct": 12, names[0]: 36, names[1]: 19}
    (span,) = spans({"text": "", "meta_info": meta})
    assert said(span)["verify_steps"] == 12
    assert (said(span).get("draft_tokens"), said(span).get("accepted_tokens")) == (draft, accepted)


def test_zeros_without_a_verify_step_are_no_speculation() -> None:
    (span,) = spans({"text": "", "meta_info": {"id": "a", "spec_verify_ct": 0, "spec_accept_rate": 0.0, "spec_accept_token_num": 0}})
    assert not {"verify_steps", "draft_tokens", "accepted_tokens"} & set(said(span))


def test_an_envelope_states_ids_and_time() -> None:
    (span,) = spans({"request_id": "mine", "trace_id": TRACE, "received_at": "2026-11-29T10:00:00Z", "body": VLLM_ANSWER})
    assert span.trace_id.hex() == TRACE
    assert said(span)["request_id"] == "mine"
    assert span.end_time_unix_nano == int(datetime(2026, 11, 29, 10, tzinfo=UTC).timestamp()) * 10**9


def test_the_same_line_is_the_same_span_and_another_is_another() -> None:
    first, again, other = spans(VLLM_ANSWER, VLLM_ANSWER, {**VLLM_ANSWER, "id": "chatcmpl-2"})
    assert (first.trace_id, first.span_id) == (again.trace_id, again.span_id)
    assert first.trace_id != other.trace_id and first.span_id != other.span_id


def test_a_completion_is_joined_by_the_number_of_its_prompt_too() -> None:
    (span,) = spans({"id": "cmpl-1", "object": "text_completion", "created": 1, "choices": [{"index": 0, "text": "x"}]})
    assert (said(span)["request_id"], said(span)["join_key"]) == ("cmpl-1", "cmpl-1-0")


def test_of_several_samples_tokens_are_summed() -> None:
    (span,) = spans([{"text": "", "meta_info": {**META, "id": f"r{number}"}} for number in range(3)])
    assert (said(span)["output_tokens"], said(span)["draft_tokens"]) == (96, 108)
    assert said(span)["acceptance_histogram"] == "[9, 12, 9, 6]"


def test_the_messages_api_counts_cached_tokens_apart() -> None:
    usage = {"input_tokens": 70, "cache_read_input_tokens": 512, "output_tokens": 18}
    (span,) = spans({"id": "msg_1", "type": "message", "stop_reason": "end_turn", "usage": usage})
    assert [said(span)[name] for name in ("prompt_tokens", "cached_tokens", "output_tokens")] == [582, 512, 18]


def test_the_responses_api_is_read() -> None:
    usage = {"input_tokens": 582, "input_tokens_details": {"cached_tokens": 512}, "output_tokens": 18}
    (span,) = spans({"id": "resp_1", "object": "response", "status": "completed", "usage": usage})
    assert [said(span)[name] for name in ("prompt_tokens", "cached_tokens", "output_tokens")] == [582, 512, 18]


def test_numbers_that_are_none_are_not_said() -> None:
    usage = {"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": {"cached_tokens": "512"}}
    (span,) = spans({"id": "a", "usage": usage, "choices": None, "metrics": {"queue_time_ms": float("inf")}})
    assert not {"prompt_tokens", "output_tokens", "cached_tokens", "queue_s"} & set(said(span))


def test_broken_lines_are_named_and_do_not_stop_the_others() -> None:
    lines = [
        json.dumps(VLLM_ANSWER),
        "{broken",
        "",
        '{"a": 1}',
        '{"body": {"id": "x"}, "trace_id": "zz"}',
        "[]",
        b"\xff",
        json.dumps(SGLANG_ANSWER),
    ]
    found = list(exports(lines, NOW))
    problems = [str(item) for item in found if isinstance(item, ResponseBodyError)]
    assert [problem.partition(":")[0] for problem in problems] == ["line 2", "line 4", "line 5", "line 6", "line 7"]
    assert "an answer with `id` or `meta_info`" in problems[1]
    assert "trace_id 'zz': 32 hex digits" in problems[2]
    (export,) = (item for item in found if isinstance(item, bytes))
    assert len(ExportTraceServiceRequest.FromString(export).resource_spans[0].scope_spans[0].spans) == 2
    assert COMPLETION.encode() not in export


def test_many_lines_are_several_exports() -> None:
    lines = [json.dumps({**VLLM_ANSWER, "id": f"chatcmpl-{number}"}) for number in range(1000)]
    requests = [ExportTraceServiceRequest.FromString(item) for item in exports(lines, NOW) if isinstance(item, bytes)]
    sizes = [len(request.resource_spans[0].scope_spans[0].spans) for request in requests]
    assert sizes == [512, 488]


def test_what_a_line_is_can_be_told_by_its_keys() -> None:
    assert is_response_body(VLLM_ANSWER) and is_response_body(SGLANG_ANSWER) and is_response_body([SGLANG_ANSWER])
    assert is_response_body({"request_id": "a", "body": VLLM_ANSWER})
    assert not is_response_body({"resourceSpans": []}) and not is_response_body([]) and not is_response_body({"body": {}, "severity": 9})
