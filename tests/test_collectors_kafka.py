"""Messages of a group are stored once each and committed after that, whatever the store, the group or the process does meanwhile."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

pytest.importorskip("confluent_kafka", reason="no client of Kafka: pip install 'leverwatch[cluster]'")

from kafka_brokers import PARTITIONS, broker, committed, kinds, send, topic

from collectors.door import Door, reference_check
from collectors.kafka import KafkaMissingError, KafkaOptionError, KafkaReader
from collectors.kafka_body import keep_in
from collectors.kafka_door import KafkaDoor
from collectors.kafka_progress import STORED, Answer, Arrived
from collectors.kafka_settings import Kafka
from collectors.ledger import Note
from collectors.spool import Spool
from collectors.spool_records import Position

LIMIT_S = 30.0
ALL = 1 << 40


@dataclass
class Yard:
    """A broker with one new topic."""

    address: str
    name: str
    group: str = field(default_factory=lambda: f"g-{uuid.uuid4().hex[:8]}")

    def settings(self, **more: Any) -> Kafka:
        return Kafka((self.address,), self.group, {"traces": self.name}, options={"session.timeout.ms": "6000"}, **more)

    def reader(self, take: Callable[[Sequence[Arrived]], Awaitable[Sequence[Answer]]]) -> KafkaReader:
        return KafkaReader(self.settings(), take)

    def send(self, *bodies: bytes | None) -> None:
        """One after the other, to the partitions in turn."""
        send(self.address, self.name, [(number % PARTITIONS, body) for number, body in enumerate(bodies)])

    def committed(self) -> dict[int, int]:
        return committed(self.address, self.group, self.name)


@pytest.fixture(scope="module", params=kinds())
def brokers(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    with broker(request.param) as address:
        yield request.param, address


@pytest.fixture
def yard(brokers: tuple[str, str]) -> Yard:
    kind, address = brokers
    return Yard(address, topic(kind, address))


class Taker:
    """A store that keeps bodies, while it does not refuse."""

    def __init__(self) -> None:
        self.bodies: list[bytes | None] = []
        self.refuses = self.hangs = False
        self.refused = 0

    async def take(self, messages: Sequence[Arrived]) -> list[Answer]:
        while self.hangs:
            await asyncio.sleep(0.02)
        if self.refuses:
            self.refused += 1
            return [Answer("the spool is full", 0.2) for _ in messages]
        self.bodies += [one.body for one in messages]
        return [STORED for _ in messages]


async def until(is_so: Callable[[], bool]) -> None:
    started = time.monotonic()
    while not is_so():
        assert time.monotonic() - started < LIMIT_S, "it did not come to that"
        await asyncio.sleep(0.05)


def bodies(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def test_offsets_are_committed_after_the_store_has_the_bodies_and_the_next_start_goes_on_behind_them(yard: Yard) -> None:
    async def play() -> None:
        first, second = Taker(), Taker()
        first.hangs = True
        yard.send(*bodies(12))
        reader = yard.reader(first)
        reader.start()
        await until(lambda: bool(reader._consumer.assignment()))
        await asyncio.sleep(1)
        assert yard.committed() == {}
        first.hangs = False
        await until(lambda: len(first.bodies) == 12)
        await reader.stop(LIMIT_S)
        assert yard.committed() == dict.fromkeys(range(PARTITIONS), 3)
        assert reader.counts == {(yard.name, "taken"): 12}
        yard.send(*bodies(4, first=12))
        reader = yard.reader(second)
        reader.start()
        await until(lambda: len(second.bodies) >= 4)
        await reader.stop(LIMIT_S)
        assert (sorted(first.bodies), sorted(second.bodies)) == (sorted(bodies(12)), sorted(bodies(4, first=12)))

    asyncio.run(play())


def test_while_the_store_refuses_reading_is_paused_and_then_each_body_is_stored_once(yard: Yard) -> None:
    async def play() -> None:
        taker = Taker()
        taker.refuses = True
        yard.send(*bodies(8))
        reader = yard.reader(taker)
        reader.start()
        await until(lambda: taker.refused > 2)
        held = len(reader._progress.waiting())
        yard.send(*bodies(40, first=8))
        await until(lambda: taker.refused > 6)
        assert reader.warnings == {"paused": "reading is paused, and goes on by itself: the spool is full"}
        assert (len(reader._progress.waiting()), yard.committed()) == (held, {})
        taker.refuses = False
        await until(lambda: len(taker.bodies) >= 48 and not reader.warnings)
        await reader.stop(LIMIT_S)
        assert sorted(filter(None, taker.bodies)) == sorted(bodies(48))
        assert yard.committed() == dict.fromkeys(range(PARTITIONS), 12)

    asyncio.run(play())


def test_members_share_the_partitions_and_one_that_ends_hands_on_what_it_had(yard: Yard) -> None:
    async def play() -> None:
        takers = [Taker(), Taker()]
        readers = [yard.reader(taker) for taker in takers]
        yard.send(*bodies(20))
        for reader in readers:
            reader.start()
        await until(lambda: all(len(one._consumer.assignment()) == PARTITIONS // 2 for one in readers))
        yard.send(*bodies(20, first=20))
        await until(lambda: sum(len(taker.bodies) for taker in takers) >= 40)
        await readers[0].stop(LIMIT_S)
        yard.send(*bodies(20, first=40))
        await until(lambda: sum(len(taker.bodies) for taker in takers) >= 60)
        await until(lambda: list(readers[1].lags.values()) == [0] * PARTITIONS)
        await readers[1].stop(LIMIT_S)
        taken = [body for taker in takers for body in taker.bodies if body]
        assert sorted(taken) == sorted(bodies(60))
        assert all(taker.bodies for taker in takers)

    asyncio.run(play())


def export(number: int) -> bytes:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = number.to_bytes(16, "big"), number.to_bytes(8, "big"), "llm_request"
    body: bytes = request.SerializeToString()
    return body


def test_what_is_no_export_is_set_aside_with_its_reason_and_holds_up_nothing(yard: Yard, tmp_path: Path) -> None:
    noted: list[Note] = []
    spool = Spool(tmp_path / "spool", Position(0, 0))
    door = Door(spool, lambda: 1_700_000_000_000_000_000, noted.append, reference_check)
    sound = [export(number) for number in range(1, 7)]

    async def play() -> None:
        reader = KafkaReader(yard.settings(), KafkaDoor(door, keep_in(tmp_path), "otlp_proto"))
        yard.send(*sound[:3], b"\xff" * 9, *sound[3:], None)
        reader.start()
        await until(lambda: sum(reader.counts.values()) == 8)
        await reader.stop(LIMIT_S)
        assert reader.counts == {(yard.name, "taken"): 6, (yard.name, "set_aside"): 2}

    asyncio.run(play())
    stored = list(spool.read(Position(0, 0), ALL))
    spool.close()
    assert {one.body for one in stored} == set(sound)
    assert {one.sender for one in stored} == {f"kafka:{yard.name}/{number}" for number in range(3)}
    assert yard.committed() == dict.fromkeys(range(PARTITIONS), 2)
    assert sorted(note.reason for note in noted) == ["body is not a sound ExportTraceServiceRequest", "message without a body"]
    aside = tmp_path / "set_aside" / f"kafka-{yard.name}-3-0"
    assert aside.with_suffix(".body").read_bytes() == b"\xff" * 9
    assert json.loads(aside.with_suffix(".json").read_text()) == {
        "reason": "body is not a sound ExportTraceServiceRequest (9 bytes)",
        "sender": f"kafka:{yard.name}/3",
        "signal": "traces",
        "topic": yard.name,
        "partition": 3,
        "offset": 0,
    }


def test_brokers_that_do_not_answer_are_told_and_do_not_keep_the_process_from_ending() -> None:
    async def play() -> None:
        reader = KafkaReader(Kafka(("127.0.0.1:9",)), Taker())
        reader.start()
        await until(lambda: "kafka" in reader.warnings)
        started = time.monotonic()
        await reader.stop(LIMIT_S)
        assert time.monotonic() - started < 10

    asyncio.run(play())


def test_an_option_that_the_client_does_not_know_is_refused_at_once() -> None:
    with pytest.raises(KafkaOptionError, match=r'\[kafka\] options: .*"fetch.fast"'):
        KafkaReader(Kafka(("127.0.0.1:9",), options={"fetch.fast": "1"}), Taker())


def test_without_the_client_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(KafkaMissingError, match=r"pip install 'leverwatch\[cluster\]'"):
        KafkaReader(Kafka(("127.0.0.1:9",)), Taker())
