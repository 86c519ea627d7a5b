"""A message of Kafka in, the export that it holds out; and what keeps a message that holds none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from collectors import set_aside
from collectors.kafka_progress import Arrived
from collectors.otlp_json import OtlpJsonError, to_protobuf

log = logging.getLogger("leverwatch")
Keep = Callable[[Arrived, str], None]
NO_BODY, NO_JSON = "message without a body", "body is not sound OTLP/JSON"


class NoBodyError(OtlpJsonError):
    """A message has nothing but a key."""


def body_of(message: Arrived, encoding: str) -> bytes:
    """The export as protobuf bytes.

    Raises:
        NoBodyError: there is no body.
        OtlpJsonError: it is not what `encoding` says.
    """
    if message.body is None:
        raise NoBodyError(NO_BODY)
    return to_protobuf(message.body, message.signal) if encoding == "otlp_json" else message.body


def keep_in(folder: Path) -> Keep:
    """Keeps messages in the data folder's `set_aside`, each under its place and offset."""

    def keep(message: Arrived, reason: str) -> None:
        place = message.place
        about: dict[str, str | int] = {
            "reason": reason, "sender": place.sender, "signal": message.signal,
            "topic": place.topic, "partition": place.partition, "offset": message.offset,
        }  # fmt: skip
        set_aside.keep(folder, f"kafka-{place.topic}-{place.partition}-{message.offset}", message.body or b"", about)

    return keep


def keep_where_it_is(message: Arrived, reason: str) -> None:
    """Keeps nothing: a collector has no disk, so its log says where the topic has the message."""
    place = message.place
    log.warning("%s partition %d offset %d cannot be taken and is passed: %s", place.topic, place.partition, message.offset, reason)
