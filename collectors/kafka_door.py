"""Messages of Kafka in, bodies at the door out, and what became of each: stored, set aside with its reason, or to be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from collectors import set_aside
from collectors.door import RETRY_AFTER_S, BusyError, Door
from collectors.entry import UnsoundBodyError
from collectors.kafka_progress import STORED, Answer, Arrived
from collectors.ledger import Note
from collectors.otlp_json import OtlpJsonError, to_protobuf

Keep = Callable[[Arrived, str], None]
NO_BODY, NO_JSON, NOT_CHECKED = "message without a body", "body is not sound OTLP/JSON", "message that cannot be checked"
# What one odd message can cause; anything else (no space, no memory) is tried again.
FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class KafkaDoor:
    """Takes messages to the door. `keep` keeps one that cannot be taken, with its reason."""

    def __init__(self, door: Door, keep: Keep, encoding: str) -> None:
        self._door, self._keep, self._encoding = door, keep, encoding

    async def take(self, messages: Sequence[Arrived]) -> list[Answer]:
        """What became of each message, once that is durable; those that come together share a sync."""
        return list(await asyncio.gather(*map(self._take, messages)))

    async def _take(self, message: Arrived) -> Answer:
        try:
            body = await self._body(message)
            await self._door.take(message.signal, message.place.sender, body)
        except UnsoundBodyError as error:  # the door has noted it
            return await self._aside(message, str(error))
        except OtlpJsonError as error:
            self._note(message, NO_JSON if message.body else NO_BODY)
            return await self._aside(message, str(error))
        except BusyError as error:
            return Answer(str(error), error.retry_after_s)
        except FAULTS as error:
            self._note(message, NOT_CHECKED)
            return await self._aside(message, f"{NOT_CHECKED}: {type(error).__name__}: {error}")
        return STORED

    def _note(self, message: Arrived, reason: str) -> None:
        self._door.note(Note(message.place.sender, message.signal, self._door.clock_ns(), reason))

    async def _body(self, message: Arrived) -> bytes:
        if message.body is None:
            raise OtlpJsonError(NO_BODY)
        return await asyncio.to_thread(to_protobuf, message.body, message.signal) if self._encoding == "otlp_json" else message.body

    async def _aside(self, message: Arrived, reason: str) -> Answer:
        try:
            await asyncio.to_thread(self._keep, message, reason)
        except OSError as error:
            return Answer(f"what cannot be taken cannot be set aside: {error}", RETRY_AFTER_S)
        return Answer(reason)


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
