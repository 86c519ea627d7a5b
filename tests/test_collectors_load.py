"""Bodies of the spool become rows of the store exactly once, and the ledger says what became of each span."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collectors_bodies import START, attribute, body, span, too_deep
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import decode, load, load_batch
from collectors.door import reference_check
from collectors.ledger import Note
from collectors.load import Loader
from collectors.load_batch import UNSOUND
from collectors.spool import Spool
from pipeline.fresh import expand_dirty_parts
from queries.store import Store, Transaction

ARRIVAL = START + 1_000_000_000
COUNTS = ("received", "stored", "duplicate", "rejected", "dropped", "pending")


class Room:
    """A store with its spool and loader, as one process has them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open()

    def open(self) -> None:
        self.store = Store(self.folder)
        self.loader = Loader(self.store)
        self.spool = Spool(self.folder / "spool", self.loader.position())

    def put(self, *bodies: bytes, sender: str = "sender", arrival: int = ARRIVAL) -> None:
        for one in bodies:
            self.spool.append("traces", sender, arrival, one).result(10)

    def load(self) -> int:
        return self.loader.load_next(self.spool)

    def spans(self) -> list[str]:
        return [row["span_id"] for row in self.store.rows("select span_id from spans order by span_id")]

    def ledger(self) -> dict[str, int]:
        sums = ", ".join(f"coalesce(sum({name}), 0)::bigint as {name}" for name in COUNTS)
        found: dict[str, int] = self.store.rows(f"select {sums} from ingest_ledger")[0]
        assert found["received"] == sum(found[name] for name in COUNTS[1:])
        return found

    def reasons(self) -> dict[str, int]:
        rows = self.store.rows("select unnest(map_entries(reasons)) as entry from ingest_ledger")
        return {row["entry"]["key"]: row["entry"]["value"] for row in rows}

    def close(self) -> None:
        self.loader.close()
        self.spool.close()
        self.store.close()

    def restart(self) -> None:
        self.close()
        self.open()


@pytest.fixture
def room(tmp_path: Path, _batches: None) -> Iterator[Room]:
    opened = Room(tmp_path)
    yield opened
    opened.close()


def ids(*numbers: int) -> list[str]:
    return [number.to_bytes(8, "big").hex() for number in numbers]


def at(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def test_a_span_is_stored_with_what_its_dialect_reads_from_it(room: Room) -> None:
    room.put(body(span(1, kind=Span.SPAN_KIND_SERVER), service__name="vllm", service__instance__id="pod-1"), sender="10.0.0.1")
    assert room.load() == 1
    row = room.store.rows("select * from spans")[0]
    wanted: dict[str, Any] = {
        "name": "llm_request", "kind": "server", "dialect": "vllm", "role": "engine", "replica": "pod-1", "sender": "10.0.0.1",
        "service": "vllm", "status": "unset", "status_message": None, "start_unix_nano": START + 1_000_000, "duration_s": 0.25,
        "started_at": at(START + 1_000_000), "ended_at": at(START + 251_000_000), "received_at": at(ARRIVAL), "levers": None,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert (row["signals"]["prompt_tokens"], row["signals"]["output_tokens"], row["signals"]["ttft_s"]) == (100, 10, None)


def test_a_lever_of_the_span_wins_over_one_of_its_resource(room: Room) -> None:
    spoken = span(1, attributes=[attribute("leverwatch.lever.speculation", "off"), attribute("leverwatch.arm.speculation", "control")])
    room.put(body(spoken, span(2), leverwatch__lever__speculation="on", leverwatch__lever__prefix_caching="on"))
    room.load()
    rows = room.store.rows("select map_entries(levers) as levers, map_entries(arms) as arms from spans order by span_id")
    levers = [{entry["key"]: entry["value"] for entry in row["levers"]} for row in rows]
    assert levers == [{"prefix_caching": "on", "speculation": "off"}, {"prefix_caching": "on", "speculation": "on"}]
    assert [row["arms"] for row in rows] == [[{"key": "speculation", "value": "control"}], None]


def test_what_was_acknowledged_and_not_loaded_is_loaded_by_the_next_process(room: Room) -> None:
    room.put(body(span(1)), body(span(2)))
    room.restart()
    assert room.load() == 2
    assert room.spans() == ids(1, 2)
    assert room.load() == 0


def test_a_transaction_that_failed_leaves_nothing_and_is_done_again(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.put(body(span(1)), body(span(2)))

    def failing(_self: Transaction, table: str, _rows: object) -> int:
        msg = f"cannot insert into {table}"
        raise RuntimeError(msg)

    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "insert", failing)
        with pytest.raises(RuntimeError, match="cannot insert"):
            room.load()
    assert (room.spans(), room.loader.position()) == ([], Loader(room.store).position())
    assert room.load() == 2
    assert room.spans() == ids(1, 2)
    assert room.ledger()["stored"] == 2


def test_a_process_that_dies_right_behind_its_transaction_loads_nothing_twice(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_position: object, _record_bytes: int) -> None:
        raise KeyboardInterrupt

    room.put(body(span(1)), body(span(2)))
    monkeypatch.setattr(room.spool, "loaded", killed)
    with pytest.raises(KeyboardInterrupt):
        room.load()
    room.restart()
    assert (room.load(), room.spans(), room.spool.backlog_bytes) == (0, ids(1, 2), 0)
    room.put(body(span(3)))
    assert (room.load(), room.spans()) == (1, ids(1, 2, 3))
    assert room.ledger() == {"received": 3, "stored": 3, "duplicate": 0, "rejected": 0, "dropped": 0, "pending": 0}


def test_a_span_sent_twice_in_one_batch_is_stored_once(room: Room) -> None:
    room.put(body(span(1), span(2)), body(span(2), span(3)))
    assert room.load() == 2
    assert room.spans() == ids(1, 2, 3)
    assert room.ledger() == {"received": 4, "stored": 3, "duplicate": 1, "rejected": 0, "dropped": 0, "pending": 0}
    assert room.reasons() == {}


def test_a_span_sent_twice_in_one_body_is_stored_once(room: Room) -> None:
    room.put(body(span(1), span(1)))
    room.load()
    assert (room.spans(), room.ledger()["duplicate"]) == (ids(1), 1)


def test_a_span_sent_again_in_a_later_batch_is_stored_once(room: Room) -> None:
    room.put(body(span(1), span(2)))
    room.load()
    room.restart()
    room.put(body(span(2), span(3)), sender="another")
    room.load()
    assert room.spans() == ids(1, 2, 3)
    rows = room.store.rows("select sender, received, stored, duplicate from ingest_ledger order by sender")
    assert [tuple(row.values()) for row in rows] == [("another", 2, 1, 1), ("sender", 2, 2, 0)]


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize("changed", [{"name": "other"}, {"end_time_unix_nano": START + 999_000_000}])
def test_a_copy_that_says_something_else_is_counted_and_the_first_is_kept(room: Room, in_one_batch: bool, changed: dict[str, Any]) -> None:
    room.put(body(span(1), span(2)))
    if not in_one_batch:
        room.load()
    room.put(body(span(1, **changed), span(2)))
    room.load()
    assert room.store.rows("select name, duration_s from spans where span_id = $id", {"id": ids(1)[0]}) == [
        {"name": "llm_request", "duration_s": 0.25}
    ]
    assert room.ledger()["duplicate"] == 2
    assert room.reasons() == {"duplicate with other content": 1}


def test_the_same_span_id_in_another_trace_is_another_span(room: Room) -> None:
    room.put(body(span(1), span(1, trace_id=b"\x01" * 16)))
    room.load()
    assert room.ledger()["stored"] == 2


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": b"\x01" * 15}, "trace_id is not 16 bytes, span_id not 8, or one of them is zero"),
        ({"trace_id": bytes(16)}, "trace_id is not 16 bytes, span_id not 8, or one of them is zero"),
        ({"span_id": b""}, "trace_id is not 16 bytes, span_id not 8, or one of them is zero"),
        ({"span_id": bytes(8)}, "trace_id is not 16 bytes, span_id not 8, or one of them is zero"),
        ({"parent_span_id": b"\x01" * 9}, "parent_span_id is not 8 bytes"),
        ({"start_time_unix_nano": 0}, "start or end time is missing or out of range"),
        ({"end_time_unix_nano": 0}, "start or end time is missing or out of range"),
        ({"end_time_unix_nano": 2**63}, "start or end time is missing or out of range"),
    ],
)
def test_a_span_that_cannot_be_stored_is_refused_with_its_reason_and_keeps_no_other_out(
    room: Room, fields: dict[str, Any], reason: str
) -> None:
    room.put(body(span(1), span(2, **fields), span(3)), body(span(4)))
    room.load()
    assert room.spans() == ids(1, 3, 4)
    assert room.ledger() == {"received": 4, "stored": 3, "duplicate": 0, "rejected": 1, "dropped": 0, "pending": 0}
    assert room.reasons() == {reason: 1}


def test_a_batch_of_nothing_but_refused_spans_is_counted_and_passed(room: Room) -> None:
    room.put(body(span(1, span_id=b"")), body(span(2, trace_id=b"")))
    assert (room.load(), room.load()) == (2, 0)
    assert (room.spans(), room.ledger()["rejected"]) == ([], 2)


def test_a_body_that_the_kernels_refuse_is_rejected_and_holds_nothing_up(room: Room) -> None:
    assert (reference_check(too_deep()).sound, decode.check(too_deep()).sound) == (True, False)
    room.put(body(span(1)), too_deep(), body(span(2)))
    assert (room.load(), room.load()) == (3, 0)
    assert room.spans() == ids(1, 2)
    assert (room.ledger()["rejected"], room.reasons()) == (1, {UNSOUND: 1})
    room.put(too_deep())
    assert (room.load(), room.load(), room.ledger()["rejected"]) == (1, 0, 2)


def test_a_body_refused_at_the_door_stands_in_the_ledger_of_its_sender_and_minute(room: Room) -> None:
    room.loader.note(Note("10.0.0.9", "traces", ARRIVAL, "body is not sound"))
    room.loader.note(Note("10.0.0.9", "traces", ARRIVAL + 1, "body is not sound"))
    assert room.load() == 0
    assert room.ledger() == {"received": 2, "stored": 0, "duplicate": 0, "rejected": 2, "dropped": 0, "pending": 0}
    minute = at(ARRIVAL // 60_000_000_000 * 60_000_000_000)
    assert room.store.rows("select sender, minute from ingest_ledger") == [{"sender": "10.0.0.9", "minute": minute}]
    assert room.reasons() == {"body is not sound": 2}


def test_the_ledger_has_a_row_for_each_sender_and_minute_of_arrival(room: Room) -> None:
    minute = 60_000_000_000
    first = START // minute * minute
    for number, (sender, arrival) in enumerate([("a", first), ("a", first + minute - 1), ("a", first + minute), ("b", first)], 1):
        room.put(body(span(number)), sender=sender, arrival=arrival)
    room.load()
    rows = room.store.rows("select sender, signal, minute, stored from ingest_ledger order by sender, minute")
    assert [tuple(row.values()) for row in rows] == [
        ("a", "traces", at(first), 2),
        ("a", "traces", at(first + minute), 1),
        ("b", "traces", at(first), 1),
    ]


def test_the_watermark_is_the_newest_end_of_each_sender_and_never_goes_back(room: Room) -> None:
    room.put(body(span(5), span(2)), sender="a")
    room.put(body(span(1)), sender="b")
    room.load()
    room.put(body(span(3)), sender="a")
    room.load()
    rows = room.store.rows("select sender, ended_at, seen_at from watermarks order by sender")
    assert [tuple(row.values()) for row in rows] == [
        ("a", at(START + 255_000_000), at(ARRIVAL)),
        ("b", at(START + 251_000_000), at(ARRIVAL)),
    ]


def test_a_clock_that_runs_ahead_moves_the_watermark_at_most_a_minute_past_the_arrival(room: Room) -> None:
    room.put(body(span(1, end_time_unix_nano=ARRIVAL + 3_600_000_000_000)))
    room.load()
    assert room.store.rows("select ended_at from watermarks") == [{"ended_at": at(ARRIVAL + 60_000_000_000)}]
    assert room.store.rows("select ended_at from spans") == [{"ended_at": at(ARRIVAL + 3_600_000_000_000)}]


def test_only_traces_with_something_of_a_request_are_assembled(room: Room) -> None:
    room.put(body(span(1), span(2, name="Load model")), body(span(3), scope="some.other.scope"))
    room.load()
    expand_dirty_parts(room.store)
    assert [row["trace_id"][-1] for row in room.store.rows("select trace_id from dirty_traces")] == ["1"]
    assert room.store.rows("select role, dialect from spans order by span_id") == [
        {"role": "engine", "dialect": "vllm"},
        {"role": "housekeeping", "dialect": "vllm"},
        {"role": None, "dialect": None},
    ]


def test_prompts_are_dropped_at_the_door_unless_they_are_asked_for(room: Room, tmp_path: Path) -> None:
    told = [attribute("gen_ai.prompt.0.content", "secret"), attribute("gen_ai.request.id", "r-1"), attribute("input.value", "secret")]
    event = Span.Event(name="gen_ai.content.prompt", time_unix_nano=START, attributes=[attribute("gen_ai.prompt", "secret")])
    spoken = body(span(1, attributes=told, events=[event]))
    room.put(spoken)
    room.load()
    assert room.store.rows("select map_keys(attributes) as keys, len(events) as events from spans") == [
        {"keys": ["gen_ai.request.id"], "events": 1}
    ]
    assert "secret" not in str(room.store.rows("select * from spans"))
    keeping = Loader(Store(tmp_path / "keeping"), keep_content=True)
    room.put(spoken)
    keeping.load_next(room.spool)
    assert "secret" in str(keeping._store.rows("select * from spans"))
    keeping._store.close()


@pytest.mark.parametrize(
    "changed",
    [{"start_time_unix_nano": START - 60_000_000_000}, {"attributes": [attribute("gen_ai.request.id", "another")]}],
    ids=["its start", "an attribute"],
)
def test_a_later_copy_that_differs_only_in_one_thing_is_stored_once_and_counted(room: Room, changed: dict[str, Any]) -> None:
    room.put(body(span(1)))
    room.load()
    room.put(body(span(1, **changed)))
    room.load()
    assert room.spans() == ids(1)
    assert room.reasons() == {"duplicate with other content": 1}


def test_a_body_that_is_too_large_and_got_past_the_door_is_refused_with_its_own_reason_and_holds_up_nothing(room: Room) -> None:
    empty = ExportTraceServiceRequest()
    empty.resource_spans.add().scope_spans.add().spans.extend([Span()] * (decode.LIMIT_SPANS + 1))
    room.put(empty.SerializeToString(), body(span(1)))
    room.load()
    assert room.spans() == ids(1)
    assert room.reasons() == {f"{decode.LIMIT_SPANS + 1:,} spans in one export; at most {decode.LIMIT_SPANS:,} are taken": 1}


def aside(room: Room) -> list[tuple[bytes, str]]:
    """What was set aside, with the reasons."""
    bodies = sorted((room.folder / "set_aside").glob("*.body"))
    return [(path.read_bytes(), json.loads(path.with_suffix(".json").read_text())["reason"]) for path in bodies]


def forbid(poison: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets decoding fail wherever a body is in the batch."""
    real = decode.scan

    def scan(bodies: list[bytes], *rest: Any) -> decode.Tables:
        if poison in bodies:
            msg = "poison"
            raise ValueError(msg)
        return real(bodies, *rest)

    monkeypatch.setattr(decode, "scan", scan)


def test_a_body_that_no_one_can_load_is_set_aside_and_holds_up_no_other(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = body(span(13))
    forbid(poison, monkeypatch)
    room.put(*(body(span(number)) for number in range(1, 31)))
    while room.load():
        pass
    assert room.spans() == ids(*(number for number in range(1, 31) if number != 13))
    assert aside(room) == [(poison, "body cannot be loaded: ValueError: poison")]
    assert room.ledger() | {"pending": 0} == {"received": 30, "stored": 29, "duplicate": 0, "rejected": 1, "dropped": 0, "pending": 0}
    assert room.reasons() == {"body cannot be loaded: ValueError": 1}
    assert (room.folder / "set_aside").stat().st_mode & 0o077 == 0


def test_what_is_damaged_in_the_spool_is_set_aside_and_what_follows_is_loaded(room: Room) -> None:
    room.put(body(span(1)), body(span(2)), body(span(3)))
    path = next((room.folder / "spool").glob("*.spool"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    room.load()
    room.load()
    assert room.spans() == ids(1, 3)
    assert [reason for _, reason in aside(room)] == ["damaged in the spool"]
    assert room.reasons() == {"damaged in the spool": 1}
    assert room.spool.backlog_bytes == 0


def test_a_body_refused_at_loading_is_set_aside(room: Room) -> None:
    room.put(too_deep(), body(span(1)))
    room.load()
    assert room.spans() == ids(1)
    assert aside(room) == [(too_deep(), UNSOUND)]


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a few bodies, each read while the one before is stored."""
    monkeypatch.setattr(load, "AHEAD_BYTES", 0)
    monkeypatch.setattr(load_batch, "BATCH_LIMIT_BYTES", 1000)


def load_all(room: Room) -> int:
    rounds = 0
    while room.load():
        rounds += 1
    return rounds


@pytest.mark.usefixtures("ahead")
def test_what_is_read_ahead_is_loaded_once_and_in_order(room: Room) -> None:
    room.put(*(body(span(number)) for number in range(1, 41)), *(body(span(number)) for number in range(30, 41)))
    assert load_all(room) > 3
    assert room.spans() == ids(*range(1, 41))
    assert room.ledger() | {"pending": 0} == {"received": 51, "stored": 40, "duplicate": 11, "rejected": 0, "dropped": 0, "pending": 0}


@pytest.mark.usefixtures("ahead")
def test_a_batch_that_fails_to_be_stored_is_loaded_again_before_what_was_read_ahead(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    room.put(*(body(span(number)) for number in range(1, 41)))
    assert room.load()
    with monkeypatch.context() as broken:

        def refuse(*_: object) -> None:
            raise OSError(28, "No space left on device")

        broken.setattr(Transaction, "insert", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                room.load()
    load_all(room)
    assert room.spans() == ids(*range(1, 41))
    assert room.ledger()["received"] == 40


@pytest.mark.usefixtures("ahead")
def test_a_body_read_ahead_that_no_one_can_load_is_set_aside(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    poison = body(span(23))
    forbid(poison, monkeypatch)
    room.put(*(body(span(number)) for number in range(1, 41)))
    load_all(room)
    assert room.spans() == ids(*(number for number in range(1, 41) if number != 23))
    assert [content for content, _ in aside(room)] == [poison]


def test_a_span_from_a_clock_far_ahead_does_not_put_all_later_spans_in_doubt_after_a_restart(room: Room) -> None:
    ahead_ns = ARRIVAL + 50 * 365 * 86_400_000_000_000
    late = span(1, start_time_unix_nano=ahead_ns, end_time_unix_nano=ahead_ns + 1)
    room.put(body(late, span(2)))
    room.load()
    room.close()
    room.open()
    doubted = room.loader._spans._spans.maybe
    assert doubted(np.array([START + 3_600_000_000_000, ahead_ns]), np.array([7, 7], np.uint64)).tolist() == [False, True]
    room.put(body(late, span(3)))
    room.load()
    assert room.spans() == ids(1, 2, 3)
