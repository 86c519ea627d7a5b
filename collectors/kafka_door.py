"""Messages of Kafka in, bodies at the door out, and what became of each: stored, set aside with its reason, or to be tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from collectors.door import RETRY_AFTER_S, BusyError, Door
from collectors.entry import UnsoundBodyError
from collectors.kafka_body import NO_BODY, NO_JSON, Keep, body_of
from collectors.kafka_progress import STORED, Answer, Arrived, Place
from collectors.ledger import Note
from collectors.otlp_json import OtlpJsonError

NOT_CHECKED = "message that cannot be checked"
# What one odd message can cause; anything else (no space, no memory) is tried again.
FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class KafkaDoor:
    """Takes messages to the door. `keep` keeps one that cannot be taken, with its reason."""

    def __init__(self, door: Door, keep: Keep, encoding: str) -> None:
        self._door, self._keep, self._encoding = door, keep, encoding

    async def take(self, messages: Sequence[Arrived]) -> list[Answer]:
        """What became of each message, once that is durable; those that come together share a sync."""
        return list(await asyncio.gather(*map(self._take, messages)))

    def gone(self, places: Sequence[Place]) -> None:
        """Nothing is kept of a partition."""

    async def _take(self, message: Arrived) -> Answer:
        try:
            is_plain = self._encoding != "otlp_json"
            body = body_of(message, self._encoding) if is_plain else await asyncio.to_thread(body_of, message, self._encoding)
            await self._door.take(message.signal, message.place.sender, body)
        except UnsoundBodyError as error:  # the door has noted it
            return await self._aside(message, str(error))
        except OtlpJsonError as error:
            self._note(message, NO_BODY if message.body is None else NO_JSON)
            return await self._aside(message, str(error))
        except BusyError as error:
            return Answer(str(error), error.retry_after_s)
        except FAULTS as error:
            self._note(message, NOT_CHECKED)
            return await self._aside(message, f"{NOT_CHECKED}: {type(error).__name__}: {error}")
        return STORED

    def _note(self, message: Arrived, reason: str) -> None:
        self._door.note(Note(message.place.sender, message.signal, self._door.clock_ns(), reason))

    async def _aside(self, message: Arrived, reason: str) -> Answer:
        try:
            await asyncio.to_thread(self._keep, message, reason)
        except OSError as error:
            return Answer(f"what cannot be taken cannot be set aside: {error}", RETRY_AFTER_S)
        return Answer(reason)
