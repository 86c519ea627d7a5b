"""The middleware inside a real ASGI server: nothing changes for the client, and one span says what the body said."""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from collectors_tap_app import COMPLETION, PLAIN, PROMPT, STREAMED, Engine, Sent, asked, dated, proxied, request, served
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased, TraceIdRatioBased

from collectors import response_tap
from collectors.response_tap import ResponseTap, Tap

CASES = [*PLAIN, *STREAMED, "gzip"]
CALLER = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
SPOKEN = {
    "request_id": "chatcmpl-b5709e79b5556b35", "model": "tiny", "finish_reason": "stop", "prompt_tokens": 582, "cached_tokens": 512,
    "output_tokens": 18, "draft_tokens": 40, "accepted_tokens": 7, "verify_steps": 10, "queue_s": 0.012, "decode_s": 0.25,
    "acceptance_histogram": "[6, 2, 1, 1, 0]", "accepted_by_position": "[4, 2, 1, 0]", "status_code": 200, "path": "/v1/chat/completions",
}  # fmt: skip
NATIVE = {
    "request_id": "5b8efff798038103d269b633813fc60c", "finish_reason": "length", "prompt_tokens": 100, "cached_tokens": 64,
    "output_tokens": 32, "draft_tokens": 36, "accepted_tokens": 19, "verify_steps": 12, "queue_s": 0.25,
    "acceptance_histogram": "[3, 4, 3, 2]", "accepted_by_position": "[9, 5, 2]",
}  # fmt: skip


def read(case: str, *headers: str, engine: Engine | None = None, sent: Sent | None = None, **more: Any) -> tuple[bytes, Sent]:
    """What a client gets through the middleware, and what the tap sent."""
    sent = sent or Sent()

    async def scenario() -> bytes:
        async with served(ResponseTap(engine or Engine(), sent.tap)) as port:
            return await asked(port, request(case, *headers, **more))

    return asyncio.run(scenario()), sent


def subset(found: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
    return {name: found.get(name) for name in of}


@pytest.mark.parametrize("case", CASES)
def test_no_byte_differs_with_the_middleware_or_the_proxy(case: str) -> None:
    async def scenario() -> list[bytes]:
        tap, bare = Sent().tap, Engine()
        async with served(bare) as plain, served(ResponseTap(Engine(), tap)) as tapped, proxied(tap, plain) as proxy:
            return [dated(await asked(port, request(case))) for port in (plain, tapped, proxy)]

    plain, tapped, proxy = asyncio.run(scenario())
    assert len(plain) > 100
    assert tapped == plain
    assert sorted(proxy.split(b"\r\n")) == sorted(plain.split(b"\r\n"))  # `Connection` stands elsewhere among the headers
    assert proxy.partition(b"\r\n\r\n")[2] == plain.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("case", ["vllm", "vllm_stream", "gzip", "crlf_stream", "split_stream"])
def test_what_vllm_states_is_on_the_span(case: str) -> None:
    found = read(case)[1].attributes()
    assert subset(found, SPOKEN) == SPOKEN
    assert found["is_streamed"] == case.endswith("stream")
    assert "outcome" not in found and "unread" not in found


@pytest.mark.parametrize("case", ["native", "native_stream"])
def test_what_sglang_states_is_on_the_span(case: str) -> None:
    found = read(case, path="/generate")[1].attributes()
    assert subset(found, NATIVE) == NATIVE


def test_of_a_body_too_large_to_parse_the_ends_are_read() -> None:
    found = read("large")[1].attributes()
    expected = {name: value for name, value in SPOKEN.items() if name != "finish_reason"}
    assert subset(found, expected) == expected


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("refused", {"outcome": "error", "status_code": 400}),
        ("failed", {"outcome": "error", "status_code": 500}),
        ("failing_stream", {"outcome": "error", "status_code": 200, "chunks": 1}),
        ("cut_stream", {"outcome": "aborted", "status_code": 200, "chunks": 2}),
        ("no_usage", {"request_id": "chatcmpl-1", "prompt_tokens": None, "outcome": None}),
        ("no_usage_stream", {"finish_reason": "stop", "prompt_tokens": None, "cached_tokens": None, "outcome": None}),
        ("samples", {"finish_reason": "length,stop", "prompt_tokens": 582, "output_tokens": 18}),
    ],
)
def test_other_answers_say_what_became_of_them(case: str, expected: dict[str, Any]) -> None:
    assert subset(read(case)[1].attributes(), expected) == expected


@pytest.mark.parametrize("case", CASES)
def test_no_text_of_prompt_or_completion_leaves_the_tap(case: str) -> None:
    (span,) = read(case)[1].spans()
    assert PROMPT not in span.to_json() and COMPLETION not in span.to_json()


def test_the_first_chunk_arrives_while_the_engine_holds_the_rest() -> None:
    async def scenario(kind: str) -> bytes:
        engine = Engine()
        async with served(ResponseTap(engine, Sent().tap)) as tapped, served(engine) as bare, proxied(Sent().tap, bare) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", {"middleware": tapped, "proxy": proxy}[kind])
            writer.write(request("held"))
            early = await asyncio.wait_for(reader.readuntil(COMPLETION.encode()), 10)
            assert not engine.gate.is_set()
            engine.gate.set()
            rest = await asyncio.wait_for(reader.read(), 10)
            writer.close()
            return early + rest

    for kind in ("middleware", "proxy"):
        assert asyncio.run(scenario(kind)).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("kind", ["middleware", "proxy"])
def test_a_client_that_hangs_up_is_aborted_and_the_engine_is_told(kind: str) -> None:
    engine, sent = Engine(), Sent()

    async def scenario() -> None:
        app = ResponseTap(engine, sent.tap) if kind == "middleware" else engine
        async with served(app) as port, proxied(sent.tap, port) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", port if kind == "middleware" else proxy)
            writer.write(request("endless"))
            await asyncio.wait_for(reader.readuntil(COMPLETION.encode()), 10)
            writer.close()
            for _ in range(500):
                if engine.cancelled and sent.spans():
                    break
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    assert engine.cancelled == 1
    assert subset(sent.attributes(), {"outcome": 0, "chunks": 0, "finish_reason": 0}) == {
        "outcome": "aborted",
        "chunks": 1,
        "finish_reason": None,
    }


def test_the_engine_becomes_the_taps_child_in_the_callers_trace() -> None:
    engine = Engine()
    _, sent = read("vllm", CALLER + "01", "tracestate: vendor=1", "X-Request-Id: mine", engine=engine)
    (span,) = sent.spans()
    assert span.parent is not None and f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert engine.seen[0]["traceparent"] == f"00-0af7651916cd43dd8448eb211c80319c-{span.context.span_id:016x}-01"
    assert engine.seen[0]["tracestate"] == "vendor=1"
    assert engine.seen[0]["x-request-id"] == "mine"


@pytest.mark.parametrize("headers", [(), ("traceparent: 00-0000-xx-01", "tracestate: stale=1"), (CALLER + "01", CALLER + "00")])
def test_without_a_valid_caller_a_new_trace_begins(headers: tuple[str, ...]) -> None:
    engine = Engine()
    _, sent = read("vllm", *headers, engine=engine)
    (span,) = sent.spans()
    assert span.parent is None
    passed, _, flags = engine.seen[0]["traceparent"].rpartition("-")
    assert passed == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}"
    assert int(flags, 16) & 1
    assert "tracestate" not in engine.seen[0]


def test_a_caller_who_says_not_sampled_is_obeyed() -> None:
    engine = Engine()
    _, sent = read("vllm", CALLER + "00", engine=engine)
    assert sent.spans() == []
    assert engine.seen[0]["traceparent"] == CALLER.removeprefix("traceparent: ") + "00"


def test_always_on_records_and_still_passes_the_callers_flag_on() -> None:
    engine = Engine()
    _, sent = read("vllm", CALLER + "00", engine=engine, sent=Sent(sampler=ALWAYS_ON))
    (span,) = sent.spans()
    assert engine.seen[0]["traceparent"] == f"00-0af7651916cd43dd8448eb211c80319c-{span.context.span_id:016x}-00"


def test_a_new_trace_that_is_not_sampled_is_not_sampled_by_the_engine_either() -> None:
    engine = Engine()
    _, sent = read("vllm", engine=engine, sent=Sent(sampler=ParentBased(TraceIdRatioBased(0.0))))
    assert sent.spans() == []
    assert not int(engine.seen[0]["traceparent"].rpartition("-")[2], 16) & 1


def test_only_requests_that_generate_are_read() -> None:
    engine = Engine()
    for method, path in (("GET", "/v1/chat/completions"), ("POST", "/v1/models"), ("POST", "/tokenize")):
        assert read("vllm", method=method, path=path, engine=engine)[1].spans() == []
    assert all("traceparent" not in headers for headers in engine.seen)


def test_an_app_that_fails_fails_as_before_and_its_span_is_ended() -> None:
    async def failing(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        msg = "broken"
        raise RuntimeError(msg)

    sent = Sent()
    scope = {"type": "http", "method": "POST", "path": "/generate", "headers": []}

    async def sending(_: Any) -> None:
        return None

    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(ResponseTap(failing, sent.tap)(scope, None, sending))  # type: ignore[arg-type]
    assert sent.attributes()["outcome"] == "aborted"


def test_a_fault_of_the_reader_costs_the_facts_and_not_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_tap.Answer, "add", lambda *_: 1 / 0)
    answer, sent = read("vllm")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == PLAIN["vllm"][1]
    assert sent.attributes()["unread"] == "failed: ZeroDivisionError"


def test_without_an_exporter_everything_passes(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(response_tap, "EXPORTERS", {"grpc": "no_such_module.grpc", "http/protobuf": "no_such_module.http"})
    tap, end = response_tap.from_environment()
    end()
    assert "answers pass through unread: no OTLP exporter is installed" in caplog.text
    assert tap.begin("POST", "/generate", []) is None


def test_an_unknown_protocol_is_said_with_those_known(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier-pigeon")
    response_tap.from_environment()[1]()
    assert "OTLP protocol 'carrier-pigeon' is unknown; known: grpc, http/protobuf" in caplog.text


def test_other_paths_are_read_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEVERWATCH_TAP_PATHS", "/infer, /other")
    tap, end = response_tap.from_environment()
    assert tap.begin("POST", "/v2/infer", []) is not None
    assert tap.begin("POST", "/v1/chat/completions", []) is None
    end()


def test_the_file_imports_the_standard_library_and_opentelemetry_alone() -> None:
    tree = ast.parse(Path(response_tap.__file__).read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "." for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "opentelemetry"}


def test_a_tap_without_a_tracer_reads_nothing() -> None:
    assert Tap().begin("POST", "/v1/chat/completions", []) is None
