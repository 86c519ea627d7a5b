"""Messages of Kafka topics in, bodies for the store out; a group's offset is committed once the store has all that stands before it.

One thread polls, hands over what came, waits for the answers and commits. While the store refuses, the partitions are paused: the broker
keeps what comes, and the group keeps its members. A message that cannot be taken is set aside by whoever answers, and passed.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from collectors.kafka_progress import Answer, Arrived, Place, Progress
from collectors.kafka_settings import Kafka, consumer_settings, password

log = logging.getLogger("leverwatch")
LIMIT_MESSAGES = 2_000
POLL_S = 0.5
ASK_EVERY_S = 5.0  # how far behind the partitions are, and, after an error, whether the brokers answer again
ASK_FOR_S = 2.0
INSTALL = "[kafka] needs confluent-kafka: pip install 'leverwatch[cluster]'"


class Store(Protocol):
    """Where messages go."""

    async def take(self, messages: Sequence[Arrived]) -> Sequence[Answer]:
        """Answers for each message, once what it says is durable. Those of a partition come in its order."""
        ...

    def gone(self, places: Sequence[Place]) -> None:
        """Hears which partitions another member has now. Never while messages are taken."""
        ...


class KafkaMissingError(ModuleNotFoundError):
    """The client of Kafka is not installed; says how it is."""


class KafkaOptionError(ValueError):
    """A setting that the client does not take; says which."""


class KafkaReader:
    """Follows the configured topics into a store.

    `warnings` says what is wrong now, `lags` by how many messages each partition is behind, `counts` what became of messages.

    Raises:
        KafkaMissingError, OSError, KafkaOptionError: no client is installed, the password's file cannot be read, an option is none.
    """

    def __init__(self, kafka: Kafka, store: Store, make: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self._kafka, self._store, self._make = kafka, store, make or _consumer
        self._signals = {topic: signal for signal, topic in kafka.topics.items()}
        self._progress = Progress()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._retry_at_s = self._ask_at_s = 0.0
        self._is_paused = self._is_broken = False
        self.warnings: dict[str, str] = {}
        self.lags: dict[Place, int] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self._consumer = self._made()

    def start(self) -> None:
        """Begins; to be called in a running event loop, on which the store is asked."""
        self._subscribe()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._follow, name="kafka", daemon=True)
        self._thread.start()

    async def stop(self, grace_s: float) -> None:
        """Commits what is stored and leaves the group; what was not stored is another member's, or read at the next start."""
        self._stopping.set()
        if self._thread:
            await asyncio.to_thread(self._thread.join, grace_s)

    def lags_by_sender(self) -> dict[tuple[str, str], int]:
        """`lags` by the sender and the signal that the ledger has."""
        return {(place.sender, self._signals[place.topic]): lag for place, lag in self.lags.copy().items()}

    def _made(self) -> Any:
        return self._make(consumer_settings(self._kafka, password(self._kafka)) | {"error_cb": self._failed})

    def _subscribe(self) -> None:
        self._consumer.subscribe([*self._signals], on_revoke=self._revoked, on_lost=self._lost)

    def _follow(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
            except Exception as error:  # one that nobody foresaw must not end reading for good
                log.warning("kafka: a round failed and is tried again", exc_info=error)
                self.warnings["kafka"] = f"{type(error).__name__}: {error}"
                self._stopping.wait(ASK_EVERY_S)
        try:
            self._commit()
            self._consumer.close()
        except Exception as error:
            log.warning("kafka: the group was not left: %s", error)

    def _round(self) -> None:
        """Polls, hands over what waits, and commits what is done."""
        if self._is_broken:
            self._begin_anew()
        self._hold(is_paused=bool(self._progress.waiting()))
        self._poll()
        waiting = self._progress.waiting()
        if waiting and time.monotonic() >= self._retry_at_s:
            answers = self._asked(waiting)
            self._progress.answered(waiting, answers)
            self._told(waiting, answers)
        self._commit()
        if time.monotonic() >= self._ask_at_s:
            self._ask_at_s = time.monotonic() + ASK_EVERY_S
            self._ask()

    def _hold(self, *, is_paused: bool) -> None:
        """Stops or goes on with fetching, partitions that came meanwhile included; the group sees its member poll all the same."""
        if is_paused:
            self._consumer.pause(self._consumer.assignment())
        elif self._is_paused:
            self._consumer.resume(self._consumer.assignment())
        self._is_paused = is_paused

    def _poll(self) -> None:
        wait_s = POLL_S if not self._is_paused else min(POLL_S, max(0.0, self._retry_at_s - time.monotonic()))
        first = self._consumer.poll(wait_s)
        messages = [] if first is None else [first, *self._consumer.consume(LIMIT_MESSAGES, 0)]
        self._progress.arrived([self._arrived(one) for one in messages if not self._is_error(one)])

    def _is_error(self, message: Any) -> bool:
        if message.error() is not None:
            self._failed(message.error())
        return message.error() is not None

    def _arrived(self, message: Any) -> Arrived:
        topic: str = message.topic()
        return Arrived(Place(topic, message.partition()), message.offset(), self._signals[topic], message.value())

    def _asked(self, waiting: Sequence[Arrived]) -> Sequence[Answer]:
        assert self._loop is not None  # noqa: S101 - `start` has set it
        return asyncio.run_coroutine_threadsafe(_asked(self._store, waiting), self._loop).result()

    def _told(self, waiting: Sequence[Arrived], answers: Sequence[Answer]) -> None:
        retry_after_s = max(answer.retry_after_s for answer in answers)
        self._retry_at_s = time.monotonic() + retry_after_s
        refused = next((answer.reason for answer in answers if not answer.is_done), "")
        if refused:
            self.warnings["paused"] = f"reading is paused, and goes on by itself: {refused}"
        else:
            self.warnings.pop("paused", None)
        for message, answer in zip(waiting, answers, strict=True):
            if answer.is_done:
                self.counts[message.place.topic, answer.outcome] += 1
        self._tell_known(all(answer.is_known for answer in answers))

    def _tell_known(self, is_all: bool) -> None:
        if is_all:
            self.warnings["known"] = "the store has these messages by their offsets; a topic that was made anew takes another [kafka] group"
        else:
            self.warnings.pop("known", None)

    def _commit(self, only: Sequence[Place] | None = None) -> None:
        """Tells the group what is stored. What it does not hear now it hears with the next commit, or its next member takes it again."""
        offsets = {place: offset for place, offset in self._progress.to_commit().items() if only is None or place in only}
        if not offsets:
            return
        try:
            told = self._consumer.commit(offsets=_partitions(offsets), asynchronous=False)
        except Exception as error:
            self.warnings["commit"] = f"offsets are not committed, messages may be read again: {_said(error)}"
            return
        wrong = [one.error for one in told or () if one.error]
        self._progress.committed({} if wrong else offsets)
        if wrong:
            self.warnings["commit"] = f"offsets are not committed, messages may be read again: {wrong[0]}"
        else:
            self.warnings.pop("commit", None)

    def _revoked(self, _: Any, partitions: Sequence[Any]) -> None:
        places = [Place(one.topic, one.partition) for one in partitions]
        self._commit(places)
        self._lost(_, partitions)

    def _lost(self, _: Any, partitions: Sequence[Any]) -> None:
        places = [Place(one.topic, one.partition) for one in partitions]
        self._progress.gone(places)
        self._store.gone(places)
        for place in places:
            self.lags.pop(place, None)

    def _failed(self, error: Any) -> None:
        self.warnings["kafka"] = _said(error)
        self._is_broken = self._is_broken or error.fatal()

    def _begin_anew(self) -> None:
        """Another consumer in the place of one that never goes on: it begins behind what is committed."""
        self._consumer.close()
        self._store.gone([*self.lags])
        self._progress, self.lags = Progress(), {}
        self._consumer, self._is_broken = self._made(), False
        self._subscribe()

    def _ask(self) -> None:
        """How far behind each partition is, as the newest fetch has it, and whether what failed works again."""
        if "kafka" in self.warnings:
            self._ask_brokers()
        stored = dict(self._progress.stored())
        for one in self._consumer.assignment():
            place = Place(one.topic, one.partition)
            _, end = self._consumer.get_watermark_offsets(one, cached=True)
            if place not in stored:
                known = self._consumer.committed([one], timeout=ASK_FOR_S)[0].offset
                stored[place] = known if known >= 0 else end
            if end >= 0:
                self.lags[place] = max(0, end - stored[place])

    def _ask_brokers(self) -> None:
        try:
            topics = self._consumer.list_topics(timeout=ASK_FOR_S).topics
        except Exception as error:
            self.warnings["kafka"] = f"no broker of {', '.join(self._kafka.brokers)} answers: {_said(error)}"
            return
        missing = [topic for topic in self._signals if topic not in topics or topics[topic].error]
        if missing:
            self.warnings["kafka"] = f"no topic {', '.join(missing)}; it is read once it is there"
        else:
            self.warnings.pop("kafka", None)


async def _asked(store: Store, messages: Sequence[Arrived]) -> Sequence[Answer]:
    return await store.take(messages)


def _consumer(settings: dict[str, Any]) -> Any:
    try:
        from confluent_kafka import Consumer, KafkaException
    except ModuleNotFoundError as error:
        raise KafkaMissingError(INSTALL) from error
    try:
        return Consumer(settings, logger=log)
    except KafkaException as error:
        msg = f"[kafka] options: {_said(error)}"
        raise KafkaOptionError(msg) from error


def _partitions(offsets: dict[Place, int]) -> list[Any]:
    from confluent_kafka import TopicPartition

    return [TopicPartition(place.topic, place.partition, offset) for place, offset in sorted(offsets.items())]


def _said(error: Any) -> str:
    """An error of the client in its own words, without the wrapping."""
    inner = error.args[0] if isinstance(error, Exception) and error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(error)
