"""A spool that is written and read meanwhile in, the records between two positions of it out, in files of the same names."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Self

from collectors.spool_records import Position, segment_number

PIECE_BYTES = 1024 * 1024


class HeldSegments:
    """The segments of a spool folder, held open: what is held can still be copied when it was loaded and deleted meanwhile."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = ExitStack()
        self._held: dict[int, BinaryIO] = {}
        self.hold()
        self._newest_first = max(self._held, default=-1)

    def hold(self) -> None:
        """Takes hold of the segments that came since."""
        for path in sorted(self._folder.glob("*.spool")):
            number = segment_number(path)
            if number is not None and number not in self._held:
                with suppress(FileNotFoundError):  # it was loaded to its end, and went since the folder was listed
                    self._held[number] = self._files.enter_context(path.open("rb"))

    def hold_until(self, end: Position) -> bool:
        """Takes hold again; whether no segment came and went between the two times, up to a position."""
        self.hold()
        return all(number in self._held for number in range(self._newest_first + 1, end.segment + 1))

    def copy(self, start: Position, end: Position, to: Path) -> int:
        """Writes what lies from `start` to `end`; gives how many bytes. What lies before `start` in its segment becomes a hole."""
        to.mkdir()
        total_bytes = 0
        for number in sorted(n for n in self._held if start.segment <= n <= end.segment):
            source = self._held[number]
            first = start.byte_offset if number == start.segment else 0
            last = end.byte_offset if number == end.segment else os.fstat(source.fileno()).st_size
            if last > first or number == end.segment:
                with (to / f"{number:09d}.spool").open("wb") as target:
                    source.seek(first)
                    target.seek(first)
                    _copy(source, target, max(0, last - first))
                    target.truncate(max(first, last))
                total_bytes += max(0, last - first)
        return total_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()


def _copy(source: BinaryIO, target: BinaryIO, length: int) -> None:
    while length:
        piece = source.read(min(length, PIECE_BYTES))
        if not piece:
            return
        target.write(piece)
        length -= len(piece)
