"""Messages and what became of each in, what waits and what may be committed of each partition out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A partition of a topic."""

    topic: str
    partition: int

    @property
    def sender(self) -> str:
        """The partition's name in the ledger. Each has a watermark of its own: one that lags holds event time back."""
        return f"kafka:{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True)
class Arrived:
    """One message: where it stood, the signal of its topic, and its body (None: a message without one)."""

    place: Place
    offset: int
    signal: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message: it is stored, or set aside with its `reason`, or to be tried again `retry_after_s` from now.

    `is_known` is one that was stored before.
    """

    reason: str = ""
    retry_after_s: float = 0.0
    is_known: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it need not be taken again."""
        return not self.retry_after_s

    @property
    def outcome(self) -> str:
        """In a word, of one that is done."""
        return "known" if self.is_known else "set_aside" if self.reason else "taken"


STORED, KNOWN = Answer(), Answer(is_known=True)


@dataclass(slots=True)
class Progress:
    """What this member of the group has of its partitions. An offset is committed when all before it are done."""

    _waiting: dict[Place, list[Arrived]] = field(default_factory=dict)
    _done: dict[Place, set[int]] = field(default_factory=dict)
    _next: dict[Place, int] = field(default_factory=dict)
    _committed: dict[Place, int] = field(default_factory=dict)

    def arrived(self, messages: Iterable[Arrived]) -> None:
        """Takes note of messages, which come in the order of their offsets within a partition."""
        for message in messages:
            self._waiting.setdefault(message.place, []).append(message)

    def waiting(self) -> list[Arrived]:
        """The messages that are to be taken, those of a partition in order."""
        return [one for place, held in self._waiting.items() for one in held if one.offset not in self._done.get(place, ())]

    def answered(self, messages: Sequence[Arrived], answers: Sequence[Answer]) -> None:
        """Takes note of what became of messages, if their partition is still ours."""
        for message, answer in zip(messages, answers, strict=True):
            if answer.is_done and message.place in self._waiting:
                self._done.setdefault(message.place, set()).add(message.offset)
        for place in list(self._waiting):
            self._advance(place)

    def to_commit(self) -> dict[Place, int]:
        """The offset behind the last message before which all are done, where it is not committed yet."""
        return {place: offset for place, offset in self._next.items() if self._committed.get(place) != offset}

    def stored(self) -> dict[Place, int]:
        """The offset behind the last message before which all are done, of partitions of which any is."""
        return dict(self._next)

    def committed(self, offsets: dict[Place, int]) -> None:
        """Takes note of what the group knows."""
        self._committed.update(offsets)

    def gone(self, places: Collection[Place]) -> None:
        """Forgets partitions that another member has now: what waits of them is the other's."""
        for place in places:
            self._waiting.pop(place, None)
            self._done.pop(place, None)
            self._next.pop(place, None)
            self._committed.pop(place, None)

    def _advance(self, place: Place) -> None:
        held, done = self._waiting[place], self._done.get(place, set())
        passed = 0
        while passed < len(held) and held[passed].offset in done:
            done.discard(held[passed].offset)
            passed += 1
        if passed:
            self._next[place] = held[passed - 1].offset + 1
            self._waiting[place] = held[passed:]
        if not self._waiting[place]:
            del self._waiting[place]
