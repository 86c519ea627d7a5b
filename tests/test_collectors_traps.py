"""What engines, gateways and clients say in ways that are easily misread: each is read as it is meant, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from collectors_bodies import START, attribute, request, span
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import decode, dialects, translate

SGLANG, TRT, FASTAPI, OTELHTTP = (
    "sglang server",
    "trt.llm",
    "opentelemetry.instrumentation.fastapi",
    "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp",
)


def said(
    name: str, scope: str, events: Any = (), kind: int = 0, resource: dict[str, str] | None = None, **attributes: Any
) -> dict[str, Any]:
    """What is read of one span: its dialect, its role and its signals that are not null. `__` stands for a dot in a key."""
    listed = [_attribute(key.replace("__", "."), value) for key, value in attributes.items()]
    made = span(1, name=name, kind=kind, attributes=listed, events=list(events))
    tables = decode.scan([request(made, scope=scope, **(resource or {})).SerializeToString()])
    spoken = translate.spoken(tables, dialects.shipped(), dialects.deployment())
    signals = {key: value for key, value in spoken.signals.row(0, named=True).items() if value is not None}
    return {"dialect": spoken.dialect[0], "role": spoken.role[0], **signals}


def _attribute(key: str, value: Any) -> KeyValue:
    if isinstance(value, bool):
        return KeyValue(key=key, value=AnyValue(bool_value=value))
    if isinstance(value, list):
        return KeyValue(key=key, value=AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=text) for text in value])))
    return attribute(key, value)


def event(name: str, at_ms: float, **attributes: Any) -> Any:
    """An event of span 1, so many milliseconds after its start."""
    listed = [_attribute(key, value) for key, value in attributes.items()]
    return Span.Event(name=name, time_unix_nano=START + 1_000_000 + int(at_ms * 1e6), attributes=listed)


def test_engines_that_share_the_name_llm_request_are_told_by_their_scope() -> None:
    read = {scope: said("llm_request", scope)["dialect"] for scope in ("vllm.tracing.otel", "vllm.llm_engine", TRT)}
    assert read == {"vllm.tracing.otel": "vllm", "vllm.llm_engine": "vllm", TRT: "trtllm"}


@pytest.mark.parametrize("name", ["EngineCoreProc init", "Load model", "Worker init", "Warmup (GPU)"])
def test_a_start_up_span_of_vllm_is_no_request(name: str) -> None:
    assert said(name, "vllm.v1.engine.core")["role"] == "housekeeping"
    assert said("llm_request", "vllm.v1.engine.core")["role"] == "housekeeping"


def test_a_temperature_that_is_absent_is_unknown_and_one_that_is_zero_is_zero() -> None:
    assert "temperature" not in said("llm_request", "vllm.tracing.otel")
    assert "temperature" not in said(" Req 1a2b3c4d", "sglang server", gen_ai__request__n=1, gen_ai__request__top_p=0.9)
    assert said("chat m", "any", gen_ai__operation__name="chat", gen_ai__request__temperature=0.0)["temperature"] == 0.0


@pytest.mark.parametrize(("scope", "join_key"), [("vllm.llm_engine", "chatcmpl-7"), ("vllm.tracing.otel", "1_chatcmpl-7")])
def test_the_internal_id_of_an_old_vllm_loses_the_number_of_its_sample_and_a_new_ones_id_stays(scope: str, join_key: str) -> None:
    assert said("llm_request", scope, gen_ai__request__id="1_chatcmpl-7")["join_key"] == join_key


SMALL = """
dialect = "small"
scopes = ["small"]
version = { resource = "service.version"SCOPES }
spans = [{ names = ["*"], role = "engine" }]
[signals]
ttft_s = [{ key = "t", unit = "ms", until = "0.10" }, { key = "t", unit = "s", since = "0.10" }]
[cannot]
"""


@pytest.mark.parametrize(
    ("scopes", "stated", "seconds"),
    [
        ("", "0.9.4", 0.005),
        ("", "v0.2-rc1", 0.005),
        ("", "0.10.1", 5.0),
        ("", "nonsense", 5.0),
        (', scopes = { small = "0.9" }', "0.10.1", 0.005),
    ],
)
def test_a_key_has_the_meaning_of_the_version_that_speaks_and_the_newest_where_that_is_unknown(
    scopes: str, stated: str, seconds: float
) -> None:
    small = dialects.load("small.toml", SMALL.replace("SCOPES", scopes).encode())
    made = request(span(1, attributes=[attribute("t", 5)]), scope="small", service__version=stated)
    spoken = translate.spoken(decode.scan([made.SerializeToString()]), (small,), dialects.deployment())
    assert spoken.signals["ttft_s"].to_list() == [seconds]


@pytest.mark.parametrize(
    ("name", "phase"), [(" Req 1a2b", None), ("Req 1a2b", None), ("prefill Req 1a2b", "prefill"), ("decode Req 1a", "decode")]
)
def test_a_root_of_sglang_is_told_with_its_leg_though_its_name_begins_with_a_space(name: str, phase: str | None) -> None:
    read = said(name, SGLANG, rid="r", gen_ai__response__finish_reasons='["stop"]')
    assert (read["role"], read.get("phase"), read["finish_reason"], read["request_id"]) == ("engine", phase, "stop", "r")


def test_the_times_of_sglang_that_include_the_queue_are_read_as_nothing() -> None:
    read = said(" Req 1", SGLANG, gen_ai__latency__time_in_model_prefill=0.5, gen_ai__latency__time_in_model_inference=0.9)
    assert not {"prefill_s", "inference_s", "queue_s"} & set(read)


@pytest.mark.parametrize(
    ("name", "ranks", "role"),
    [
        ("Scheduler [TP 0] (host:9f86 | pid:2)", {"tp_rank": 0}, "stage"),
        ("Scheduler [TP 1] (host:9f86 | pid:2)", {"tp_rank": 1}, "duplicate"),
        ("Scheduler [TP 0]  [PP 1]  [DP 0] (host:9f86 | pid:2)", {"tp_rank": 0, "pp_rank": 1}, "duplicate"),
        ("Scheduler [TP 0]  [PP 0]  [DP 3] (host:9f86 | pid:2)", {"tp_rank": 0, "pp_rank": 0, "dp_rank": 3}, "stage"),
        ("Prefill Scheduler [TP 12] (host:9f86 | pid:2)", {}, "duplicate"),
        ("Tokenizer(host:9f86 | pid:2)", {}, "stage"),
    ],
)
def test_the_stages_of_another_tensor_or_pipeline_rank_are_a_copy_and_those_of_another_data_rank_are_not(
    name: str, ranks: dict[str, int], role: str
) -> None:
    assert said(name, SGLANG, **ranks)["role"] == role


@pytest.mark.parametrize("name", ["tokenize", "dispatch", "process req", "decode loop", "Bootstrap Room 0x1f", "spec_draft", "decode_loop"])
def test_a_stage_of_sglang_new_or_old_is_no_request(name: str) -> None:
    assert said(name, SGLANG)["role"] == "stage"


def test_the_prefill_stage_of_sglang_054_gives_its_length_and_its_root_no_tokens() -> None:
    assert said("prefill", SGLANG)["prefill_s"] == pytest.approx(0.25)
    assert set(said("Req 1a2b", SGLANG, rid="r")) == {"dialect", "role", "request_id", "join_key"}


def test_the_warm_up_before_several_samples_of_sglang_is_no_request() -> None:
    assert said(" Req 1", SGLANG, gen_ai__request__n=4, gen_ai__usage__completion_tokens=0)["role"] == "housekeeping"
    assert said(" Req 1", SGLANG, gen_ai__request__n=1, gen_ai__usage__completion_tokens=0)["role"] == "engine"


def test_the_batch_of_a_request_is_that_of_its_first_prefill_and_each_retraction_counts() -> None:
    events = [
        event("schedule", 9, forward_mode="prefill", batch_size=7),
        event("schedule", 1, forward_mode="decode", batch_size=99),
        event("schedule", 5, forward_mode="prefill", batch_size=3),
        event("retract", 20),
        event("retract", 40),
    ]
    read = said("prefill_forward", SGLANG, events)
    assert (read["batch_at_admission"], read["preemptions"]) == (3, 2)
    assert not {"batch_at_admission", "preemptions"} & set(said("prefill_forward", SGLANG, [event("other", 1)]))


@pytest.mark.parametrize("sentinel", [-1, -1.0, "-1"])
def test_minus_one_second_of_tensorrt_llm_is_unknown_and_another_negative_time_is_kept_to_be_set_aside(sentinel: Any) -> None:
    read = said("llm_request", TRT, gen_ai__latency__time_to_first_token=sentinel, gen_ai__latency__time_in_queue=sentinel)
    assert not {"ttft_s", "queue_s"} & set(read)
    assert said("llm_request", TRT, gen_ai__latency__time_to_first_token=-0.2)["ttft_s"] == -0.2


def test_the_legs_of_tensorrt_llm_are_told_by_what_they_say() -> None:
    context = said("llm_request", TRT, gen_ai__response__finish_reasons='["not_finished"]')
    generation = said("llm_request", TRT, gen_ai__latency__kv_cache_transfer_time=0.05)
    assert (context["phase"], generation["phase"], generation["kv_transfer_s"]) == ("prefill", "decode", 0.05)
    assert "phase" not in said("llm_request", TRT, gen_ai__latency__kv_cache_transfer_time=-1.0)


def test_a_transfer_that_only_events_of_tensorrt_llm_mark_is_timed_by_them() -> None:
    events = [event("kv_cache_transfer_start", 3), event("kv_cache_transfer_end", 53)]
    assert said("llm_request", TRT, events)["kv_transfer_s"] == pytest.approx(0.05)
    assert "kv_transfer_s" not in said("llm_request", TRT, events[:1])


def test_a_request_id_of_tensorrt_llm_joins_nothing_as_every_server_counts_for_itself() -> None:
    read = said("llm_request", TRT, gen_ai__request__id=42)
    assert read["request_id"] == "42"
    assert "join_key" not in read


def test_the_proxy_of_tensorrt_llm_is_a_gateway_that_names_both_servers() -> None:
    events = [event("ctx_server.selected", 1, server="ctx-0:8001"), event("gen_server.selected", 2, server="gen-1:8002")]
    read = said("openai_chat", TRT, events, kind=2)
    assert (read["role"], read["prefill_replica"], read["decode_replica"]) == ("gateway", "ctx-0:8001", "gen-1:8002")
    assert said("anything", TRT, kind=1)["role"] == "stage"


def test_numbers_of_dynamo_arrive_as_texts_and_its_times_in_milliseconds() -> None:
    read = said("http-request", "dynamo", uri="/v1/chat/completions", input_tokens="4096", output_tokens="101", ttft_ms="210.5")
    assert (read["role"], read["prompt_tokens"], read["output_tokens"], read["ttft_s"]) == ("gateway", 4096, 101, 0.2105)
    assert said("http-request", "dynamo", uri="/metrics")["role"] == "housekeeping"


@pytest.mark.parametrize(("word", "phase"), [("Prefill", "prefill"), ("decode", "decode"), ("Aggregated", None)])
def test_the_leg_that_a_route_of_dynamo_opens_is_named_in_our_words(word: str, phase: str | None) -> None:
    assert said("router.route_request", "dynamo", phase=word).get("phase") == phase


@pytest.mark.parametrize(("word", "retried"), [(True, 1), (False, 0), ("True", 1), ("false", 0), ("perhaps", None)])
def test_a_truth_value_and_its_text_are_the_same(word: Any, retried: int | None) -> None:
    assert said("router.route_request", "dynamo", migration__is_retry=word).get("retried") == retried


@pytest.mark.parametrize("scope", ["llm-d-router/pkg/epp/handlers", "llm-d-inference-scheduler/epp/extproc"])
def test_of_the_server_spans_of_llm_d_those_that_hold_a_request_are_gateways_and_none_is_an_engine(scope: str) -> None:
    names = ("gateway.request", "gateway.request_orchestration", "forward_request", "llm_d.epp.scorer.prefix_cache", "pick_endpoints")
    roles = [said(name, scope, kind=2)["role"] for name in names]
    assert roles == ["gateway", "stage", "gateway", "stage", "stage"]
    sidecar = said("llm_d.pd_proxy.POST /v1/chat/completions", OTELHTTP, kind=2, resource={"service__name": "llm-d-disagg-sidecar"})
    assert (sidecar["dialect"], sidecar["role"]) == ("llm-d", "stage")
    assert said("GET /", OTELHTTP, kind=2, resource={"service__name": "shop"})["dialect"] is None


def test_what_llm_d_calls_true_ttft_is_no_time_to_the_first_token() -> None:
    read = said("decode", "llm-d-router/pkg/sidecar/proxy", llm_d__pd_proxy__true_ttft_ms=142.0, llm_d__pd_proxy__decode_duration_ms=842.0)
    assert (read["role"], read["phase"]) == ("stage", "decode")
    assert not {"ttft_s", "decode_s", "e2e_s"} & set(read)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("58.4ms", 0.0584),
        ("712.3µs", 0.0007123),
        ("712.3μs", 0.0007123),
        ("1.23s", 1.23),
        ("950ns", 9.5e-7),
        ("0ns", 0.0),
        ("2m", None),
        ("", None),
    ],
)
def test_a_duration_as_rust_writes_it_is_read_in_each_of_its_units(text: str, seconds: float | None) -> None:
    read = said("generate", "s", queue_time=text, total_time="1s", inference_time="1s", time_per_token="1ms")
    assert read.get("queue_s") == (None if seconds is None else pytest.approx(seconds))


def test_the_time_per_token_of_tgi_is_not_read_as_it_holds_the_prefill_and_its_seed_is_no_number() -> None:
    read = said("generate_stream", "s", total_time="2s", inference_time="1.5s", time_per_token="15ms", seed="Some(42)")
    assert set(read) == {"dialect", "role", "e2e_s", "inference_s"}
    assert said("generate", "s", resource={"service__name": "text-generation-inference.router"})["role"] == "engine"


@pytest.mark.parametrize("name", ["batch", "infer", "queued", "/generate.v3.TextGenerationService/Decode"])
def test_a_batch_or_shard_span_of_tgi_is_no_request(name: str) -> None:
    read = said(name, "s", kind=2, resource={"service__name": "text-generation-inference.router"}, batch_size=4)
    assert (read["dialect"], read["role"]) == ("tgi", "stage")


def test_vllm_leaves_a_temperature_of_zero_out_of_a_generation_and_states_its_n() -> None:
    greedy = said("llm_request", "vllm.tracing.otel", gen_ai__request__n=1, gen_ai__request__max_tokens=16)
    assert (greedy["temperature"], greedy["inferred"]) == (0.0, "temperature")
    sampled = said("llm_request", "vllm.llm_engine", gen_ai__request__n=1, gen_ai__request__temperature=0.7)
    assert (sampled["temperature"], sampled.get("inferred")) == (0.7, None)


def test_the_temperature_of_tgi_is_read_from_the_text_of_its_parameters() -> None:
    parameters = "GenerateParameters { best_of: None, temperature: {}, max_new_tokens: Some(100) }"
    texts = {"Some(0.7)": 0.7, "None": None}
    for text, temperature in texts.items():
        read = said("generate", "s", total_time="2s", inference_time="1s", time_per_token="1ms", parameters=parameters.replace("{}", text))
        assert read.get("temperature") == temperature


def test_a_call_of_litellm_is_a_gateways_in_both_of_its_forms_and_its_other_work_is_none() -> None:
    ours = {"service__name": "litellm"}
    first = said("Received Proxy Server Request", "litellm", kind=2, gen_ai__usage__input_tokens="12", llm__is_streaming="True")
    assert (first["role"], first["prompt_tokens"]) == ("gateway", 12)
    assert said("chat m", "litellm", kind=3, gen_ai__operation__name="chat")["role"] == "gateway"
    assert said("POST /v1/chat/completions", FASTAPI, kind=2, resource=ours)["role"] == "gateway"
    assert said("GET /health", FASTAPI, kind=2, resource=ours)["role"] == "stage"
    assert said("POST /v1/chat/completions", FASTAPI, kind=2, resource={"service__name": "shop"})["dialect"] is None
    assert {said(name, "litellm")["role"] for name in ("raw_gen_ai_request", "post_response", "auth /v1/chat/completions")} == {"stage"}


def test_both_conventions_of_envoy_are_read_and_an_embedding_is_no_request() -> None:
    scope = "envoyproxy/ai-gateway"
    openinference = said(
        "ChatCompletion", scope, openinference__span__kind="LLM", llm__token_count__prompt=9, llm__token_count__prompt_details__cache_read=4
    )
    genai = said("chat m", scope, gen_ai__operation__name="chat", gen_ai__usage__input_tokens=9, gen_ai__usage__cache_read__input_tokens=4)
    assert [(read["dialect"], read["role"], read["prompt_tokens"], read["cached_tokens"]) for read in (openinference, genai)] == [
        ("envoy", "gateway", 9, 4)
    ] * 2
    assert said("CreateEmbeddings", scope, openinference__span__kind="EMBEDDING")["role"] == "stage"


@pytest.mark.parametrize(
    ("prompt", "output"),
    [("gen_ai__usage__input_tokens", "gen_ai__usage__output_tokens"), ("gen_ai__usage__prompt_tokens", "gen_ai__usage__completion_tokens")],
)
def test_old_and_new_names_of_the_conventions_say_the_same(prompt: str, output: str) -> None:
    read = said(
        "chat m", "any", gen_ai__operation__name="chat", gen_ai__response__finish_reasons=["stop", "length"], **{prompt: 9, output: 3}
    )
    assert (read["dialect"], read["prompt_tokens"], read["output_tokens"], read["finish_reason"]) == ("genai", 9, 3, "stop,length")


@pytest.mark.parametrize("key", ["gen_ai__usage__cache_creation__input_tokens", "gen_ai__usage__cache_write__input_tokens"])
def test_tokens_written_to_a_cache_are_not_tokens_read_from_it(key: str) -> None:
    assert "cached_tokens" not in said("chat m", "any", gen_ai__operation__name="chat", **{key: 512})


@pytest.mark.parametrize("operation", ["embeddings", "execute_tool", "invoke_agent"])
def test_a_span_of_another_operation_is_no_request(operation: str) -> None:
    assert said("x", "any", gen_ai__operation__name=operation)["role"] is None


def test_another_instrumentation_of_openllmetry_is_told_by_its_own_attribute() -> None:
    read = said("anthropic.chat", "opentelemetry.instrumentation.anthropic", llm__request__type="chat", gen_ai__usage__prompt_tokens=9)
    assert (read["dialect"], read["role"], read["prompt_tokens"]) == ("openllmetry", "client", 9)


def test_the_temperature_of_openinference_stands_in_a_json_text() -> None:
    read = said(
        "x",
        "openinference.instrumentation.openai",
        openinference__span__kind="LLM",
        llm__invocation_parameters='{"top_p": 1, "temperature": 0.3}',
    )
    assert read["temperature"] == 0.3


@pytest.mark.parametrize("where", ["span", "resource"])
def test_a_dialect_that_the_deployment_states_is_spoken_whatever_the_scope_says(where: str) -> None:
    stated = {"leverwatch__dialect": "trtllm"}
    read = (
        said("llm_request", "my.fork", gen_ai__latency__e2e=2.0, **stated)
        if where == "span"
        else said("llm_request", "vllm.tracing.otel", resource=stated, gen_ai__latency__e2e=2.0)
    )
    assert (read["dialect"], read["role"], read["e2e_s"]) == ("trtllm", "engine", 2.0)
    assert said("llm_request", "my.fork", leverwatch__dialect="vllm")["role"] == "engine"
    assert said("llm_request", "vllm.tracing.otel", leverwatch__dialect="nobody")["dialect"] == "vllm"


def test_what_lmdeploy_cannot_say_is_said_with_the_metric_that_says_it() -> None:
    (lmdeploy,) = (dialect for dialect in dialects.shipped() if dialect.dialect == "lmdeploy")
    assert not lmdeploy.signals
    assert "lmdeploy:cached_tokens_total" in lmdeploy.cannot["cached_tokens"]
