"""Whatever the order in which spans of generated traces come, and however they are split into batches, the same requests are stored."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from collectors_bodies import START, attribute, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from polars.testing import assert_frame_equal

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline.assemble import assemble
from pipeline.recent import Recent
from pipeline.segments import Edges
from queries.store import Store

MS = 1_000_000
COMPARED = (
    "trace_id", "request_id", "engine", "gateway", "replica", "prefill_replica", "decode_replica", "started_at", "ended_at", "outcome",
    "prompt_tokens", "cached_tokens", "output_tokens", "queue_s", "prefill_s", "decode_s", "ttft_s", "e2e_s", "tpot_s", "samples_n",
)  # fmt: skip
SPANS = (
    "select trace_id, span_id, parent_span_id, role, dialect, status, started_at, ended_at, duration_s, replica, sender, levers, arms, "
    "unnest(signals) from spans where trace_id in (select unnest($traces))"
)
numbers = itertools.count(1)  # of traces and spans: each example has its own in the one store


@dataclass(frozen=True)
class One:
    """A span on the wire."""

    scope: str
    name: str
    trace: int
    at_ms: int
    for_ms: int
    said: dict[str, str | int | float]
    parent: int = 0
    number: int = 0
    is_error: bool = False
    replica: str = "r1"

    def span(self) -> Span:
        began = START + self.at_ms * MS
        return Span(
            trace_id=self.trace.to_bytes(16, "big"),
            span_id=self.number.to_bytes(8, "big"),
            parent_span_id=self.parent.to_bytes(8, "big") if self.parent else b"",
            name=self.name,
            start_time_unix_nano=began,
            end_time_unix_nano=began + self.for_ms * MS,
            attributes=[attribute(key, value) for key, value in self.said.items()],
            status=Status(code=Status.STATUS_CODE_ERROR) if self.is_error else None,
        )


def one(scope: str, name: str, trace: int, at_ms: int, for_ms: int, **rest: Any) -> One:
    fields = {key: rest.pop(key) for key in ("parent", "is_error", "replica") if key in rest}
    said = {key.replace("__", "."): value for key, value in rest.items()}
    return One(scope, name, trace, at_ms, for_ms, said, number=next(numbers), **fields)


def vllm(trace: int, key: str, at_ms: int, tokens: int = 11, **rest: Any) -> One:
    said = {
        "gen_ai.request.id": key,
        "gen_ai.usage.prompt_tokens": 100,
        "gen_ai.latency.e2e": 0.9,
        "gen_ai.latency.time_to_first_token": 0.1,
    }
    said |= {"gen_ai.usage.completion_tokens": tokens} if tokens else {}
    return one(
        "vllm.tracing.otel", "llm_request", trace, at_ms, 900, **rest, **{name.replace(".", "__"): value for name, value in said.items()}
    )


def gateway(trace: int, key: str | None, at_ms: int, **rest: Any) -> One:
    said = {"gen_ai__response__id": key} if key else {}
    return one("litellm", "litellm_request", trace, at_ms, 1000, gen_ai__usage__input_tokens=100, **said, **rest)


def foreign(trace: int, at_ms: int, **rest: Any) -> One:
    return one("somebody.else", "step", trace, at_ms, 1500, **rest)


def body_of(trace: int, key: str, at_ms: int, **rest: Any) -> One:
    said = {"leverwatch__body__request_id": key, "leverwatch__body__cached_tokens": 64}
    return one("leverwatch.response_tap", "response_body", trace, at_ms, 950, **said, **rest)


def engine_alone(trace: Callable[[], int], key: str, at: int, _: st.DrawFn) -> list[One]:
    return [vllm(trace(), key, at)]


def gateway_above_engine(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """The engine below its gateway, maybe with a span between, whose parent may be missing; either may state the id."""
    above = gateway(trace(), draw(st.sampled_from([key, None])), at)
    between = foreign(above.trace, at + 5, parent=above.number)
    found = [above, vllm(above.trace, key, at + 10, parent=draw(st.sampled_from([above.number, between.number, next(numbers)])))]
    return [*found, between] if draw(st.booleans()) else found


def gateway_beside_engine(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """A caller's context was passed on unchanged, or the engine began a trace of its own."""
    caller, apart = foreign(trace(), at), draw(st.booleans())
    beside = gateway(caller.trace, key, at + 5, parent=caller.number)
    return [caller, beside, vllm(trace(), key, at + 10) if apart else vllm(caller.trace, key, at + 10, parent=caller.number)]


def legs(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """A prefill and a decode leg, of one trace or of two, with stages and another rank's copy of them."""
    first = trace()
    usage = {"gen_ai__usage__prompt_tokens": 300, "bootstrap_room": key}
    prefill = one("sglang server", "prefill Req 1", first, at, 300, replica="p0", gen_ai__usage__cached_tokens=150, **usage)
    second = first if draw(st.booleans()) else trace()
    told = {"gen_ai__usage__completion_tokens": 21, "gen_ai__usage__cached_tokens": 299}
    decode = one("sglang server", "decode Req 1", second, at + 200, 900, replica="d0", **told, **usage)
    waited = one("sglang server", "prefill_waiting", first, at, 40, parent=prefill.number)
    rank = one("sglang server", "tp1 (host:h | pid:1)", first, at, 300, parent=prefill.number, tp_rank=1)
    copy = one("sglang server", "prefill_waiting", first, at, 90, parent=rank.number)
    return [prefill, decode, *draw(st.sampled_from([[], [waited], [rank, copy], [waited, rank, copy]]))]


def samples(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """The answers to one prompt, in one trace or in traces of their own."""
    n, first, apart = draw(st.integers(2, 3)), trace(), draw(st.booleans())
    return [vllm(trace() if apart else first, key, at + place, 10 + place, gen_ai__request__n=n) for place in range(n)]


def retry(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """A call that fails in one engine and is answered by another."""
    above = gateway(trace(), draw(st.sampled_from([key, None])), at)
    failed = vllm(above.trace, f"{key}-failed", at + 10, 0, parent=above.number, is_error=True)
    return [above, failed, vllm(above.trace, key, at + 60, 7, parent=above.number, replica="r2")]


def with_body(trace: Callable[[], int], key: str, at: int, draw: st.DrawFn) -> list[One]:
    """An engine's request and what a tap saw of it, in its trace or in one of its own."""
    served = vllm(trace(), key, at)
    return [served, body_of(served.trace if draw(st.booleans()) else trace(), key, at)]


KINDS = (engine_alone, gateway_above_engine, gateway_beside_engine, legs, samples, retry, with_body)


@st.composite
def arrivals(draw: st.DrawFn) -> list[list[One]]:
    """Some requests, at times with an id that another one has too, or in a trace with it; their spans in batches of any order."""
    salt, shared = next(numbers), next(numbers)
    spans: list[One] = []
    for place in range(draw(st.integers(1, 4))):
        key = f"{salt}-{draw(st.sampled_from([place, 0]))}"
        is_shared = draw(st.booleans())
        kind = draw(st.sampled_from(KINDS))
        at_ms = draw(st.sampled_from([0, 300, 2500, 8000]))
        spans += kind((lambda: shared) if is_shared else (lambda: next(numbers)), key, at_ms, draw)
    spans = draw(st.permutations(spans))
    cuts = sorted(draw(st.sets(st.integers(1, len(spans)), max_size=4)))
    return [spans[first:last] for first, last in zip([0, *cuts], [*cuts, len(spans)], strict=True) if first < last]


@pytest.fixture
def room(tmp_path: Path, _batches: None) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def put(room: EngineRoom, batch: list[One]) -> None:
    export = ExportTraceServiceRequest()
    for sent in batch:
        export.MergeFrom(request(sent.span(), scope=sent.scope, service__instance__id=sent.replica))
    room.spool.append("traces", "s", START + 20_000 * MS, export.SerializeToString()).result(10)
    steps = dict(room.steps())
    while steps["load"]() + steps["assemble"]():
        pass


def spans_of(store: Store, traces: list[str]) -> pl.DataFrame:
    return store.frame(SPANS, {"traces": traces})


def compared(requests: pl.DataFrame) -> pl.DataFrame:
    flags = pl.col("flags").list.sort().list.join("+").alias("flags")
    return requests.select(*COMPARED, flags).sort("trace_id", "request_id", "started_at")


def assert_stored_as_assembled_at_once(store: Store, batches: list[list[One]]) -> None:
    """The requests stored of these spans are those of all spans assembled at once, in whatever order."""
    sent = [sent for batch in batches for sent in batch]
    traces = sorted({f"{sent.trace:032x}" for sent in sent})
    spans = spans_of(store, traces)
    assert len(spans) == len(sent)
    whole = compared(assemble(spans, Edges()).requests)
    for seed in range(2):
        assert_frame_equal(compared(assemble(spans.sample(fraction=1, shuffle=True, seed=seed), Edges()).requests), whole)
    stored = store.frame("select * from requests where trace_id in (select unnest($traces))", {"traces": traces})
    assert_frame_equal(compared(stored), whole)


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@given(arrivals(), st.sampled_from([1, 8, 60_000]))
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=QUIET)
def test_any_order_and_any_batches_give_the_same_requests(room: EngineRoom, batches: list[list[One]], remembered: int) -> None:
    """`remembered` spans stay in memory: what came before them is read from the store."""
    room.rounds.recent = Recent(limit_spans=remembered)
    for batch in batches:
        put(room, batch)
    assert_stored_as_assembled_at_once(room.store, batches)


@given(arrivals())
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=QUIET)
def test_a_process_that_starts_anew_before_each_batch_stores_the_same_requests(
    tmp_path: Path, _batches: None, batches: list[list[One]]
) -> None:
    for batch in batches:
        opened = EngineRoom(tmp_path, Config())
        put(opened, batch)
        opened.close()
    opened = EngineRoom(tmp_path, Config())
    assert_stored_as_assembled_at_once(opened.store, batches)
    opened.close()


def test_a_trace_that_becomes_whole_gives_back_what_another_trace_told_it(room: EngineRoom) -> None:
    """Two callers chose one id: the body waits, is taken to be the other's, and is not once its own engine's span has come."""
    other, own = next(numbers), next(numbers)
    told = body_of(own, "chosen", 0)
    batches = [[vllm(other, "chosen", 2500)], [told], [vllm(own, "chosen", 0)]]
    for batch in batches:
        put(room, batch)
    assert_stored_as_assembled_at_once(room.store, batches)
    stored = room.store.frame("select trace_id, cached_tokens from requests order by trace_id")
    assert stored.rows() == [(f"{other:032x}", None), (f"{own:032x}", 64)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_span_that_nobody_knows_links_a_gateway_with_its_engine_whenever_it_comes(room: EngineRoom, order: tuple[int, ...]) -> None:
    above = gateway(next(numbers), None, 0)
    between = foreign(above.trace, 5, parent=above.number)
    spans = [above, between, vllm(above.trace, "linked", 10, parent=between.number)]
    for place in order:
        put(room, [spans[place]])
    together = gateway(next(numbers), None, 0)
    link = foreign(together.trace, 5, parent=together.number)
    put(room, [together, link, vllm(together.trace, "together", 10, parent=link.number)])
    stored = room.store.frame("select request_id, gateway from requests order by request_id")
    assert stored.rows() == [("linked", "litellm"), ("together", "litellm")]


def test_a_pair_and_a_whole_request_that_use_one_id_stay_apart(room: EngineRoom) -> None:
    first, second, usage = next(numbers), next(numbers), {"gen_ai__usage__prompt_tokens": 300, "bootstrap_room": "chosen"}
    pair = [
        one("sglang server", f"{phase} Req 1", first, 0, 300, gen_ai__usage__completion_tokens=1, **usage)
        for phase in ("prefill", "decode")
    ]
    batches = [pair, [vllm(second, "chosen", 10)]]
    for batch in batches:
        put(room, batch)
    assert_stored_as_assembled_at_once(room.store, batches)
    assert room.store.frame("select engine from requests order by engine").rows() == [("sglang",), ("vllm",)]
