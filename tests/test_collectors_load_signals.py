"""Metrics, scrapes, logs and evaluations of the spool become rows exactly once, and the ledger says what became of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from collectors_bodies import START, attribute, body, span
from collectors_metrics import counter, gauge, histogram, logs, metrics, point, record
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, Summary, SummaryDataPoint
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collectors import entry, evaluations
from collectors.ledger import Note
from collectors.load import Loader
from collectors.prometheus_text import Scrape, spooled
from collectors.spool import Spool
from queries.store import Store, Transaction

ARRIVAL = START + 1_000_000_000
COUNTS = ("received", "stored", "duplicate", "rejected", "dropped", "pending")


class Room:
    """A store with its spool and loader, as one process has them."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.loader = Loader(self.store)
        self.spool = Spool(folder / "spool", self.loader.position())

    def put(self, signal: str, content: bytes, sender: str = "sender", arrival: int = ARRIVAL) -> None:
        self.spool.append(signal, sender, arrival, content).result(10)

    def load(self) -> int:
        return self.loader.load_next(self.spool)

    def ledger(self, signal: str) -> dict[str, int]:
        sums = ", ".join(f"coalesce(sum({name}), 0)::bigint as {name}" for name in COUNTS)
        found: dict[str, int] = self.store.rows(f"select {sums} from ingest_ledger where signal = $signal", {"signal": signal})[0]
        assert found["received"] == sum(found[name] for name in COUNTS[1:])
        return {name: count for name, count in found.items() if count}

    def reasons(self) -> dict[str, int]:
        rows = self.store.rows("select unnest(map_entries(reasons)) as entry from ingest_ledger")
        return {row["entry"]["key"]: row["entry"]["value"] for row in rows}

    def close(self) -> None:
        self.spool.close()
        self.store.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    opened = Room(tmp_path)
    yield opened
    opened.close()


def at(nanoseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)


def sent(*some: Metric, **resource: str) -> bytes:
    return metrics(*some, **resource).SerializeToString()


def ended(request_id: str, **fields: Any) -> dict[str, Any]:
    request = {
        "request_id": request_id,
        "input_tokens": 10,
        "output_tokens": 4,
        "request_received_ms": START // 10**6,
        "total_time_ms": 20.0,
    }
    return {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": request | fields}


def test_a_sample_is_stored_with_its_meaning_in_canonical_units_under_its_own_name(room: Room) -> None:
    room.put("metrics", sent(histogram("sglang:kv_transfer_latency_ms", [10.0], [1, 2], sum=50.0), service__instance__id="pod-1"))
    room.load()
    row = room.store.rows("select * from samples")[0]
    wanted = {
        "observed_at": at(START), "replica": "pod-1", "name": "sglang:kv_transfer_latency_ms", "kind": "histogram", "value": 0.05,
        "bounds": [0.01], "counts": [1, 2], "total": 3, "signal": "kv_transfer_s", "engine": "sglang", "sender": "sender",
        "since": None, "received_at": at(ARRIVAL),
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted


def test_a_sample_without_a_meaning_keeps_its_value(room: Room) -> None:
    room.put("metrics", sent(gauge("my:latency_ms", point(50.0))))
    room.load()
    assert room.store.rows("select value, signal, engine from samples") == [{"value": 50.0, "signal": None, "engine": None}]


def test_a_sample_sent_again_is_stored_once_in_a_batch_and_later(room: Room) -> None:
    content = sent(gauge("g", point(1.0, a="x", b="y")), counter("c", point(2.0)))
    room.put("metrics", content)
    room.put("metrics", content, sender="another")
    room.load()
    room.put("metrics", sent(gauge("g", point(1.0, b="y", a="x"))))
    room.load()
    # `another` is another replica: nothing but its address names it.
    assert room.store.rows("select replica, name from samples order by all") == [
        {"replica": replica, "name": name} for replica in ("another", "sender") for name in ("c", "g")
    ]
    assert room.ledger("metrics") == {"received": 5, "stored": 4, "duplicate": 1}


def test_points_of_one_series_at_other_moments_are_other_samples(room: Room) -> None:
    room.put("metrics", sent(gauge("g", point(1.0), point(1.0, at=START + 1000), point(1.0, engine="1"))))
    room.load()
    assert room.ledger("metrics") == {"received": 3, "stored": 3}


def test_what_is_no_sample_is_counted_as_rejected_or_dropped_with_its_reason(room: Room) -> None:
    summary = Metric(name="s", summary=Summary(data_points=[SummaryDataPoint(time_unix_nano=START)]))
    room.put("metrics", sent(gauge("g", point(1.0), point(2.0, at=0)), summary))
    room.load()
    assert room.ledger("metrics") == {"received": 3, "stored": 1, "rejected": 1, "dropped": 1}
    assert len(room.reasons()) == 2


def test_a_sample_observed_long_before_it_came_is_counted_as_late(room: Room) -> None:
    minute = 60_000_000_000
    room.put("metrics", sent(gauge("g", point(1.0, at=ARRIVAL - 16 * minute), point(1.0, at=ARRIVAL - 14 * minute))))
    room.load()
    assert room.store.rows("select sum(late)::bigint as late from ingest_ledger") == [{"late": 1}]


def test_a_scrape_is_loaded_under_its_target_at_the_time_it_came(room: Room) -> None:
    text = b'# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine="0"} 0.25\n'
    scrape = Scrape("10.0.0.5:8000", replica="pod-7", labels={"leverwatch.hardware": "h100"})
    room.put("scrapes", spooled(scrape, text), sender="scrape:10.0.0.5:8000")
    room.load()
    row = room.store.rows("select observed_at, replica, signal, value, map_entries(labels) as labels from samples")[0]
    assert (row["observed_at"], row["replica"], row["signal"], row["value"]) == (at(ARRIVAL), "pod-7", "kv_usage", 0.25)
    assert [tuple(entry.values()) for entry in row["labels"]] == [("engine", "0"), ("leverwatch.hardware", "h100")]


def test_a_scrape_that_cannot_be_read_is_set_aside_whole_and_holds_nothing_up(room: Room) -> None:
    room.put("scrapes", spooled(Scrape("h:1"), b"# TYPE a gauge\na 1\nb{ 2\n"))
    room.put("scrapes", spooled(Scrape("h:1"), b"# TYPE a gauge\na 1\n"))
    assert (room.load(), room.load()) == (2, 0)
    assert room.ledger("scrapes") == {"received": 2, "stored": 1, "rejected": 1}
    assert next(iter(room.reasons())).startswith("not the text of metrics")


def test_a_request_that_ended_becomes_a_span_once(room: Room) -> None:
    said = {"event_type": "request_end", "rid": "r-1", "payload": json.dumps(ended("r-1"))}
    content = logs(record(attributes=said), scope="dynamo.request_trace", service__name="dynamo-frontend").SerializeToString()
    room.put("logs", content)
    room.load()
    room.put("logs", content)
    room.load()
    row = room.store.rows("select name, scope, service, started_at, duration_s from spans")
    assert [tuple(one.values()) for one in row] == [("request_end", "dynamo.request_trace", "dynamo-frontend", at(START), 0.02)]
    assert room.ledger("logs") == {"received": 2, "stored": 1, "duplicate": 1}


def test_a_request_that_ended_and_says_nothing_is_rejected_with_its_reason(room: Room) -> None:
    for payload in ("{", '{"schema": "other"}', json.dumps({"schema": "dynamo.request.trace.v1", "request": {}})):
        said = {"event_type": "request_end", "payload": payload}
        room.put("logs", logs(record(attributes=said), scope="dynamo.request_trace").SerializeToString())
    room.load()
    assert room.ledger("logs") == {"received": 3, "rejected": 3}
    assert len(room.reasons()) == 3


def test_an_evaluation_event_of_a_log_and_of_a_span_and_a_post_are_rows_each_once(room: Room) -> None:
    said = {"gen_ai.evaluation.name": "faithful", "gen_ai.evaluation.score.value": 0.75, "gen_ai.response.id": "resp-1"}
    content = logs(record(event_name=evaluations.EVENT, attributes=said, trace_id=b"\x01" * 16)).SerializeToString()
    event = Span.Event(name=evaluations.EVENT, time_unix_nano=START, attributes=[attribute(key, value) for key, value in said.items()])
    posted = json.dumps(
        [{"suite": "mmlu", "kind": "public_benchmark", "score": 0.5, "run_id": "run", "repeat": number} for number in (1, 2)]
    )
    for _ in range(2):
        room.put("logs", content)
        room.put("traces", body(span(1, events=[event])))
        room.put("evaluations", posted.encode())
    room.load()
    rows = room.store.rows("select suite, kind, score, better, request_id, trace_id, repeat from evaluations order by all")
    assert [tuple(row.values()) for row in rows] == [
        ("faithful", "product", 0.75, "higher", "resp-1", "00" * 15 + "01", None),
        ("faithful", "product", 0.75, "higher", "resp-1", "01" * 16, None),
        ("mmlu", "public_benchmark", 0.5, "higher", None, None, 1),
        ("mmlu", "public_benchmark", 0.5, "higher", None, None, 2),
    ]
    assert room.ledger("evaluations") == {"received": 6, "stored": 3, "duplicate": 3}
    assert (room.ledger("logs"), room.ledger("traces")["stored"]) == ({"received": 2, "stored": 1, "duplicate": 1}, 1)


def test_what_the_door_noted_is_counted_beside_what_is_loaded_and_survives_a_transaction_that_fails(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.loader.note(Note("sender", "logs", ARRIVAL, "holds the prompt", 3, is_dropped=True))
    room.put("metrics", sent(gauge("g", point(1.0))))

    def failing(_self: Transaction, table: str, _rows: object) -> int:
        msg = f"cannot insert into {table}"
        raise RuntimeError(msg)

    with monkeypatch.context() as broken:
        broken.setattr(Transaction, "insert", failing)
        with pytest.raises(RuntimeError, match="cannot insert"):
            room.load()
    assert (room.load(), room.load()) == (1, 0)
    assert room.ledger("logs") == {"received": 3, "dropped": 3}
    assert room.ledger("metrics") == {"received": 1, "stored": 1}


def test_prompts_of_a_request_trace_never_reach_the_spool(room: Room) -> None:
    payload = {"schema": "dynamo.request.trace.v1", "payload": {"model": "m", "request": {"messages": "a secret", "temperature": 0.7}}}
    asked = {"event_type": "request_payload", "rid": "r-1", "model": "m", "payload": json.dumps(payload)}
    over = {"event_type": "request_end", "rid": "r-1", "payload": json.dumps(ended("r-1"))}
    told = logs(record(attributes=asked), record(attributes=over), scope="dynamo.request_trace")
    told.resource_logs[0].scope_logs.add().log_records.append(record(body={"string_value": "a secret"}))
    taken = entry.of_logs(told.SerializeToString())
    assert (taken.items, taken.dropped.total(), b"secret" in taken.body) == (1, 2, False)
    room.put("logs", taken.body)
    room.load()
    said = room.store.rows("select unnest(map_entries(attributes)) as entry from spans")
    assert {row["entry"]["key"]: row["entry"]["value"] for row in said if row["entry"]["key"] in ("model", "temperature")} == {
        "model": "m",
        "temperature": "0.7",
    }


def test_the_recorded_request_trace_gives_the_facts_of_each_request_and_no_prompt(room: Room, recordings: Path) -> None:
    folder = recordings / "dynamo-reqtrace"
    dropped = 0
    for path in sorted(folder.glob("logs/*.pb")):
        taken = entry.of_logs(path.read_bytes())
        dropped += taken.dropped["request_payload: holds the prompt in clear"]
        assert b"helpful assistant" not in taken.body
        if taken.items:
            room.put("logs", taken.body)
    room.load()
    rows = room.store.rows("select distinct trace_id, role, dialect, duration_s, signals from spans")
    sums = {
        name: sum(row["signals"][name] for row in rows) for name in ("prompt_tokens", "output_tokens", "cached_tokens", "queue_s", "e2e_s")
    }
    assert {row["role"] for row in rows} == {"log"}
    assert (len(rows), dropped, sums["prompt_tokens"], sums["output_tokens"], sums["cached_tokens"]) == (12, 12, 4744, 392, 1632)
    assert {(row["dialect"], row["signals"]["model"], row["signals"]["finish_reason"]) for row in rows} == {("dynamo", "tiny", "length")}
    assert (0 < sums["queue_s"] < sums["e2e_s"], all(row["signals"]["join_key"] for row in rows)) == (True, True)
