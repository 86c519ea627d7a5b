"""What real engines and clients sent, read to what their recordings say a right reading finds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import attribute
from conftest import RECORDINGS
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from leverwatch.config import Config, StoreConfig
from leverwatch.engine_room import EngineRoom

NAMES = sorted(path.parent.name for path in RECORDINGS.glob("*/meta.json"))
TOTALS = ("requests", "prompt_tokens", "output_tokens", "cached_tokens")
PROMPT_TEXTS = ("You are a helpful assistant", "hello hello", "w0 w1 w2")
Loaded = Callable[[str], EngineRoom]


def expected(name: str) -> dict[str, int]:
    found: dict[str, int] = json.loads((RECORDINGS / name / "meta.json").read_text())["expect"]
    return found


def bodies(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "traces").glob("*.pb"))]


def append(room: EngineRoom, sender: str, body: bytes) -> None:
    room.spool.append("traces", sender, time.time_ns(), body).result()


def load(room: EngineRoom, folder: Path) -> None:
    for body in bodies(folder):
        append(room, folder.name, body)
    room.drain()


def totals(room: EngineRoom) -> dict[str, int]:
    sums = ", ".join(f"coalesce(sum({column}), 0)::bigint as {column}" for column in TOTALS[1:])
    return room.store.rows(f"select count(*) as requests, {sums} from requests")[0]


def legs(room: EngineRoom, phase: str) -> dict[str, dict[str, Any]]:
    """The engine spans of one leg of the prefill/decode pairs, by trace, with the tokens that each reports."""
    question = (
        "select trace_id, signals.cached_tokens as cached_tokens, signals.output_tokens as output_tokens "
        "from spans where role = 'engine' and signals.phase = $phase"
    )
    return {row["trace_id"]: row for row in room.store.rows(question, {"phase": phase})}


@pytest.fixture(scope="module")
def loaded(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    """The store of one recording, loaded once for all tests."""
    rooms: dict[str, EngineRoom] = {}

    def room_of(name: str) -> EngineRoom:
        if name not in rooms:
            rooms[name] = EngineRoom(tmp_path_factory.mktemp(name), Config())
            load(rooms[name], recordings / name)
        return rooms[name]

    yield room_of
    for room in rooms.values():
        room.close()


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_gives_the_totals_it_states(loaded: Loaded, name: str) -> None:
    found = totals(loaded(name))
    assert found | expected(name) == found


@pytest.mark.parametrize("name", NAMES)
def test_loading_a_recording_twice_stores_nothing_new(recordings: Path, tmp_path: Path, name: str) -> None:
    room = EngineRoom(tmp_path, Config())
    counts = "select (select count(*) from spans) as spans, (select count(*) from requests) as requests"
    load(room, recordings / name)
    before = room.store.rows(counts), totals(room)
    load(room, recordings / name)
    assert (room.store.rows(counts), totals(room)) == before
    spans = before[0][0]["spans"]
    sums = "select sum(stored)::bigint as stored, sum(duplicate)::bigint as duplicate, sum(len(map_keys(reasons)))::bigint as reasons"
    assert room.store.rows(f"{sums} from ingest_ledger") == [{"stored": spans, "duplicate": spans, "reasons": 0}]
    room.close()


@pytest.mark.parametrize("name", ["client-vllm", "dynamo-disagg", "sglang-isolated", "vllm-spec"])
def test_bodies_that_come_in_reverse_one_at_a_time_give_the_same_requests(
    loaded: Loaded, recordings: Path, tmp_path: Path, name: str
) -> None:
    room = EngineRoom(tmp_path, Config())
    for body in reversed(bodies(recordings / name)):
        append(room, name, body)
        room.drain()
    question = "select * exclude (provenance, flags) from requests order by request_id, trace_id"
    assert room.store.rows(question) == loaded(name).store.rows(question)
    room.close()


@pytest.mark.parametrize("name", NAMES)
def test_no_recorded_request_is_half_a_pair_or_of_a_wrong_clock(loaded: Loaded, name: str) -> None:
    assert loaded(name).store.rows("select request_id, flags from requests where list_has_any(flags, ['partial', 'clock_skew'])") == []


def test_every_recorded_request_of_vllm_has_a_temperature_and_the_greedy_ones_have_0(loaded: Loaded) -> None:
    question = (
        "select temperature, provenance['temperature'] as source, count(*) as requests from requests group by all order by temperature"
    )
    assert loaded("vllm").store.rows(question) == [
        {"temperature": 0.0, "source": "derived", "requests": 10},
        {"temperature": 0.7, "source": "span", "requests": 14},
    ]


def on_a_decode_worker(body: bytes) -> bytes:
    """An export as if a decode worker had sent it, without the legs that only read."""
    export = ExportTraceServiceRequest.FromString(body)
    for sent in export.resource_spans:
        sent.resource.attributes.append(attribute("leverwatch.pool", "decode"))
        for scope in sent.scope_spans:
            kept = [span for span in scope.spans if not span.name.startswith("prefill Req")]
            del scope.spans[:]
            scope.spans.extend(kept)
    return export.SerializeToString()


@pytest.mark.parametrize(("name", "partial"), [("sglang-isolated", 4), ("vllm", 15)])
def test_what_a_decode_worker_reads_itself_is_whole_where_it_shows(recordings: Path, tmp_path: Path, name: str, partial: int) -> None:
    """Of SGLang it always shows, and the four pairs lack a leg. vLLM's tiny model read 15 of 24 prompts in about a step."""
    room = EngineRoom(tmp_path, Config())
    for one in bodies(recordings / name):
        append(room, name, on_a_decode_worker(one))
    room.drain()
    found = room.store.rows(
        "select list_contains(flags, 'partial') as is_partial, max(coalesce(prefill_s, 0) / tpot_s) as steps, count(*) as requests "
        "from requests group by all order by is_partial"
    )
    room.close()
    assert [(row["is_partial"], row["requests"]) for row in found] == [(False, 24 - partial), (True, partial)]
    assert found[1]["steps"] < 2


def test_all_recordings_in_one_store_give_the_sum_of_the_parts(loaded: Loaded, recordings: Path, tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config())
    for name in NAMES:
        for body in bodies(recordings / name):
            append(room, name, body)
    room.drain()
    parts = [totals(loaded(name)) for name in NAMES]
    assert totals(room) == {column: sum(part[column] for part in parts) for column in TOTALS}
    room.close()


@pytest.mark.parametrize("name", ["vllm", "vllm-spec", "vllm-failed-start", "client-vllm"])
def test_the_start_of_a_vllm_server_is_housekeeping(loaded: Loaded, name: str) -> None:
    roles = loaded(name).store.rows(
        "select role, name = 'llm_request' as is_request, count(*) as spans from spans where dialect = 'vllm' group by all order by role"
    )
    requests = expected(name)["requests"]
    engine = [{"role": "engine", "is_request": True, "spans": requests}] if requests else []
    assert roles == [*engine, {"role": "housekeeping", "is_request": False, "spans": 12}]


def test_the_flood_of_a_foreign_tracer_is_kept_as_spans_and_gives_no_request(loaded: Loaded) -> None:
    room = loaded("transformers-cb")
    assert totals(room)["requests"] == 0
    assert room.store.rows("select count(*) as spans, count(role) as roles, count(dialect) as dialects from spans") == [
        {"spans": 3372, "roles": 0, "dialects": 0}
    ]


@pytest.mark.parametrize("name", ["client-openinference", "client-vllm"])
def test_nothing_of_a_prompt_or_an_answer_is_kept(loaded: Loaded, recordings: Path, name: str) -> None:
    raw = b"".join(bodies(recordings / name)).decode(errors="replace")
    assert any(text in raw for text in PROMPT_TEXTS)
    text = "attributes::varchar || events::varchar || links::varchar || resource::varchar"
    kept = loaded(name).store.rows(f"select {text} as text from spans")
    assert kept
    assert not [row["text"] for row in kept if any(text in row["text"] for text in PROMPT_TEXTS)]


def test_content_is_kept_where_it_was_asked_for(recordings: Path, tmp_path: Path) -> None:
    room = EngineRoom(tmp_path, Config(store=StoreConfig(keep_content=True)))
    load(room, recordings / "client-vllm")
    kept = room.store.rows("select count(*) as n from spans where attributes['gen_ai.input.messages'] like '%You are a helpful assistant%'")
    assert kept == [{"n": 6}]
    room.close()


def test_a_request_seen_by_client_and_engine_counts_once_with_the_engine_as_authority(loaded: Loaded) -> None:
    found = loaded("client-vllm").store.rows(
        "select engine, gateway, count(*) as requests, sum(prompt_tokens)::bigint as prompt_tokens "
        "from requests group by all order by gateway"
    )
    assert [(row["engine"], row["gateway"], row["requests"]) for row in found] == [("vllm", "openllmetry", 6), ("vllm", None, 8)]
    assert sum(row["prompt_tokens"] for row in found) == expected("client-vllm")["prompt_tokens"]


@pytest.mark.parametrize("name", ["client-official", "client-openinference"])
def test_a_request_that_failed_counts_as_a_request(loaded: Loaded, name: str) -> None:
    outcomes = loaded(name).store.rows("select outcome, count(*) as requests from requests group by all order by all")
    assert outcomes == [{"outcome": "error", "requests": 1}, {"outcome": "ok", "requests": 11}]


def test_a_disaggregated_request_names_the_worker_of_each_leg(loaded: Loaded) -> None:
    rows = loaded("dynamo-disagg").store.rows("select distinct replica, prefill_replica, decode_replica from requests")
    assert len(rows) == 1
    assert rows[0]["replica"] == rows[0]["decode_replica"]
    assert None not in rows[0].values()
    assert rows[0]["prefill_replica"] != rows[0]["decode_replica"]


def test_an_aggregated_fleet_names_each_of_its_workers(loaded: Loaded) -> None:
    rows = loaded("dynamo-agg").store.rows("select distinct replica, decode_replica from requests")
    assert len(rows) == 2
    assert all(row["replica"] == row["decode_replica"] for row in rows)


def test_a_pair_takes_cached_tokens_from_its_prefill_leg_and_output_tokens_from_its_decode_leg(loaded: Loaded) -> None:
    """In one of the four made-up pairs the prefill leg skips more than the decode leg's whole prompt: that is set aside and said."""
    room = loaded("sglang-isolated")
    prefill, decode = legs(room, "prefill"), legs(room, "decode")
    assert len(prefill) == len(decode) == 4
    assert any(prefill[trace]["cached_tokens"] != decode[trace]["cached_tokens"] for trace in prefill)
    pairs = {row["trace_id"]: row for row in room.store.rows("select * from requests") if row["trace_id"] in prefill}
    assert {trace: row["output_tokens"] for trace, row in pairs.items()} == {trace: leg["output_tokens"] for trace, leg in decode.items()}
    question = "select trace_id, value::bigint as value from quarantine where \"column\" = 'cached_tokens'"
    set_aside = {row["trace_id"]: row["value"] for row in room.store.rows(question)}
    assert len(set_aside) == 1
    found = {trace: row["cached_tokens"] for trace, row in pairs.items()} | set_aside
    assert found == {trace: leg["cached_tokens"] for trace, leg in prefill.items()}


def test_vllm_tells_every_phase_of_every_request(loaded: Loaded) -> None:
    """Queue, prefill and decode fit into the whole; 1 ms for clocks that are read apart."""
    broken = loaded("vllm").store.rows(
        "select * from requests where not coalesce(queue_s >= 0 and prefill_s > 0 and ttft_s <= e2e_s and decode_s >= 0 and tpot_s > 0 "
        "and queue_s + prefill_s + decode_s <= e2e_s + 0.001, false)"
    )
    assert broken == []
