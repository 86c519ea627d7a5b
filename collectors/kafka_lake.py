"""Messages of Kafka in, rows in a lake out, each commit with the offset that it reaches: what stands in a table is not put there again.

A mark `kafka:<group>:<topic>/<partition>` of each table says up to which offset it has the rows; that of the ledger, which is committed
last, says that every table has. After a crash between two of them, rows go only where the mark says that they are missing.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from collectors.door import RETRY_AFTER_S
from collectors.kafka_body import Keep
from collectors.kafka_pieces import Piece, Weighed, pieces, weighed
from collectors.kafka_progress import KNOWN, STORED, Answer, Arrived, Place
from collectors.lake_batch import LakeReader
from collectors.lake_sink import CANNOT, LEDGER, Pace
from collectors.ledger import Note
from collectors.load import DATA_FAULTS
from queries.lake import Lake
from queries.lake_errors import LakeError

log = logging.getLogger("leverwatch")
TABLES = ("spans", "lever_settings", "samples", "evaluations")  # that a message may have rows of, beside the ledger
MANY = 1_000  # messages that are not waited with: as many more may be there already
Answers = dict[Arrived, Answer]


class KafkaLake:
    """Stores what a reader of Kafka hands over. One commit a table about every `pace.interval_s`, or when much has come."""

    def __init__(
        self, lake: Lake, reader: LakeReader, group: str, encoding: str, keep: Keep, pace: Pace, clock_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._lake, self._reader, self._group, self._encoding = lake, reader, group, encoding
        self._keep, self._pace, self._clock_ns = keep, pace, clock_ns
        self._marks: dict[Place, dict[str, int]] = {}
        self._due_s = 0.0
        self._refused: list[Note] = []  # what was set aside, until the ledger has it

    async def take(self, messages: Sequence[Arrived]) -> list[Answer]:
        """What became of each message, once that is durable. After one that cannot be stored now, none that follows is."""
        is_much = len(messages) >= MANY or sum(len(one.body or b"") for one in messages) >= self._pace.commit_bytes
        if not is_much:
            await asyncio.sleep(max(0.0, self._due_s - time.monotonic()))
        self._due_s = time.monotonic() + self._pace.interval_s
        return await asyncio.to_thread(self._taken, messages)

    def gone(self, places: Sequence[Place]) -> None:
        """Forgets what is known of partitions that another member has now."""
        for place in places:
            self._marks.pop(place, None)

    def _taken(self, messages: Sequence[Arrived]) -> list[Answer]:
        answers: Answers = {}
        try:
            for piece in self._pieces(messages, answers):
                self._store(piece, answers)
        except LakeError as error:
            self._reader.forget()
            self._marks.clear()  # another may have moved them, or our own commit stands although its answer was lost
            busy = Answer(str(error), RETRY_AFTER_S)
            return [answers.get(message, busy) for message in messages]
        return [answers[message] for message in messages]

    def _pieces(self, messages: Sequence[Arrived], answers: Answers) -> Iterator[Piece]:
        """What is to be stored together, in order; what need not be stored is answered."""
        for held, group in itertools.groupby(messages, self._held):
            if LEDGER in held:
                answers.update((message, KNOWN) for message in group)
            else:
                yield from pieces(held, (self._weighed(message, answers) for message in group), self._pace.commit_bytes)

    def _held(self, message: Arrived) -> frozenset[str]:
        """The tables that have the rows of a message."""
        if message.place not in self._marks:
            name = self._name(message.place)
            self._marks[message.place] = {table: self._lake.mark(table, name) or 0 for table in (*TABLES, LEDGER)}
        return frozenset(table for table, mark in self._marks[message.place].items() if mark > message.offset)

    def _weighed(self, message: Arrived, answers: Answers) -> Weighed:
        found = weighed(message, self._encoding, self._clock_ns)
        if found.refused:
            self._aside(message, found.refused, found.told, answers)
        return found

    def _store(self, piece: Piece, answers: Answers) -> None:
        """Stores a piece; of one that cannot be read each message is tried alone."""
        refused = [*self._refused]
        try:
            read = self._reader.read(piece.records, {}, [*refused, *piece.notes])
        except DATA_FAULTS as error:
            self._store_alone(piece, error, answers)
            return
        marks = self._reached(piece)
        for table, rows in read.tables.items():
            if table not in piece.held:
                self._lake.append(table, rows, marks)
        self._lake.append(LEDGER, read.tallies.rows(), marks)
        del self._refused[: len(refused)]
        for one in piece.items:
            answers.setdefault(one.message, STORED)

    def _store_alone(self, piece: Piece, error: Exception, answers: Answers) -> None:
        if len(piece.items) > 1:
            for part in piece.alone():
                self._store(part, answers)
            return
        message = piece.items[0].message
        reason = f"{CANNOT}: {type(error).__name__}"
        self._aside(message, Note(message.place.sender, message.signal, self._clock_ns(), reason), f"{reason}: {error}", answers)
        self._store(Piece(piece.held, [Weighed(message)]), answers)

    def _aside(self, message: Arrived, note: Note, told: str, answers: Answers) -> None:
        self._keep(message, told)
        self._refused.append(note)
        answers[message] = Answer(told or note.reason)

    def _reached(self, piece: Piece) -> Mapping[str, int]:
        return {self._name(one.message.place): one.message.offset + 1 for one in piece.items}

    def _name(self, place: Place) -> str:
        return f"kafka:{self._group}:{place.topic}/{place.partition}"
