"""A whole server that reads topics: what one that died had stored and not committed it has once, and it says how far behind it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from collectors_bodies import body, span
from collectors_metrics import gauge, metrics, point
from test_leverwatch_serve import Running

pytest.importorskip("confluent_kafka", reason="no client of Kafka: pip install 'leverwatch[cluster]'")

from kafka_brokers import PARTITIONS, broker, committed, kinds, send, topic

from collectors.door import Door, reference_check
from collectors.kafka import KafkaReader
from collectors.kafka_body import keep_in
from collectors.kafka_door import KafkaDoor
from collectors.spool import Spool
from collectors.spool_records import Position
from leverwatch import config

KIND = kinds()[-1]
GROUP = "served"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with broker(KIND) as found:
        yield found


async def store_and_die(folder: Path, messages: int) -> None:
    """Reads messages into the folder's spool, and ends between the store and the commit."""
    spool = Spool(folder / "spool", Position(0, 0))
    door = Door(spool, lambda: 1_700_000_000_000_000_000, lambda _: None, reference_check)
    reader = KafkaReader(config.read(None, folder, {}).kafka, KafkaDoor(door, keep_in(folder), "otlp_proto"))
    reader._commit = lambda _=None: None  # type: ignore[method-assign]
    reader.start()
    async with asyncio.timeout(30):
        while sum(reader.counts.values()) < messages:
            await asyncio.sleep(0.05)
    await reader.stop(30)
    spool.close()


def test_what_was_stored_before_a_crash_and_not_committed_is_stored_once(address: str, tmp_path: Path) -> None:
    spans, samples = topic(KIND, address), topic(KIND, address)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "leverwatch.toml").write_text(
        f'[kafka]\nbrokers = ["{address}"]\ngroup = "{GROUP}"\ntopics = {{ traces = "{spans}", metrics = "{samples}" }}\n'
        'options = { "session.timeout.ms" = "6000" }\n'
    )
    exports = [body(span(10 * number), span(10 * number + 1)) for number in range(1, 9)]
    send(address, spans, [(number % PARTITIONS, one) for number, one in enumerate([*exports, exports[0], b"\xff\xff"])])
    send(address, samples, [(0, metrics(gauge("told", point(1.0))).SerializeToString())])
    asyncio.run(store_and_die(folder, 11))
    assert committed(address, GROUP, spans) == {}
    send(address, spans, [(0, exports[1]), (1, body(span(200)))])

    server = Running(folder)
    try:
        server.wait_for("select count(*), count(distinct span_id) from spans", [[17, 17]])
        server.wait_for("select count(*) from samples where name = 'told'", [[1]])
        ledger = httpx.get(f"{server.addresses['url']}/api/ledger").json()
        mine = [row for row in ledger if row["sender"].startswith(f"kafka:{spans}/")]
        assert (len(mine), sum(row["stored"] for row in mine)) == (PARTITIONS, 17)
        told = httpx.get(f"{server.addresses['url']}/metrics").text
        assert f'leverwatch_kafka_messages_total{{outcome="taken",topic="{spans}"}} 11.0' in told
        assert f'leverwatch_kafka_messages_total{{outcome="set_aside",topic="{spans}"}} 1.0' in told
        assert "leverwatch_kafka_paused 0.0" in told
        assert len(list((folder / "set_aside").glob("kafka-*.body"))) == 1
    finally:
        assert server.end()[0] == 0
    assert sum(committed(address, GROUP, spans).values()) == 12
