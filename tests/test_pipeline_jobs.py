"""The jobs over a store: each in one transaction, incremental, and none held up by data it cannot read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from collectors_bodies import START, attribute, body, span

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import fresh, jobs
from queries import sealing

MINUTE_NS = 60_000_000_000
ARRIVAL = START + 600 * MINUTE_NS
DECODE = attribute("gen_ai.latency.time_in_model_decode", 0.2)
TOKENS = attribute("gen_ai.usage.completion_tokens", 11)


@pytest.fixture
def room(tmp_path: Path, _batches: None) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def put(room: EngineRoom, *bodies: bytes) -> None:
    for one in bodies:
        room.spool.append("traces", "s", ARRIVAL, one).result(10)


def request(number: int, minutes: float = 0.0, arm: str = "treated", **fields: Any) -> bytes:
    """One vLLM request of the model `m` in its own trace, so many minutes after START."""
    began = START + int(minutes * MINUTE_NS) + number
    marks = [attribute("leverwatch.arm.speculation", arm), attribute("leverwatch.model", "m"), DECODE, TOKENS]
    times = {"start_time_unix_nano": began, "end_time_unix_nano": began + 250_000_000}
    return body(span(number, **({**times, "attributes": marks} | fields)))


def tap_of(number: int, cached_tokens: int) -> Any:
    """The tap's span of a request, below the engine's."""
    told = [attribute("leverwatch.body.cached_tokens", cached_tokens)]
    ids = {"trace_id": number.to_bytes(16, "big"), "parent_span_id": number.to_bytes(8, "big")}
    return span(9, name="response_body", attributes=told, **ids)


def requests(room: EngineRoom) -> list[int]:
    return [int(row["trace_id"], 16) for row in room.store.rows("select trace_id from requests order by trace_id")]


def test_a_trace_that_cannot_be_assembled_is_set_aside_and_the_others_are_there(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = f"{3:032x}"
    real = jobs.assemble

    def assemble(spans: pl.DataFrame, edges: Any) -> Any:
        if poison in spans["trace_id"]:
            msg = "poison"
            raise ValueError(msg)
        return real(spans, edges)

    for module in (jobs, fresh):
        monkeypatch.setattr(module, "assemble", assemble)
    put(room, *(request(number) for number in range(1, 40)))
    assert room.drain()
    assert requests(room) == [number for number in range(1, 40) if number != 3]
    aside = room.store.rows('select trace_id, "column", reason from quarantine')
    assert aside == [{"trace_id": poison, "column": "*", "reason": "the trace cannot be assembled: ValueError: poison"}]
    assert room.store.rows("select count(*) as n from dirty_traces") == [{"n": 0}]


def test_a_late_span_reopens_only_its_own_trace(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    put(room, request(1), request(2))
    room.drain()
    seen: list[list[str]] = []
    real = jobs.assemble

    def assemble(spans: pl.DataFrame, edges: Any) -> Any:
        seen.append(sorted(spans["span_id"]))
        return real(spans, edges)

    for module in (jobs, fresh):
        monkeypatch.setattr(module, "assemble", assemble)
    tap = tap_of(1, cached_tokens=64)
    put(room, body(tap, scope="leverwatch.response_tap"))
    room.drain()
    assert seen == [[f"{1:016x}", f"{9:016x}"]]


def test_a_request_is_in_its_cell_once_however_often_it_comes(room: EngineRoom) -> None:
    asked = (
        "select metric, sum(n)::bigint as n from cells where lever = 'speculation' and metric in ('requests', 'tpot_s') "
        "group by metric order by metric"
    )
    put(room, request(1), request(2))
    room.drain()
    assert room.store.rows(asked) == []  # they are not settled yet
    put(room, request(90, minutes=10))
    room.drain()
    assert room.store.rows(asked) == [{"metric": "requests", "n": 2}, {"metric": "tpot_s", "n": 2}]
    put(room, request(3), request(1))
    room.drain()
    assert room.store.rows(asked) == [{"metric": "requests", "n": 3}, {"metric": "tpot_s", "n": 3}]


def test_a_block_is_compared_once_when_the_watermark_has_passed_its_end_by_the_lag(room: EngineRoom) -> None:
    asked = "select count(distinct until) as blocks from effects"
    put(room, request(1, minutes=1.7), request(2, minutes=6))  # START lies 100 s before a block begins
    room.drain()
    assert room.store.rows(asked) == [{"blocks": 0}]
    for later in (8, 9):
        put(room, request(later, minutes=later))
        room.drain()
    assert room.store.rows(asked) == [{"blocks": 1}]
    put(room, request(20, minutes=30))
    room.drain()
    assert room.store.rows(asked) == [{"blocks": 2}]


def test_a_late_leg_of_a_sealed_request_is_joined_and_its_sums_are_corrected(room: EngineRoom) -> None:
    put(room, request(1), request(50, minutes=240))
    room.drain()
    assert sealing.part_files_of(room.store, "requests")
    tap = tap_of(1, cached_tokens=0)
    put(room, body(tap, scope="leverwatch.response_tap"))
    room.drain()
    assert requests(room) == [1, 50]
    assert room.store.rows("select cached_tokens from requests where trace_id = $t", {"t": f"{1:032x}"}) == [{"cached_tokens": 0}]
    asked = (
        "select metric, sum(n)::bigint as n from cells where lever = '' and metric in ('requests', 'cache_hit_rate') "
        "group by all order by all"
    )
    assert room.store.rows(asked) == [{"metric": "cache_hit_rate", "n": 1}, {"metric": "requests", "n": 1}]  # the other is not settled yet
    assert room.store.rows("select sum(added)::bigint as added, sum(removed)::bigint as removed from corrections") == [
        {"added": 1, "removed": 1}
    ]


def test_metrics_stand_in_the_store_for_people_who_ask(room: EngineRoom) -> None:
    assert room.store.rows("select unit, better from metrics where name = 'tpot_s'") == [{"unit": "s/token", "better": "lower"}]


def test_a_trace_that_lasts_for_hours_keeps_its_older_requests(room: EngineRoom) -> None:
    one_trace = {"trace_id": (7).to_bytes(16, "big")}
    put(room, request(1, **one_trace), request(2, minutes=45, **one_trace), request(3, minutes=300, **one_trace))
    room.drain()
    assert room.store.rows("select count(*) as n from requests") == [{"n": 3}]
    put(room, request(4, minutes=301, **one_trace), request(5, minutes=302, **one_trace))
    room.drain()
    assert room.store.rows("select count(*) as n, count(distinct request_id) as ids from requests") == [{"n": 5, "ids": 5}]
    asked = "select sum(n)::bigint as n from cells where metric = 'requests' and lever = ''"
    assert room.store.rows(asked) == [{"n": 3}]
    room.finish()
    assert room.store.rows(asked) == [{"n": 5}]


def test_a_leg_that_gives_a_sealed_request_its_name_does_not_double_it(room: EngineRoom) -> None:
    tap = span(9, trace_id=(1).to_bytes(16, "big"), name="response_body", attributes=[attribute("leverwatch.body.cached_tokens", 5)])
    put(room, body(tap, scope="leverwatch.response_tap"), request(50, minutes=240))
    room.drain()
    assert room.store.rows("select flags from requests where trace_id = $t", {"t": f"{1:032x}"}) == [
        {"flags": ["body_only", "replica_from_sender"]}
    ]
    named = [attribute("gen_ai.request.id", "r-1"), DECODE, TOKENS]
    engine = span(1, parent_span_id=(9).to_bytes(8, "big"), attributes=named)
    put(room, body(engine))
    room.drain()
    rows = room.store.rows("select request_id, cached_tokens, output_tokens from requests where trace_id = $t", {"t": f"{1:032x}"})
    assert rows == [{"request_id": "r-1", "cached_tokens": 5, "output_tokens": 11}]


def test_a_ring_of_parents_and_a_very_deep_chain_hold_up_nothing(room: EngineRoom) -> None:
    one_trace = {"trace_id": (8).to_bytes(16, "big")}
    ring = [span(n, parent_span_id=(n % 3 + 1).to_bytes(8, "big"), **one_trace) for n in (1, 2, 3)]
    deep = [span(n, trace_id=(9).to_bytes(16, "big"), parent_span_id=(n + 1).to_bytes(8, "big")) for n in range(10, 400)]
    put(room, body(*ring), body(*deep), request(7))
    assert room.drain()
    assert room.store.rows("select count(*) as n from requests where trace_id = $t", {"t": f"{7:032x}"}) == [{"n": 1}]
    assert room.store.rows("select count(*) as n from dirty_traces") == [{"n": 0}]


def test_a_sender_far_behind_the_others_holds_up_no_block(room: EngineRoom) -> None:
    put(room, request(1, minutes=1.7), request(2, minutes=30))
    slow = request(3, minutes=-1800)
    room.spool.append("traces", "slow clock", ARRIVAL, slow).result(10)
    room.drain()
    assert room.store.rows("select count(distinct until) as blocks from effects where until > timestamptz '2023-11-14'")[0]["blocks"] >= 1


def many(model: str, minutes: range, first: int) -> list[bytes]:
    """Ten requests of each arm in every fifth minute: treated takes twice control's time."""
    marks = {"treated": 0.2, "control": 0.1}
    bodies = []
    for minute in minutes:
        for number in range(20):
            arm = "treated" if number % 2 else "control"
            told = [attribute("leverwatch.arm.speculation", arm), attribute("leverwatch.model", model), TOKENS]
            told.append(attribute("gen_ai.latency.time_in_model_decode", marks[arm]))
            bodies.append(request(first + minute * 20 + number, minutes=minute * 5 + 2, attributes=told))
    return bodies


def assert_judged(room: EngineRoom, model: str) -> None:
    """A loss that is too short for its evidence is seen up to the newest block, and waits."""
    newest = "(select max(until) from effects where segment like '%' || $model || '%')"
    asked = (
        f"select verdict, reason_code, block_ended_at = {newest} as is_newest from current_verdicts where segment like '%' || $model || '%'"
    )
    found = room.store.rows(f"{asked} and policy = 'speculation-net-itl'", {"model": model})
    assert found == [{"verdict": "insufficient", "reason_code": "unscaled", "is_newest": True}]


def test_history_that_comes_late_is_judged_block_by_block_and_disturbs_no_stream(room: EngineRoom) -> None:
    put(room, *many("new", range(400, 412), 100_000))
    room.drain()
    before = room.store.rows("select segment, verdict, block_ended_at from current_verdicts where segment like '%new%'")
    put(room, *many("old", range(40), 1_000))
    room.drain()
    asked = "select count(distinct until) as blocks from effects where segment like '%old%' and metric = 'net_itl_s' and gain < -0.5"
    assert room.store.rows(asked)[0]["blocks"] >= 35
    assert_judged(room, "old")
    assert room.store.rows("select segment, verdict, block_ended_at from current_verdicts where segment like '%new%'") == before
    assert jobs.unjudged_since(room.store) is None
    put(room, *many("third", range(40), 500_000))
    room.drain()
    assert_judged(room, "third")
    assert room.store.rows("select count(*) as n from (select until, segment, metric from effects group by all having count(*) > 1)") == [
        {"n": 0}
    ]
