"""One body with what is known of it in, a record of the spool out, and back: what is whole is read, what is damaged is told.

A record is `mark, length, crc32, arrival time, sender length, signal, counts if there are any, sender, body`. The signal's highest bit says
that the door's counts of the body stand before the sender. Records of the first version have no mark; both are read.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MARK = b"\xffLWR"  # as a length it would be more than a body may have
HEADER, ARRIVAL = struct.Struct("<IIqHB"), struct.Struct("<qB")
COUNTED, COUNTS_SIZE = 0x80, struct.Struct("<H")
SIGNALS = ("traces", "metrics", "logs", "scrapes", "evaluations", "requests")  # a record holds the number: append only


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in the spool: a segment's number and an offset in it."""

    segment: int
    byte_offset: int


def segment_number(path: Path) -> int | None:
    """The number of a segment by its name; None of a file that is no segment."""
    name = path.stem
    return int(name) if path.suffix == ".spool" and name.isascii() and name.isdigit() and name == f"{int(name):09d}" else None


@dataclass(frozen=True, slots=True)
class Record:
    """One body as it was received, the position behind it, and what the record takes in the spool."""

    signal: str
    sender: str
    received_unix_nano: int
    body: bytes
    after: Position
    counts: bytes = b""
    stored_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes between whole records that are none, and the position behind them."""

    content: bytes
    after: Position

    @property
    def stored_bytes(self) -> int:
        """What they take in the spool."""
        return len(self.content)


def packed(signal: str, sender: str, received_unix_nano: int, body: bytes, counts: bytes = b"") -> bytes:
    """A record as it stands in a segment."""
    name = sender.encode()[:65535]
    number = SIGNALS.index(signal) | (COUNTED if counts else 0)
    counted = COUNTS_SIZE.pack(len(counts)) + counts if counts else b""
    checksum = _checksum(received_unix_nano, number, counted + name, body)
    return b"".join((MARK, HEADER.pack(len(body), checksum, received_unix_nano, len(name), number), counted, name, body))


def records(path: Path, segment: int, offset: int, stop: int | None) -> Iterator[Record | Damage]:
    """The records of a segment's file from an offset on, and what is damaged between them, up to `stop`.

    Where `stop` is None the end of the file is not known to be durable: what is not whole there is no damage but was torn.
    """
    with path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size if stop is None else stop
        while offset < end:
            record = _read(file, segment, offset)
            if record is None:
                following = _next(file, segment, offset, end)
                if following is None and stop is None:
                    return
                until = end if following is None else following.after.byte_offset - following.stored_bytes
                file.seek(offset)
                yield Damage(file.read(until - offset), Position(segment, until))
                if following is None:
                    return
                record = following
            yield record
            offset = record.after.byte_offset


def _read(file: BinaryIO, segment: int, offset: int) -> Record | None:
    """The record that begins at an offset; None where what stands there is not whole."""
    file.seek(offset)
    mark = file.read(len(MARK))
    head = file.read(HEADER.size) if mark == MARK else mark + file.read(HEADER.size - len(MARK))
    if len(head) < HEADER.size:
        return None
    length, checksum, received, name_length, signal = HEADER.unpack(head)
    kind = signal & ~COUNTED
    counted = _read_counts(file) if signal & COUNTED else b""
    name = file.read(name_length)
    if kind >= len(SIGNALS) or offset + length > os.fstat(file.fileno()).st_size:
        return None
    body = file.read(length)
    if len(body) < length or _checksum(received, signal, counted + name, body) != checksum:
        return None
    after = Position(segment, file.tell())
    counts = counted[COUNTS_SIZE.size :]
    return Record(SIGNALS[kind], name.decode(errors="replace"), received, body, after, counts, after.byte_offset - offset)


def _next(file: BinaryIO, segment: int, offset: int, end: int) -> Record | None:
    """The first whole record behind a damaged one, found by its mark."""
    file.seek(offset)
    content = file.read(end - offset)
    place = content.find(MARK, 1)
    while place >= 0:
        record = _read(file, segment, offset + place)
        if record is not None and record.after.byte_offset <= end:
            return record
        place = content.find(MARK, place + 1)
    return None


def _read_counts(file: BinaryIO) -> bytes:
    """The counts of a record with their length before them, cut short where the file is."""
    size = file.read(COUNTS_SIZE.size)
    return size + file.read(COUNTS_SIZE.unpack(size)[0]) if len(size) == COUNTS_SIZE.size else size


def _checksum(received_unix_nano: int, signal: int, sender: bytes, body: bytes) -> int:
    return zlib.crc32(body, zlib.crc32(sender, zlib.crc32(ARRIVAL.pack(received_unix_nano, signal))))
