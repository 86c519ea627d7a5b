"""A span reads the same whether it is hot, in a part, merged or from before the layout of parts; and parts are small."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from collectors_bodies import START, attribute, body, span
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue

from collectors.ledger import Tallies
from collectors.load_spans import SpanLoader
from collectors.spool_records import Position, Record
from queries import fresh_parts, merging, part_writer, sealing
from queries.merging import Pace, merge_next
from queries.sandbox import Sandbox
from queries.store import Store

COLUMNS = [
    "trace_id", "span_id", "parent_span_id", "name", "kind", "started_at", "ended_at", "start_unix_nano", "duration_s", "status",
    "status_message", "scope", "service", "replica", "sender", "dialect", "role", "signals", "levers", "arms", "resource", "attributes",
    "events", "links", "received_at", "texts", "numbers",
]  # fmt: skip
LATER = datetime.fromtimestamp(START / 1e9, UTC) + timedelta(hours=3)
LISTED = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(double_value=2.5)]))
# Each value and the text that readers see.
VALUES: dict[str, tuple[AnyValue, str | None]] = {
    "gen_ai.request.id": (AnyValue(string_value="r-1"), "r-1"),
    "word": (AnyValue(string_value="x"), "x"),
    "empty": (AnyValue(string_value=""), ""),
    "nothing": (AnyValue(), None),
    "int": (AnyValue(int_value=-7), "-7"),
    "yes": (AnyValue(bool_value=True), "true"),
    "nested": (LISTED, "[1, 2.5]"),
    "bytes": (AnyValue(bytes_value=b"\x00\xff"), "AP8="),
    "one": (AnyValue(double_value=1.0), "1.0"),
    "tenth": (AnyValue(double_value=0.1), "0.1"),
    "minus zero": (AnyValue(double_value=-0.0), "-0.0"),
    "small": (AnyValue(double_value=1e-7), "1e-07"),
    "large": (AnyValue(double_value=1e300), "1e+300"),
    "nan": (AnyValue(double_value=float("nan")), "nan"),
    "inf": (AnyValue(double_value=float("-inf")), "-inf"),
}
READ = "select map_keys(attributes) as keys, map_values(attributes) as texts from spans order by span_id"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    sealing.restore(opened)
    yield opened
    opened.close()


@pytest.fixture(params=[fresh_parts.MIN_ROWS, 1], ids=["hot", "part"])
def _placed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", request.param)


@pytest.fixture
def _parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_parts, "MIN_ROWS", 1)


def put(store: Store, *bodies: bytes) -> None:
    """Loads each body as a batch of its own; nothing then waits for assembly."""
    loader = SpanLoader(store)
    for one in bodies:
        batch = loader.prepare([Record("traces", "s", START, one, Position(0, 0))], {})
        with store.write() as transaction:
            loader.store(transaction, batch, Tallies())
            transaction.execute("delete from dirty_parts")


def every_type(number: int = 1, **fields: Any) -> bytes:
    return body(span(number, attributes=[KeyValue(key=key, value=value) for key, (value, _) in VALUES.items()], **fields))


def texts(store: Store) -> list[dict[str, str | None]]:
    return [dict(zip(row["keys"], row["texts"], strict=True)) for row in store.rows(READ)]


def keys(store: Store) -> list[tuple[Any, ...]]:
    return store.frame("select signals.request_id, signals.join_key from spans order by span_id").rows()


def parts(store: Store, relation: str = "spans") -> list[Path]:
    return sealing.part_files_of(store, relation)


@pytest.mark.usefixtures("_placed")
def test_values_of_every_type_read_as_text_wherever_they_are(store: Store) -> None:
    put(store, every_type(), body(span(2, attributes=[])))
    expected = {key: text for key, (_, text) in VALUES.items()}
    assert texts(store) == [expected, {}]
    while sealing.seal_next(store, LATER):
        assert texts(store) == [expected, {}]
    assert [row["name"] for row in store.rows("select column_name as name from (describe spans)")] == COLUMNS


@pytest.mark.usefixtures("_placed")
def test_ad_hoc_sql_sees_attributes_and_keys_whole(store: Store) -> None:
    put(store, every_type())
    sandbox = Sandbox(store)
    try:
        answer = sandbox.run("select attributes['tenth'], attributes['int'], signals.join_key, cardinality(attributes) from spans")
        assert answer.rows() == [["0.1", "-7", "r-1", len(VALUES)]]
        assert [row[0] for row in sandbox.run("describe spans").rows()] == COLUMNS
    finally:
        sandbox.close()


@pytest.mark.usefixtures("_parts")
def test_a_join_key_that_is_the_request_id_is_stored_once_and_read_whole(store: Store) -> None:
    put(store, body(span(1, attributes=[attribute("gen_ai.request.id", "r-1")])), body(span(2, attributes=[])))
    (first, second) = (pq.read_table(part) for part in parts(store))
    assert first["signals"].to_pylist()[0]["join_key"] is None
    assert (first["joins_by_request_id"].to_pylist(), second["joins_by_request_id"].to_pylist()) == ([True], [False])
    assert keys(store) == [("r-1", "r-1"), (None, None)]


def test_another_join_key_and_a_missing_one_stay_as_they_are() -> None:
    signals = pa.array([{"request_id": "a", "join_key": "a"}, {"request_id": "a", "join_key": "b"}, {"request_id": "a"}, None])
    once = part_writer.packed(pa.table({"signals": signals}))
    assert [row and row["join_key"] for row in once["signals"].to_pylist()] == [None, "b", None, None]
    assert once["joins_by_request_id"].to_pylist() == [True, False, False, False]
    assert part_writer.packed(once).equals(once)


@pytest.mark.usefixtures("_parts")
def test_a_part_from_before_this_layout_reads_beside_new_ones(store: Store) -> None:
    put(store, every_type(1), every_type(2))
    (part, _) = parts(store)
    old = pq.read_table(part).drop_columns(["numbers", "joins_by_request_id"])
    said = pa.array([[("tenth", "0.1"), ("word", "x")]], pa.map_(pa.string(), pa.string()))
    signals = pa.array([{"request_id": "r-1", "join_key": "r-1", "ttft_s": 0.5}])
    old = old.set_column(old.schema.get_field_index("attributes"), "attributes", said)
    old = old.set_column(old.schema.get_field_index("signals"), "signals", signals)
    older = part.with_name("20231114T22-0099.parquet")
    pq.write_table(old, older)
    with store.write() as transaction:
        transaction.execute('update parts set "file" = $new where "file" = $old', {"new": older.name, "old": part.name})
        sealing.refresh(store, transaction, "spans")
    assert texts(store) == [{"tenth": "0.1", "word": "x"}, {key: text for key, (_, text) in VALUES.items()}]
    assert keys(store) == [("r-1", "r-1"), ("r-1", "r-1")]
    put(store, every_type(3))
    assert merge_next(store, "spans", Pace(2)) == 2
    assert older in parts(store)
    assert texts(store)[0] == {"tenth": "0.1", "word": "x"}
    assert keys(store) == [("r-1", "r-1")] * 3


@pytest.mark.usefixtures("_placed")
def test_a_span_that_is_sent_again_is_the_same_only_if_its_numbers_are(store: Store) -> None:
    put(store, body(span(1, attributes=[attribute("x", 0.1)])))
    loader = SpanLoader(store)
    for value, differing in ((0.1, {}), (0.2, {"duplicate with other content": 1})):
        batch = loader.prepare([Record("traces", "s", START, body(span(1, attributes=[attribute("x", value)])), Position(0, 0))], {})
        tallies = Tallies()
        with store.write() as transaction:
            loader.store(transaction, batch, tallies)
        (tally,) = (tallies.of(record) for record in batch.records)
        assert (tally.stored, tally.duplicate, dict(tally.reasons)) == (0, 1, differing)


@pytest.mark.usefixtures("_parts")
def test_merging_keeps_every_row_and_sorts_them_by_time(store: Store) -> None:
    put(store, *(body(span(number, attributes=[attribute("x", number / 7)])) for number in (3, 1, 5, 2, 4)))
    before = store.frame("select * exclude (levers, arms) from spans order by span_id")
    assert merge_next(store, "spans", Pace(6)) == 0
    assert merge_next(store, "spans", Pace(5)) == 5
    assert store.frame("select * exclude (levers, arms) from spans order by span_id").equals(before)
    (part,) = parts(store)
    assert [int(one, 16) for one in pq.read_table(part, columns=["span_id"])["span_id"].to_pylist()] == [1, 2, 3, 4, 5]
    assert store.rows('select level, "rows" as held from parts') == [{"level": 1, "held": 5}]


@pytest.mark.usefixtures("_parts")
def test_small_parts_are_merged_among_themselves_and_a_large_one_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SMALL_ROWS", 2)
    monkeypatch.setitem(merging.LARGE_ROWS, "spans", 3)
    pairs = [body(span(2 * number), span(2 * number + 1)) for number in range(1, 3)]
    put(store, body(span(100), span(101), span(102)), *pairs, body(span(200)), body(span(201)))
    assert [merge_next(store, "spans", Pace(2)) for _ in range(4)] == [2, 4, 0, 0]
    assert sorted(row["held"] for row in store.rows('select "rows" as held from parts')) == [2, 3, 4]


@pytest.mark.usefixtures("_parts")
def test_an_hour_that_has_closed_is_merged_whole(store: Store) -> None:
    put(store, body(span(1)), body(span(2)))
    until = store.rows("select until from parts")[0]["until"]
    assert [merge_next(store, "spans", closed=until - timedelta(seconds=1)), merge_next(store, "spans", closed=until)] == [0, 2]


@pytest.mark.usefixtures("_parts")
def test_a_merge_whose_parts_were_replaced_meanwhile_changes_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    put(store, body(span(1)), body(span(2)))

    def replaced(path: Path) -> None:
        assert path.exists()
        with store.write() as transaction:
            sealing.unlist(store, transaction, "spans", [parts(store)[0].name])

    monkeypatch.setattr(merging, "sync", replaced)
    assert merge_next(store, "spans", Pace(2)) == 0
    assert store.rows("select count(*) as n from spans") == [{"n": 1}]


def test_a_part_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    rows = pa.table({"started_at": [1, 2]})
    with pytest.raises(ValueError, match="no more"), part_writer.opened(tmp_path / "x-0.parquet", rows.schema, 1) as part:
        part.write_table(rows)
        raise ValueError("no more")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_parts")
def test_a_span_of_twenty_attributes_takes_less_than_160_bytes(store: Store) -> None:
    put(store, realistic(20_000))
    (part,) = parts(store)
    assert part.stat().st_size / 20_000 < 160


def realistic(count: int) -> bytes:
    """Spans as vLLM sends them: latencies are differences of two readings of a clock, ids are random, words are few."""
    rng = np.random.default_rng(7)
    clock = (2.0**17 + rng.gamma(2.0, 1.0, (count, 6))) - 2.0**17
    words = rng.choice(["background", "enterprise", "individual", "eu-west-1a", "us-east-2b", "canary-017", "chat-panel"], (count, 10))
    tokens = rng.integers(128, 4096, (count, 2))
    names = ("time_to_first_token", "e2e", "time_in_queue", "time_in_model_prefill", "time_in_model_decode", "time_in_model_inference")
    made = []
    for row in range(count):
        reals = [attribute(f"gen_ai.latency.{name}", float(value)) for name, value in zip(names, clock[row], strict=True)]
        told = [attribute(f"bench.labels.{place}", str(word)) for place, word in enumerate(words[row])]
        counts = [
            attribute("gen_ai.usage.prompt_tokens", int(tokens[row, 0])),
            attribute("gen_ai.usage.completion_tokens", int(tokens[row, 1])),
        ]
        own = [attribute("gen_ai.request.id", f"chatcmpl-{rng.bytes(8).hex()}"), attribute("gen_ai.request.temperature", 0.7)]
        ids = {"trace_id": rng.bytes(16), "span_id": rng.bytes(8)}
        start = START + int(rng.integers(0, 10**9))
        made.append(span(row, **ids, start_time_unix_nano=start, end_time_unix_nano=start + 10**9, attributes=reals + told + counts + own))
    return body(*made, service__name="vllm")
