"""The `[kafka]` table in, the settings of a consumer of librdkafka out; what would break the promise of `kafka.py` is refused."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

SIGNALS = ("traces", "metrics", "logs")
QUEUED_KBYTES = 32 * 1024  # fetched and not taken yet; the bound of a batch too
LIMIT_MESSAGE_BYTES = 64 * 1024 * 1024
# Offsets are committed by us alone, after the store has the body; the others have keys of their own.
OURS = {
    "bootstrap.servers": "brokers", "metadata.broker.list": "brokers", "group.id": "group", "auto.offset.reset": "start",
    "sasl.password": "sasl_password_file", "enable.auto.commit": "", "auto.commit.interval.ms": "", "enable.auto.offset.store": "",
    "group.protocol": "", "partition.assignment.strategy": "",
}  # fmt: skip


class Kafka(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Topics that are read as the OpenTelemetry Collector writes them; without brokers none is. Needs `pip install 'leverwatch[cluster]'`.

    Raises:
        ValueError: a value that cannot be used.
    """

    brokers: Annotated[tuple[str, ...], Meta(description="addresses to begin with, such as `kafka-0:9092`; empty: no Kafka")] = ()
    group: Annotated[str, Meta(description="the consumer group; its members share the partitions")] = "leverwatch"
    topics: Annotated[
        dict[str, str], Meta(description="the topic of each signal: `traces`, `metrics`, `logs`; unset: `otlp_spans` for traces alone")
    ] = msgspec.field(default_factory=lambda: {"traces": "otlp_spans"})
    encoding: Annotated[Literal["otlp_proto", "otlp_json"], Meta(description="what the messages are, in the Collector's words")] = (
        "otlp_proto"
    )
    start: Annotated[Literal["earliest", "latest"], Meta(description="where a partition begins that the group has no offset of")] = (
        "earliest"
    )
    sasl_password_file: Annotated[str, Meta(description="the file with the password of `sasl.username`, read at start")] = ""
    options: Annotated[dict[str, str], Meta(description="more settings of librdkafka, such as `security.protocol`, `sasl.username`")] = {}

    def __post_init__(self) -> None:
        for broker in self.brokers:
            host, _, port = broker.rpartition(":")
            if not (host and port.isdecimal()):
                _refuse(f"brokers: {broker!r}: host and port are taken, such as 'kafka-0:9092'")
        if self.brokers and not self.group.strip():
            _refuse("group is empty: the name of a consumer group is taken")
        for signal, topic in self.topics.items():
            if signal not in SIGNALS:
                near = difflib.get_close_matches(signal, SIGNALS, 1)
                _refuse(f"topics: {signal!r} is no signal; {f'did you mean {near[0]!r}? ' if near else ''}known: {', '.join(SIGNALS)}")
            if not topic.strip() or topic.startswith("^"):
                _refuse(f"topics: {signal} = {topic!r}: the name of one topic is taken, and no pattern")
        if len(set(self.topics.values())) < len(self.topics):
            _refuse(f"topics: {', '.join(self.topics.values())}: a topic of its own is taken for each signal")
        if self.brokers and not self.topics:
            _refuse("topics is empty: one of a signal at least is taken, such as { traces = 'otlp_spans' }")
        for name in self.options.keys() & OURS.keys():
            own = f"the key {OURS[name]} is taken" if OURS[name] else "it is set by leverwatch, which commits what is stored"
            _refuse(f"options: {name!r} is not taken: {own}")

    def __hash__(self) -> int:
        return hash((self.brokers, self.group))


def consumer_settings(kafka: Kafka, read: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What librdkafka's consumer is made of; `read` has the password, where a file holds it.

    Small fetches wait for nothing, partitions move one by one (`cooperative-sticky`), and nothing is committed that we did not say.
    """
    return {
        "fetch.wait.max.ms": "100",
        "queued.max.messages.kbytes": str(QUEUED_KBYTES),
        "fetch.message.max.bytes": str(QUEUED_KBYTES * 1024),
        "receive.message.max.bytes": str(2 * LIMIT_MESSAGE_BYTES),
        "fetch.max.bytes": str(LIMIT_MESSAGE_BYTES),
        "client.id": "leverwatch",
        **kafka.options,
        **(read or {}),
        "bootstrap.servers": ",".join(kafka.brokers),
        "group.id": kafka.group,
        "auto.offset.reset": kafka.start,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "allow.auto.create.topics": False,
        "partition.assignment.strategy": "cooperative-sticky",
    }


def password(kafka: Kafka) -> dict[str, str]:
    """The password, read from its file; empty where no file is named.

    Raises:
        OSError: the file cannot be read.
    """
    return {"sasl.password": Path(kafka.sasl_password_file).read_text(encoding="utf-8").strip()} if kafka.sasl_password_file else {}


def _refuse(told: str) -> None:
    msg = f"[kafka] {told}"
    raise ValueError(msg)
