"""Settling: each request once, when its time has passed; cells hold what settled requests make, also after late legs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from collectors_bodies import START, attribute, body, span
from collectors_metrics import counter, gauge, metrics, point

from leverwatch.config import Config
from leverwatch.engine_room import EngineRoom
from pipeline import jobs, measure, replica_load, settle
from pipeline.settle import NEVER
from queries import fresh_parts, settling

MINUTE_NS = 60_000_000_000
ARRIVAL = START + 600 * MINUTE_NS
TOKENS = [attribute("gen_ai.usage.prompt_tokens", 100), attribute("gen_ai.usage.completion_tokens", 11)]
SUMS = "select {} from cells group by all having sum(n) <> 0 or sum(num) <> 0 order by all"


@pytest.fixture
def room(tmp_path: Path, _batches: None) -> Iterator[EngineRoom]:
    opened = EngineRoom(tmp_path, Config())
    yield opened
    opened.close()


def put(room: EngineRoom, *bodies: bytes) -> None:
    for one in bodies:
        room.spool.append("traces", "s", ARRIVAL, one).result(10)
    room.drain()


def request(number: int, minutes: float = 0.0, e2e_s: float = 1.0, **more: Any) -> Any:
    """The engine's span of a request of model `m`, so many minutes after START."""
    began = START + int(minutes * MINUTE_NS)
    marks = [attribute("leverwatch.arm.speculation", more.pop("arm", "treated")), attribute("leverwatch.model", "m")]
    times = {"start_time_unix_nano": began, "end_time_unix_nano": began + int(e2e_s * 1e9)}
    told = [*marks, *TOKENS, attribute("leverwatch.replica", "r"), attribute("leverwatch.gpus", 2), attribute("gen_ai.latency.e2e", e2e_s)]
    return span(number, **({**times, "attributes": told} | more))


def tap(number: int, cached_tokens: int) -> bytes:
    """A late leg of a request: the tap's span, which knows the cached tokens."""
    told = [attribute("leverwatch.body.cached_tokens", cached_tokens)]
    ids = {"trace_id": number.to_bytes(16, "big"), "parent_span_id": number.to_bytes(8, "big")}
    return body(span(9000 + number, name="response_body", attributes=told, **ids), scope="leverwatch.response_tap")


def settled(room: EngineRoom) -> list[int]:
    return [int(row["trace_id"], 16) for row in room.store.rows("select trace_id from requests where is_settled order by trace_id")]


def cells(room: EngineRoom) -> list[dict[str, Any]]:
    """The sums in the cells by lever, arm, block and metric."""
    keys = "lever, arm, replica, block_started_at, metric"
    return room.store.rows(SUMS.format(f"{keys}, sum(n)::bigint as n, round(sum(num), 9) as num, round(sum(den), 9) as den"))


def measured_anew(room: EngineRoom) -> list[dict[str, Any]]:
    """The same, worked out from the settled requests."""
    made = measure.cells(room.store.frame("select * from requests where is_settled")).long()
    made = made.group_by("lever", "arm", "replica", "block_started_at", "metric").agg(
        pl.col("n").sum(), pl.col("num").sum().round(9), pl.col("den").sum().round(9)
    )
    kept = made.filter((pl.col("n") != 0) | (pl.col("num") != 0))
    return kept.sort("lever", "arm", "replica", "block_started_at", "metric").to_dicts()


def test_a_request_is_settled_once_two_minutes_of_event_time_have_passed_since_it_began(room: EngineRoom) -> None:
    put(room, body(request(1)))
    put(room, body(request(2, minutes=1.5)))
    assert settled(room) == []
    put(room, body(request(3, minutes=2.1)))
    assert settled(room) == [1]
    put(room, body(request(4, minutes=9)))
    assert settled(room) == [1, 2, 3]
    assert room.store.rows("select count(*) as n, count(distinct trace_id) as ids from requests") == [{"n": 4, "ids": 4}]


def test_once_nothing_arrives_any_more_all_is_settled(room: EngineRoom) -> None:
    put(room, body(request(1), request(2, minutes=1.5)))
    room.finish()
    assert settled(room) == [1, 2]
    assert not settling.is_waiting(room.store, NEVER)


def test_a_server_settles_all_once_its_watermark_stood_still_and_what_comes_after_is_right(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1_000.0
    monkeypatch.setattr("leverwatch.rounds.time", SimpleNamespace(monotonic=lambda: now_s))
    put(room, body(request(1), request(2, minutes=1.5)))
    now_s += settle.STILL.total_seconds()
    assert (room.work_once(), settled(room)) == (0, [])
    now_s += 1
    assert room.work_once() > 0
    assert settled(room) == [1, 2]
    assert cells(room) == measured_anew(room)
    before = room.store.rows("select count(*) as n from closed_blocks")
    room.drain()
    assert room.work_once() == 0
    put(room, tap(1, 64), body(request(3, minutes=1.6)))
    now_s += settle.STILL.total_seconds() + 1
    room.drain()
    assert settled(room) == [1, 2, 3]
    assert room.store.rows("select cached_tokens from requests where cached_tokens is not null") == [{"cached_tokens": 64}]
    assert cells(room) == measured_anew(room)
    assert room.store.rows("select count(*) as n from closed_blocks") == before == [{"n": 0}]


def scraped(minutes: float, running: int, drafted: int, accepted: int, output: int) -> bytes:
    """What vLLM's metrics of replica `r` said, so many minutes after START, as an export."""
    at = START + int(minutes * MINUTE_NS)
    counts = {"spec_decode_num_draft_tokens": drafted, "spec_decode_num_accepted_tokens": accepted, "generation_tokens": output}
    told = [
        gauge("vllm:num_requests_running", point(running, at)),
        *(counter(f"vllm:{name}_total", point(n, at)) for name, n in counts.items()),
    ]
    return metrics(*told, **{"service.instance.id": "r"}).SerializeToString()


def test_what_a_request_does_not_carry_is_read_from_the_series_of_its_replica(room: EngineRoom) -> None:
    for minutes, sums in ((-1, (0, 0, 0)), (-0.1, (100, 40, 200)), (1, (700, 340, 1_200)), (2, (1_300, 640, 2_200))):
        room.spool.append("metrics", "s", ARRIVAL, scraped(minutes, 5, *sums)).result(10)
    put(
        room,
        *(body(request(number, minutes=number / 30, e2e_s=2.0, arm="treated")) for number in range(1, 25)),
        body(request(99, minutes=10)),
    )
    (row,) = room.store.rows(
        "select avg(batch_at_admission) as batch, sum(accepted_tokens) / sum(draft_tokens) as acceptance, count(draft_tokens) as known, "
        "any_value(provenance['draft_tokens']) as counted, any_value(provenance['batch_at_admission']) as read "
        "from requests where is_settled"
    )
    assert row == {"batch": 5.0, "acceptance": pytest.approx(0.5, abs=0.03), "known": 24, "counted": "counter", "read": "sample"}


def test_samples_that_are_loaded_behind_all_spans_are_read_as_well(room: EngineRoom) -> None:
    """Of `leverwatch load traces.pb metrics.pb`, more than one batch, no count reached a request."""
    spans = [body(request(number, minutes=number / 30, e2e_s=2.0)) for number in range(1, 25)]
    samples = [scraped(minutes, 5, *sums) for minutes, sums in ((-0.1, (0, 0, 0)), (1, (600, 300, 1_000)), (2, (1_200, 600, 2_000)))]
    for signal, bodies in (("traces", [*spans, body(request(99, minutes=10))]), ("metrics", samples)):
        for one in bodies:
            room.spool.append(signal, "s", ARRIVAL, one).result(10)
        room.take_in()
    assert settled(room) == []
    room.finish()
    assert room.store.rows("select count(draft_tokens) as known from requests") == [{"known": 24}]


def test_where_only_a_part_sends_spans_nothing_is_said_of_what_ran_beside(room: EngineRoom) -> None:
    with room.store.write() as transaction:
        transaction.execute(
            "insert into sampling values ('r', timestamptz '2020-01-01 00:00:00+00', 300, 100, 1000, 0.1, 10, 'sampled', 'counter')"
        )
    put(room, body(request(1)), body(request(2, minutes=10)))
    assert room.store.rows("select concurrency, gpu_s from requests where is_settled") == [{"concurrency": None, "gpu_s": None}]


def test_requests_in_flight_together_are_counted_and_share_the_time_of_their_replica(room: EngineRoom) -> None:
    put(room, body(request(1, e2e_s=4.0), request(2, minutes=1 / 60, e2e_s=1.0)), body(request(3, minutes=10)))
    rows = room.store.rows("select concurrency, gpu_s, provenance from requests where is_settled order by trace_id")
    assert [row["concurrency"] for row in rows] == [1, 2]
    assert [row["gpu_s"] for row in rows] == pytest.approx([2 * 3.5, 2 * 0.5])
    assert all({"concurrency": "derived", "gpu_s": "derived"}.items() <= dict(row["provenance"]).items() for row in rows)


def test_requests_that_were_settled_before_count_as_running_beside_those_that_follow(room: EngineRoom) -> None:
    put(room, body(request(1, e2e_s=200.0)))
    put(room, body(request(2, minutes=2.5)))
    assert settled(room) == [1]
    put(room, body(request(3, minutes=3, e2e_s=2.0)), body(request(4, minutes=9)))
    rows = {int(row["trace_id"], 16): row["concurrency"] for row in room.store.rows("select trace_id, concurrency from requests")}
    assert rows[2] == rows[3] == 2


def test_a_late_leg_gives_the_old_sums_back_and_adds_the_new(room: EngineRoom) -> None:
    put(room, *(body(request(number, minutes=number / 10)) for number in range(1, 40)), body(request(99, minutes=30)))
    assert len(settled(room)) == 39
    before = cells(room)
    assert before == measured_anew(room)
    put(room, tap(7, 40), tap(23, 0))
    after = cells(room)
    assert after == measured_anew(room)
    hits = [row for row in after if row["metric"] == "cache_hit_rate" and row["lever"] == ""]
    assert not [row for row in before if row["metric"] == "cache_hit_rate"]
    assert (sum(row["n"] for row in hits), sum(row["num"] for row in hits)) == (2, 1)


def test_a_part_that_reaches_into_the_next_block_is_divided_once_so_that_the_block_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)
    monkeypatch.setattr(fresh_parts, "BLOCK_US", fresh_parts.HOUR_US)  # as merged parts are
    room = EngineRoom(tmp_path, Config())
    put(room, body(request(1, minutes=1.0), request(2, minutes=2.0)))  # a block ends 100 s after START
    put(room, body(request(3, minutes=3.8)))
    assert settled(room) == [1]
    put(room, body(request(4, minutes=3.9)))
    assert settled(room) == [1]  # the rest of it waits until all of it is due
    assert room.store.rows(
        "select until - timestamptz 'epoch' = to_seconds($s) as is_first from closed_blocks", {"s": START // 10**9 + 100}
    ) == [{"is_first": True}]
    put(room, body(request(5, minutes=9)))
    assert settled(room) == [1, 2, 3, 4]
    room.close()


def test_fresh_requests_of_two_blocks_are_in_two_parts_so_that_one_does_not_wait_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)
    room = EngineRoom(tmp_path, Config())
    put(room, body(request(1, minutes=1.6), request(2, minutes=1.7)))  # a block ends 100 s after START
    assert room.store.rows("select count(*) as n from parts where relation = 'requests' and not is_settled") == [{"n": 2}]
    room.close()


def test_a_request_that_cannot_be_joined_or_measured_holds_up_no_other(room: EngineRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    poison, whole, joined = f"{2:032x}", measure.cells, replica_load.joined

    def failing(work: Any) -> Any:
        def work_but_for_one(requests: pl.DataFrame, *others: Any) -> Any:
            if poison in requests["trace_id"]:
                msg = "poison"
                raise ValueError(msg)
            return work(requests, *others)

        return work_but_for_one

    monkeypatch.setattr(replica_load, "joined", failing(joined))
    room.rounds.measured = failing(whole)
    put(room, body(*(request(number, minutes=number / 10) for number in range(1, 6)), request(9, minutes=10)))
    assert settled(room) == [1, 2, 3, 4, 5]
    assert room.store.rows("select trace_id from requests where is_settled and concurrency is null") == [{"trace_id": poison}]
    assert room.store.rows('select trace_id, "column" from quarantine') == [{"trace_id": poison, "column": "*"}]
    assert room.store.rows("select sum(n)::bigint as n from cells where lever = '' and metric = 'requests'") == [{"n": 4}]


def test_a_closed_block_that_late_requests_change_says_so_and_is_not_compared_again(room: EngineRoom) -> None:
    put(room, *(body(request(number, minutes=number / 30)) for number in range(1, 30)), body(request(99, minutes=30)))
    effects = room.store.rows("select * from effects order by all")
    assert effects
    put(room, body(request(50, minutes=0.5)))
    assert room.store.rows("select added, removed from corrections") == [{"added": 1, "removed": 0}]
    assert room.store.rows("select * from effects order by all") == effects
    assert cells(room) == measured_anew(room)


def test_settling_looks_at_no_part_of_another_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)
    room = EngineRoom(tmp_path, Config())
    put(room, *(body(request(number, minutes=60 * number)) for number in range(1, 6)))
    asked: list[str] = []
    frame = type(room.store.snapshot().__enter__()).frame

    def noted(self: Any, sql: str, params: Any = None) -> Any:
        asked.append(sql)
        return frame(self, sql, params)

    monkeypatch.setattr("queries.store.Transaction.frame", noted)
    put(room, body(request(7, minutes=600)), body(request(8, minutes=605)))
    old = [
        row["file"]
        for row in room.store.rows(
            "select file from parts where relation = 'requests' and last_start < $t", {"t": jobs.watermark(room.store) - timedelta(hours=2)}
        )
    ]
    assert old
    # what comparing asks of the blocks that close now, which are old here
    compared = ("context_tokens", "error_class", "engine_version is not null")
    settling = [sql for sql in asked if not any(name in sql for name in compared)]
    assert settling
    assert not [sql for sql in settling if any(name in sql for name in old)]
    room.close()
