"""Prompts and answers do not enter the store: not by any key, event, link, nested value or error text, unless asked for."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from collectors_bodies import START, attribute, request, span
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collectors import dialects, entry
from collectors.content import is_content, without_error_text, without_texts
from collectors.deployed import Deployed
from collectors.load import Loader
from collectors.spool import Spool
from queries.store import Store

MARKER = "the secret prompt of somebody"
DROPPED = [
    "gen_ai.prompt", "gen_ai.prompt.0.content", "gen_ai.completion.0.content", "gen_ai.input.messages", "gen_ai.output.messages",
    "gen_ai.system_instructions", "gen_ai.event.content", "gen_ai.tool.call.arguments", "gen_ai.evaluation.explanation",
    "traceloop.entity.input", "traceloop.entity.output", "traceloop.prompt.template", "langfuse.observation.input",
    "langfuse.trace.output", "langfuse.observation.prompt.name", "lk.chat_ctx", "lk.response.text", "lk.user_transcript", "lk.user_input",
    "ai.prompt", "ai.prompt.messages", "ai.response.text", "ai.response.toolCalls", "ai.toolCall.args", "ai.values", "mlflow.spanInputs",
    "mlflow.spanOutputs", "input.value", "output.value", "llm.input_messages.0.message.content", "llm.prompts.0", "llm.openai.messages",
    "http.request.body", "http.response.body", "request_data", "all_messages_events", "user_prompt", "system-prompt", "userPrompt",
    "my.app.question", "chat_history", "message", "exception.message", "exception.stacktrace", "log.body", "reranker.query",
    "http.request.header.x-prompt", "document.content", "haystack.component.input.query",
    "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "logfire.msg", "metadata", "session.metadata", "db.statement",
    "url.full", "url.query", "response", "gen_ai.request.stop_sequences",
]  # fmt: skip
KEPT = [
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.completion_tokens",
    "gen_ai.output.type", "input.mime_type", "gen_ai.request.model", "gen_ai.request.id", "gen_ai.response.finish_reasons",
    "gen_ai.latency.time_in_model_prefill", "exception.type", "http.response.body.size", "messaging.system", "service.name",
    "leverwatch.model", "leverwatch.body.finish_reason", "prompt.length", "num_messages", "text_size", "gen_ai.tool.name", "user.id",
    "gen_ai.response.time_to_first_chunk", "url.path", "num_requests", "gcp.vertex.agent.session_id", "logfire.msg_template",
]  # fmt: skip


@pytest.mark.parametrize("key", DROPPED)
def test_a_key_that_holds_text_is_dropped(key: str) -> None:
    assert is_content(dialects.deployment(), dialects.shipped())(key)


def of_maps(*values: str | None, key: str = "any.key") -> pa.Table:
    """Spans with one attribute each, and the same in an event and a link, as the loader has them."""
    keys, offsets = pa.array([key] * len(values), pa.string()), pa.array(range(len(values) + 1), pa.int32())
    maps = pa.MapArray.from_arrays(offsets, keys, pa.array(values, pa.string()))
    events = pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([keys, maps], names=["name", "attributes"]))
    on_span = pa.MapArray.from_arrays(offsets, keys.dictionary_encode(), maps.items)
    return pa.table({"attributes": on_span, "resource": on_span, "events": events, "links": events})


def values_of(spans: pa.Table) -> list[list[str | None]]:
    inner = [spans[name].combine_chunks().values.field("attributes") for name in ("events", "links")]
    return [maps.items.to_pylist() for maps in (spans["attributes"].combine_chunks(), spans["resource"].combine_chunks(), *inner)]


JSON_WITH_TEXT = [
    '{"model": "m", "messages": [{"role": "user", "content": "x"}]}', '[{"role":"user","parts":[{"text":"x"}]}]', '{"systemPrompt": "x"}',
    '{"system_prompt" : {"a": "x"}}', '{"a": "{\\"messages\\": [\\"x\\"]}"}', '{\n  "Input": "x"\n}',
]  # fmt: skip
JSON_WITHOUT = ['["stop"]', '{"temperature": 0.5, "prompt_tokens": 3}', '{"prompt": 5}', '{"context": "k8s"}', "{", "messages", "", None]


def test_json_under_any_key_goes_where_it_has_a_key_for_text() -> None:
    spans = of_maps(*JSON_WITH_TEXT, *JSON_WITHOUT)
    found = without_texts(spans, dialects.deployment().content)
    assert values_of(found) == [[*[None] * len(JSON_WITH_TEXT), *JSON_WITHOUT]] * 4
    assert found.schema == spans.schema
    assert values_of(without_texts(spans[-3:], dialects.deployment().content))[0][-3:] == JSON_WITHOUT[-3:]


def test_a_type_of_an_exception_that_is_a_sentence_goes() -> None:
    types = ["ValueError", "openai.APIError", "a.b::C<d>", "500", "List`1[System.String]", MARKER]
    for key, gone in (("exception.type", None), ("error.type", None), ("other", MARKER)):
        assert values_of(without_texts(of_maps(*types, key=key), dialects.deployment().content)) == [[*types[:-1], gone]] * 4


def test_spans_without_texts_are_not_copied() -> None:
    spans = of_maps(*JSON_WITHOUT)
    assert without_texts(spans, dialects.deployment().content) is spans
    assert without_texts(of_maps(), dialects.deployment().content).num_rows == 0


@pytest.mark.parametrize("key", KEPT)
def test_a_key_that_holds_a_number_or_a_name_is_kept(key: str) -> None:
    assert not is_content(dialects.deployment(), dialects.shipped())(key)


@pytest.mark.parametrize("dialect", dialects.shipped(), ids=lambda dialect: dialect.dialect)
def test_what_a_dialect_reads_or_asks_about_is_not_dropped(dialect: Any) -> None:
    is_dropped = is_content(dialects.deployment(), dialects.shipped())
    read = {source.key for sources in dialect.signals.values() for source in sources}
    asked = {condition.key for rule in dialect.spans for condition in rule.conditions()} | {*dialect.has}
    asked |= {key for also in dialect.also for key in (*also.has, *(condition.key for condition in also.where))}
    assert [key for key in sorted(read | asked) if is_dropped(key)] == []


def nested() -> KeyValue:
    inner = KeyValueList(values=[attribute("role", "user"), attribute("content", MARKER), attribute("tokens", 7)])
    messages = ArrayValue(values=[AnyValue(kvlist_value=inner)])
    outer = KeyValueList(values=[KeyValue(key="parts", value=AnyValue(array_value=messages)), attribute("system_prompt", MARKER)])
    return KeyValue(key="app.call", value=AnyValue(kvlist_value=outer))


def export() -> bytes:
    """An export that holds the marker wherever a sender may put text."""
    texts = [*(attribute(key, MARKER) for key in DROPPED), attribute("unknown", json.dumps({"messages": [{"content": MARKER}]}))]
    failed = Status(code=Status.STATUS_CODE_ERROR, message=f"ValidationError: 1 error for {MARKER}")
    one = span(1, attributes=[*texts, nested(), attribute("gen_ai.usage.prompt_tokens", 100)], status=failed)
    one.events.append(Span.Event(name="exception", time_unix_nano=START, attributes=[*texts, nested(), attribute("exception.type", "E")]))
    one.links.append(Span.Link(trace_id=b"1" * 16, span_id=b"1" * 8, attributes=[*texts, nested()]))
    two = span(2, status=Status(code=Status.STATUS_CODE_ERROR, message=MARKER))
    made = request(one, two, service__name="vllm")
    made.resource_spans[0].resource.attributes.extend([*texts, nested()])
    made.resource_spans[0].scope_spans[0].scope.attributes.extend([*texts, nested()])
    return bytes(made.SerializeToString())


def loaded(folder: Path, *, keep: bool) -> str:
    """All that the store says of spans, after the export was loaded and everything was closed."""
    store = Store(folder)
    loader = Loader(store, deployed=Deployed(keep_content=keep))
    spool = Spool(folder / "spool", loader.position())
    spool.append("traces", "sender", START, export()).result(10)
    waiting = next((folder / "spool").glob("*.spool"))
    assert MARKER.encode() in waiting.read_bytes()
    assert (stat.S_IMODE(waiting.stat().st_mode), stat.S_IMODE(waiting.parent.stat().st_mode)) == (0o600, 0o700)
    while loader.load_next(spool):
        pass
    rows = str(store.frame("select * from spans order by start_unix_nano").to_dicts())
    spool.close()
    store.close()
    return rows


def test_no_file_of_the_store_holds_a_prompt_once_its_export_is_loaded(tmp_path: Path) -> None:
    rows = loaded(tmp_path, keep=False)
    assert MARKER not in rows
    assert [path for path in tmp_path.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()] == []
    for kept in ("'prompt_tokens': 100", "ValidationError", '{"parts": [{"role": "user", "tokens": 7}]}', "exception.type"):
        assert kept in rows


def test_who_asks_for_text_gets_all_of_it(tmp_path: Path) -> None:
    rows = loaded(tmp_path, keep=True)
    assert f"ValidationError: 1 error for {MARKER}" in rows
    assert rows.count(MARKER) > 3 * len(DROPPED)


def test_log_bodies_do_not_even_reach_the_spool() -> None:
    made = ExportLogsServiceRequest()
    scope = made.resource_logs.add().scope_logs.add()
    for event in ("gen_ai.user.message", "gen_ai.evaluation.result"):
        record = scope.log_records.add(event_name=event, body=AnyValue(string_value=MARKER))
        record.attributes.extend([attribute("gen_ai.event.content", MARKER), attribute("gen_ai.evaluation.explanation", MARKER)])
        record.attributes.extend([attribute("gen_ai.evaluation.name", "suite"), attribute("gen_ai.evaluation.score.value", 0.5)])
    kept = entry.of_logs(made.SerializeToString())
    assert kept.items == 1
    assert MARKER.encode() not in kept.body


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ("ValueError: x", "ValueError"), ("openai.BadRequestError: x\ny: z", "openai.BadRequestError"), ("TimeoutError", "TimeoutError"),
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"), ("anything else", None), ("Secret", None), ("", None), (None, None),
        ("what a nice Error: x", None), ("UNAVAILABLE: x", None),
    ],
)  # fmt: skip
def test_of_an_error_only_its_class_is_kept(message: str | None, kept: str | None) -> None:
    rows = pa.table({"before": [1], "status_message": pa.array([message], pa.string()), "after": [2]})
    found = without_error_text(rows)
    assert found.column_names == rows.column_names
    assert (found["status_message"].to_pylist()[0] or None) == kept
